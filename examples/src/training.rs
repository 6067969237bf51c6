//! A training run over a mesh: epochs, evaluation, saving and going on from what was saved.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use burn::prelude::Backend;
use burn_multigpu::Mesh;

use crate::backend::TrainBackend;
use crate::checkpoint::{Checkpoint, EpochRecord, Identity, Snapshot, State};
use crate::config::{FloatKind, TrainConfig};
use crate::data::{DataSet, DigitItems, Digits, batches, epoch_order};
use crate::engine::{Engine, Loss, Resume, Setup, over_mesh, predict};
use crate::models::Classifier;

/// Items of a forward pass in evaluation, over all devices together.
const EVALUATION_BATCH: usize = 500;
/// How often losses are read. Reading waits for the devices, and so every step would be too often.
const READ_LOSSES_EVERY: Duration = Duration::from_millis(250);

/// How an epoch ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum EpochEnd {
    /// All items were seen.
    Done(EpochRecord),
    /// Somebody asked the run to stop; it did after a step.
    Stopped,
}

/// Where an epoch is.
#[derive(Debug, Clone, Copy)]
pub struct EpochProgress {
    /// Items done in this epoch.
    pub items: usize,
    /// Mean loss over these items.
    pub loss: f64,
}

/// A training run.
#[derive(Debug)]
pub struct Trainer {
    engine: Box<dyn Engine>,
    config: TrainConfig,
    data: DataSet,
    checkpoint: Checkpoint,
    state: State,
    pending: Pending,
}

/// Losses that have not been read yet.
#[derive(Default)]
struct Pending {
    losses: Vec<(usize, Loss)>,
    items: usize,
}

impl std::fmt::Debug for Pending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Pending({} items)", self.items)
    }
}

impl Trainer {
    /// Begins a run, or goes on with the one in the folder, whichever engine it is of.
    ///
    /// # Errors
    ///
    /// When the backend lacks the element type, a device fails, or the run in the folder cannot be
    /// gone on with.
    pub fn new<B: TrainBackend>(
        mesh: &Mesh<B::InnerBackend>,
        config: TrainConfig,
        data: DataSet,
        checkpoint: Checkpoint,
        resume: bool,
    ) -> anyhow::Result<Self> {
        let saved = match resume {
            true => Some(saved(&checkpoint, &config, &data)?),
            false => None,
        };
        let setup = Setup {
            model: config.model,
            optimizer: config.optimizer,
            dropout: config.dropout,
            seed: config.seed,
            dtype: config.dtype,
            resume: saved.as_ref().map(|(snapshot, state)| Resume {
                snapshot,
                steps: state.global_step,
            }),
        };
        let engine = over_mesh::<B>(config.engine, mesh, &setup)?;
        let state = match saved {
            Some((_, state)) => state,
            None => State::new(Identity::new(&config, &data), config.learning_rate()),
        };
        Ok(Self {
            engine,
            config,
            data,
            checkpoint,
            state,
            pending: Pending::default(),
        })
    }

    /// How far the run has come.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Whether all epochs are done.
    pub fn finished(&self) -> bool {
        self.state.epoch >= self.config.epochs
    }

    /// Goes through what is left of the current epoch, telling `observe` where it is; when that
    /// answers `false`, the epoch stops after the step. At its end the epoch is evaluated.
    ///
    /// # Errors
    ///
    /// When a device fails, or the loss is no longer a number.
    pub fn run_epoch(
        &mut self,
        mut observe: impl FnMut(EpochProgress) -> bool,
    ) -> anyhow::Result<EpochEnd> {
        let lr = self.config.learning_rate();
        self.state.lr = lr;
        let order = epoch_order(self.data.train.len(), self.config.seed, self.state.epoch);
        let digits = Arc::clone(&self.data.train);
        let rest = batches(&digits, &order, self.config.batch_size).skip(self.state.step_in_epoch);
        let mut read_at = Instant::now();
        for items in rest {
            let count = items.len();
            let loss = self.engine.train_step(lr, items)?;
            self.state.step_in_epoch += 1;
            self.state.global_step += 1;
            self.state.epoch_items += count;
            self.pending.losses.push((count, loss));
            self.pending.items += count;
            let due = read_at.elapsed() >= READ_LOSSES_EVERY;
            if due {
                self.read_losses()?;
                read_at = Instant::now();
            }
            let read = self.state.epoch_items - self.pending.items;
            let go_on = observe(EpochProgress {
                items: self.state.epoch_items,
                loss: self.state.epoch_loss_sum / read.max(1) as f64,
            });
            if !go_on {
                self.read_losses()?;
                return Ok(EpochEnd::Stopped);
            }
        }
        self.read_losses()?;
        let accuracy = self.evaluate()?;
        Ok(EpochEnd::Done(self.state.finish_epoch(accuracy)))
    }

    fn read_losses(&mut self) -> anyhow::Result<()> {
        for (items, loss) in std::mem::take(&mut self.pending).losses {
            let loss = loss()?;
            if !loss.is_finite() {
                bail!(
                    "the loss is {loss} at or shortly before step {}: try a smaller --lr (it is {})",
                    self.state.global_step,
                    self.state.lr
                );
            }
            self.state.epoch_loss_sum += loss * items as f64;
        }
        Ok(())
    }

    /// The share of the test digits that the model tells right, over all members of the mesh.
    ///
    /// # Errors
    ///
    /// When a device fails.
    pub fn evaluate(&self) -> anyhow::Result<f64> {
        accuracy_of(&self.data.test, |items| self.engine.predict(items))
    }

    /// Writes the model, the optimizer's state and how far the run has come.
    ///
    /// # Errors
    ///
    /// When a device fails or a file cannot be written.
    pub fn save(&self) -> anyhow::Result<()> {
        let snapshot = self.engine.snapshot()?;
        self.checkpoint
            .save(&snapshot, &self.state)
            .context("the run could not be saved")
    }
}

/// What the run in the folder came to.
fn saved(
    checkpoint: &Checkpoint,
    config: &TrainConfig,
    data: &DataSet,
) -> anyhow::Result<(Snapshot, State)> {
    if config.dtype != FloatKind::F32 {
        bail!(
            "cannot resume a run in {}: checkpoints hold f32",
            config.dtype
        );
    }
    let state = checkpoint.load_state(&Identity::new(config, data))?;
    Ok((checkpoint.load()?, state))
}

/// The share of the digits that a model tells right, on its one device: a program that knows nothing
/// of a mesh.
///
/// # Errors
///
/// When the device fails.
pub fn accuracy<B: Backend>(model: &Classifier<B>, digits: &Arc<Digits>) -> anyhow::Result<f64> {
    accuracy_of(digits, |items| predict(model, &items))
}

fn accuracy_of(
    digits: &Arc<Digits>,
    predict: impl Fn(DigitItems) -> anyhow::Result<Vec<u8>>,
) -> anyhow::Result<f64> {
    let order: Vec<u32> = (0..digits.len() as u32).collect();
    let mut right = 0;
    for items in batches(digits, &order, EVALUATION_BATCH) {
        let labels: Vec<u8> = items.labels().collect();
        let predicted = predict(items)?;
        right += predicted
            .iter()
            .zip(&labels)
            .filter(|(digit, label)| digit == label)
            .count();
    }
    Ok(right as f64 / digits.len() as f64)
}

#[cfg(all(test, feature = "flex"))]
mod tests;
