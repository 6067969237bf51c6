//! A training run over a mesh: epochs, evaluation, saving and going on from what was saved.

use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use burn::prelude::Backend;
use burn_multigpu::{DataParallel, Mesh, Step, StepOutput};

use crate::backend::TrainBackend;
use crate::checkpoint::{Checkpoint, EpochRecord, Identity, State};
use crate::config::{FloatKind, TrainConfig};
use crate::data::{DataSet, DigitItems, Digits, batches, epoch_order};
use crate::models::Classifier;
use crate::optimizer::AnyOptimizer;
use std::sync::Arc;

/// Items of a forward pass in evaluation, over all devices together.
const EVALUATION_BATCH: usize = 500;
/// How often losses are read. Reading waits for the devices, and so every step would be too often.
const READ_LOSSES_EVERY: Duration = Duration::from_millis(250);

type Engine<B> = DataParallel<B, Classifier<B>, AnyOptimizer<B, Classifier<B>>>;

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
pub struct Trainer<B: TrainBackend> {
    engine: Engine<B>,
    config: TrainConfig,
    data: DataSet,
    checkpoint: Checkpoint,
    state: State,
}

impl<B: TrainBackend> Trainer<B> {
    /// Begins a run, or goes on with the one in the folder.
    ///
    /// # Errors
    ///
    /// When the backend lacks the element type, a device fails, or the run in the folder cannot be
    /// gone on with.
    pub fn new(
        mesh: &Mesh<B::InnerBackend>,
        config: TrainConfig,
        data: DataSet,
        checkpoint: Checkpoint,
        resume: bool,
    ) -> anyhow::Result<Self> {
        let device = &mesh.devices()[0];
        check_dtype::<B>(config.dtype, device)?;
        let identity = Identity::new(&config, &data);
        let (kind, dropout) = (config.model, config.dropout);
        let (model, state) = if resume {
            if config.dtype != FloatKind::F32 {
                bail!(
                    "cannot resume a run in {}: checkpoints hold f32",
                    config.dtype
                );
            }
            let state = checkpoint.load_state(&identity)?;
            (checkpoint.load_model(kind, dropout, device)?, state)
        } else {
            let dtype = config.dtype.dtype();
            let model = Classifier::seeded(kind, dropout, config.seed, device, dtype);
            (model, State::new(identity, config.learning_rate()))
        };
        let mut engine = DataParallel::new(model, mesh)?
            .seed(config.seed)
            .with_optimizer(config.optimizer.init::<B, Classifier<B>>());
        if resume {
            let record = checkpoint.load_optimizer::<B, AnyOptimizer<B, Classifier<B>>>(device)?;
            engine.load_optimizer_record(record)?;
            engine.set_steps(state.global_step);
        }
        Ok(Self {
            engine,
            config,
            data,
            checkpoint,
            state,
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
        let mut pending: Vec<StepOutput<B>> = Vec::new();
        let mut read_at = Instant::now();
        for items in rest {
            let output = self
                .engine
                .train_step(lr, items, |model: &Classifier<B>, items| {
                    Step::new(items_loss(model, &items))
                })?;
            self.state.step_in_epoch += 1;
            self.state.global_step += 1;
            self.state.epoch_items += output.items();
            pending.push(output);
            let due = read_at.elapsed() >= READ_LOSSES_EVERY;
            if due {
                self.read_losses(&mut pending)?;
                read_at = Instant::now();
            }
            let read: usize =
                self.state.epoch_items - pending.iter().map(StepOutput::items).sum::<usize>();
            let go_on = observe(EpochProgress {
                items: self.state.epoch_items,
                loss: self.state.epoch_loss_sum / read.max(1) as f64,
            });
            if !go_on {
                self.read_losses(&mut pending)?;
                return Ok(EpochEnd::Stopped);
            }
        }
        self.read_losses(&mut pending)?;
        let accuracy = self.evaluate()?;
        Ok(EpochEnd::Done(self.state.finish_epoch(accuracy)))
    }

    fn read_losses(&mut self, pending: &mut Vec<StepOutput<B>>) -> anyhow::Result<()> {
        for output in pending.drain(..) {
            let loss = output.loss()?;
            if !loss.is_finite() {
                bail!(
                    "the loss is {loss} at or shortly before step {}: try a smaller --lr (it is {})",
                    self.state.global_step,
                    self.state.lr
                );
            }
            self.state.epoch_loss_sum += loss * output.items() as f64;
        }
        Ok(())
    }

    /// The share of the test digits that the model tells right, over all members of the mesh.
    ///
    /// # Errors
    ///
    /// When a device fails.
    pub fn evaluate(&self) -> anyhow::Result<f64> {
        let mut right = 0;
        for items in in_order(&self.data.test) {
            let labels: Vec<u8> = items.labels().collect();
            let digits = self
                .engine
                .forward(items, |model, items| predict(model, &items))?;
            right += count_right(&digits, &labels);
        }
        Ok(right as f64 / self.data.test.len() as f64)
    }

    /// Writes the model, the optimizer's state and how far the run has come.
    ///
    /// # Errors
    ///
    /// When a device fails or a file cannot be written.
    pub fn save(&self) -> anyhow::Result<()> {
        let model = self.engine.model()?;
        let optimizer = self.engine.optimizer_record()?;
        self.checkpoint
            .save::<B, AnyOptimizer<B, Classifier<B>>>(model, optimizer, &self.state)
            .context("the run could not be saved")
    }
}

/// The mean loss of a model over items, whose tensors are made on the model's device.
pub fn items_loss<B: Backend>(
    model: &Classifier<B>,
    items: &DigitItems,
) -> burn::tensor::Tensor<B, 1> {
    let batch = items.to_batch(&model.device(), model.dtype());
    model.loss(batch.images, batch.targets)
}

/// The digits that a model sees in items, whose tensors are made on the model's device.
pub fn predict<B: Backend>(model: &Classifier<B>, items: &DigitItems) -> Vec<u8> {
    let logits = model.forward(items.to_images(&model.device(), model.dtype()));
    let digits = logits.argmax(1).into_data();
    digits.iter::<i64>().map(|digit| digit as u8).collect()
}

/// The share of the digits that a model tells right, on its one device: a program that knows nothing
/// of a mesh.
pub fn accuracy<B: Backend>(model: &Classifier<B>, digits: &Arc<Digits>) -> f64 {
    let right: usize = in_order(digits)
        .map(|items| count_right(&predict(model, &items), &items.labels().collect::<Vec<_>>()))
        .sum();
    right as f64 / digits.len() as f64
}

fn in_order(digits: &Arc<Digits>) -> impl Iterator<Item = DigitItems> {
    let order: Vec<u32> = (0..digits.len() as u32).collect();
    // The order is not kept: each batch has its own indices.
    batches(digits, &order, EVALUATION_BATCH)
        .collect::<Vec<_>>()
        .into_iter()
}

fn count_right(digits: &[u8], labels: &[u8]) -> usize {
    digits
        .iter()
        .zip(labels)
        .filter(|(digit, label)| digit == label)
        .count()
}

/// Refuses an element type that the backend cannot compute with.
///
/// # Errors
///
/// With the backend's name, and what would work.
pub fn check_dtype<B: Backend>(dtype: FloatKind, device: &B::Device) -> anyhow::Result<()> {
    let name = B::name(device);
    // Burn's fusion has no f64 (its server panics at the first fused operation), and passes on that
    // the backend inside has it.
    let fused = dtype == FloatKind::F64 && name.contains("fusion");
    if fused || !B::supports_dtype(device, dtype.dtype()) {
        bail!("{name} does not compute in {dtype}: leave --dtype away, or use --devices flex:0,1");
    }
    Ok(())
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::*;
    use crate::data::bundled_dir;
    use crate::models::{Mlp, MlpConfig, ModelKind};
    use crate::numeric::parameters;
    use burn::backend::{Autodiff, Flex};
    use burn::module::Module;
    use burn::record::{FullPrecisionSettings, NamedMpkFileRecorder};
    use std::path::Path;

    type B = Autodiff<Flex>;

    fn trainer(spec: &str, out: &Path, resume: bool) -> anyhow::Result<Trainer<B>> {
        let config = TrainConfig {
            model: ModelKind::Mlp,
            epochs: 2,
            // Dropout draws from the generator of the whole process, which other tests use as well.
            dropout: 0.0,
            ..TrainConfig::default()
        };
        let data = DataSet::read(&bundled_dir(), Some(600))?;
        let mesh = Mesh::<Flex>::open(spec)?;
        Trainer::new(&mesh, config, data, Checkpoint::open(out)?, resume)
    }

    fn finish(trainer: &mut Trainer<B>) {
        while !trainer.finished() {
            let end = trainer.run_epoch(|_| true).expect("an epoch");
            assert!(matches!(end, EpochEnd::Done(_)));
        }
        trainer.save().expect("saving");
    }

    #[test]
    fn one_device_loads_the_model_and_is_as_accurate() {
        let out = tempfile::tempdir().expect("a temporary folder");
        let mut run = trainer("flex:0,1,2", out.path(), false).expect("a run");
        finish(&mut run);
        let over_mesh = run.evaluate().expect("an accuracy");

        // As a program would that has never heard of a mesh.
        let device = Default::default();
        let recorder = NamedMpkFileRecorder::<FullPrecisionSettings>::new();
        let model: Mlp<Flex> = MlpConfig::new()
            .init(&device)
            .load_file(out.path().join("model.mpk"), &recorder, &device)
            .expect("a model file");
        let data = DataSet::read(&bundled_dir(), Some(600)).expect("the bundled digits");
        let alone = accuracy(&Classifier::Mlp(model), &data.test);
        assert_eq!(alone, over_mesh);
        assert!(alone > 0.7, "{alone}");
        assert_eq!(
            run.state().history.last().map(|epoch| epoch.accuracy),
            Some(alone)
        );
    }

    #[test]
    fn a_stopped_run_goes_on_as_if_nothing_had_been() {
        let (out, whole_out) = (tempfile::tempdir(), tempfile::tempdir());
        let (out, whole_out) = (out.expect("a folder"), whole_out.expect("a folder"));
        let mut whole = trainer("flex:0,1", whole_out.path(), false).expect("a run");
        finish(&mut whole);

        let mut stopped = trainer("flex:0,1", out.path(), false).expect("a run");
        let end = stopped
            .run_epoch(|progress| progress.items < 200)
            .expect("an epoch");
        assert_eq!(end, EpochEnd::Stopped);
        assert_eq!(
            stopped.state().step_in_epoch,
            4,
            "four batches of 64 are the first 200 items"
        );
        stopped.save().expect("saving");
        drop(stopped);
        let mut resumed = trainer("flex:0,1", out.path(), true).expect("a run");
        assert_eq!(resumed.state().step_in_epoch, 4);
        finish(&mut resumed);

        assert_eq!(resumed.state(), whole.state());
        let values = |run: &Trainer<B>| parameters(&run.engine.model().expect("a model"));
        assert_eq!(values(&resumed), values(&whole));
    }

    #[test]
    fn a_loss_that_is_no_number_ends_the_run() {
        let out = tempfile::tempdir().expect("a temporary folder");
        let mut run = trainer("flex:0,1", out.path(), false).expect("a run");
        run.config.lr = Some(1e30);
        let message = run.run_epoch(|_| true).expect_err("no number").to_string();
        assert!(message.contains("try a smaller --lr"), "{message}");
    }

    #[test]
    fn another_run_is_not_gone_on_with() {
        let out = tempfile::tempdir().expect("a temporary folder");
        let error = trainer("flex:0", out.path(), true).expect_err("nothing there");
        assert!(
            error.to_string().contains("holds no training run"),
            "{error}"
        );
        let run = trainer("flex:0", out.path(), false).expect("a run");
        run.save().expect("saving");
        // On another number of devices it is the same run.
        trainer("flex:0,1", out.path(), true).expect("the same run");
    }
}
