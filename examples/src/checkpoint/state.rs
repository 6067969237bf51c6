//! How far a run has come, and what it has to agree in to be gone on with.

use serde::{Deserialize, Serialize};

use crate::config::{FloatKind, TrainConfig};
use crate::data::DataSet;
use crate::models::ModelKind;
use crate::optimizer::OptimizerKind;

/// The layout of `state.json` that this version writes and reads.
pub(super) const VERSION: u32 = 1;

/// What one epoch came to.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct EpochRecord {
    /// Counted from 1.
    pub epoch: usize,
    /// Mean training loss over the items.
    pub loss: f64,
    /// Share of the test digits that were told right.
    pub accuracy: f64,
}

/// What decides the course of a run: a resumed run must agree in all of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Identity {
    /// The network.
    pub model: ModelKind,
    /// The optimizer.
    pub optimizer: OptimizerKind,
    /// Items of a step, over all devices together.
    pub batch_size: usize,
    /// Seed of parameters, order and dropout.
    pub seed: u64,
    /// Dropout probability.
    pub dropout: f64,
    /// Element type.
    pub dtype: FloatKind,
    /// Digits to train on.
    pub train_items: usize,
    /// Digits to test with.
    pub test_items: usize,
    /// Of all the digits, in hexadecimal: JSON has no 64-bit integers.
    pub data_fingerprint: String,
}

impl Identity {
    /// Of the run that a configuration describes.
    pub fn new(config: &TrainConfig, data: &DataSet) -> Self {
        Self {
            model: config.model,
            optimizer: config.optimizer,
            batch_size: config.batch_size,
            seed: config.seed,
            dropout: config.dropout,
            dtype: config.dtype,
            train_items: data.train.len(),
            test_items: data.test.len(),
            data_fingerprint: format!("{:016x}", data.fingerprint()),
        }
    }

    /// The first thing in which another run differs: what, here, there.
    pub(super) fn difference(&self, other: &Self) -> Option<(&'static str, String, String)> {
        macro_rules! compare {
            ($($field:ident: $what:literal),*) => {
                $(if self.$field != other.$field {
                    return Some(($what, self.$field.to_string(), other.$field.to_string()));
                })*
            };
        }
        compare!(
            model: "model", optimizer: "optimizer", batch_size: "batch size", seed: "seed",
            dropout: "dropout", dtype: "element type", train_items: "number of training digits",
            test_items: "number of test digits", data_fingerprint: "data (fingerprint)"
        );
        None
    }
}

/// How far a run has come.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct State {
    version: u32,
    /// What the run is.
    pub run: Identity,
    /// Learning rate of the last step; a resumed run may take another.
    pub lr: f64,
    /// Whole epochs done.
    pub epoch: usize,
    /// Steps done of the epoch after them.
    pub step_in_epoch: usize,
    /// Sum over the items of the losses of these steps.
    pub epoch_loss_sum: f64,
    /// Items of these steps.
    pub epoch_items: usize,
    /// Steps done altogether.
    pub global_step: u64,
    /// The best test accuracy of an epoch.
    pub best_accuracy: Option<f64>,
    /// The epochs done.
    pub history: Vec<EpochRecord>,
}

impl State {
    /// Before the first step.
    pub fn new(run: Identity, lr: f64) -> Self {
        Self {
            version: VERSION,
            run,
            lr,
            epoch: 0,
            step_in_epoch: 0,
            epoch_loss_sum: 0.0,
            epoch_items: 0,
            global_step: 0,
            best_accuracy: None,
            history: Vec::new(),
        }
    }

    /// Ends the epoch.
    pub fn finish_epoch(&mut self, accuracy: f64) -> EpochRecord {
        self.epoch += 1;
        let record = EpochRecord {
            epoch: self.epoch,
            loss: self.epoch_loss_sum / self.epoch_items.max(1) as f64,
            accuracy,
        };
        self.step_in_epoch = 0;
        self.epoch_loss_sum = 0.0;
        self.epoch_items = 0;
        self.best_accuracy = Some(
            self.best_accuracy
                .map_or(accuracy, |best| best.max(accuracy)),
        );
        self.history.push(record);
        record
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity() -> Identity {
        Identity {
            model: ModelKind::Mlp,
            optimizer: OptimizerKind::Adam,
            batch_size: 64,
            seed: 42,
            dropout: 0.25,
            dtype: FloatKind::F32,
            train_items: 8000,
            test_items: 2000,
            data_fingerprint: "00ff".to_owned(),
        }
    }

    #[test]
    fn an_epoch_ends_with_its_mean_over_items() {
        let mut state = State::new(identity(), 0.1);
        state.epoch_loss_sum = 30.0;
        state.epoch_items = 20;
        state.step_in_epoch = 3;
        let record = state.finish_epoch(0.9);
        assert_eq!((record.epoch, record.loss, record.accuracy), (1, 1.5, 0.9));
        assert_eq!(
            (state.step_in_epoch, state.epoch_items, state.epoch),
            (0, 0, 1)
        );
        state.finish_epoch(0.8);
        assert_eq!(state.best_accuracy, Some(0.9));
        assert_eq!(state.history.len(), 2);
    }

    #[test]
    fn tells_runs_apart() {
        let saved = identity();
        assert_eq!(saved.difference(&identity()), None);
        let check = |change: fn(&mut Identity), what: &str, here: &str, there: &str| {
            let mut other = identity();
            change(&mut other);
            let expected = Some((here.to_owned(), there.to_owned()));
            let found = saved.difference(&other);
            assert_eq!(found.as_ref().map(|(what, ..)| *what), Some(what));
            assert_eq!(found.map(|(_, here, there)| (here, there)), expected);
        };
        check(|run| run.model = ModelKind::Cnn, "model", "mlp", "cnn");
        check(|run| run.batch_size = 32, "batch size", "64", "32");
        check(|run| run.seed = 1, "seed", "42", "1");
        check(
            |run| run.optimizer = OptimizerKind::Sgd,
            "optimizer",
            "adam",
            "sgd",
        );
        check(
            |run| run.train_items = 9,
            "number of training digits",
            "8000",
            "9",
        );
        check(
            |run| run.data_fingerprint = "0".into(),
            "data (fingerprint)",
            "00ff",
            "0",
        );
    }
}
