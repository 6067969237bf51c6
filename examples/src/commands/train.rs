//! `multigpu train`

use std::time::Instant;

use anyhow::{Context, bail};
use burn_multigpu::{Mesh, MeshSpec};

use super::{Outcome, spec_or_default};
use crate::backend::{Task, TrainBackend, dispatch};
use crate::checkpoint::Checkpoint;
use crate::cli::TrainArgs;
use crate::config::TrainConfig;
use crate::data::{DataSet, bundled_dir};
use crate::interrupt::Interrupt;
use crate::training::{EpochEnd, Trainer};
use crate::ui::Ui;

/// Trains a network, or goes on training it.
///
/// # Errors
///
/// When the configuration makes no sense, the data or the run in the folder cannot be read, or a
/// device fails.
pub fn train(args: TrainArgs, ui: Ui) -> anyhow::Result<Outcome> {
    let (resume, force) = (args.resume, args.force);
    let (config, spec) = settings(args)?;
    let dir = config.data.clone().unwrap_or_else(bundled_dir);
    let data = DataSet::read(&dir, config.limit)?;
    let checkpoint = Checkpoint::open(&config.out)?;
    if !resume && !force {
        refuse_to_replace(&checkpoint)?;
    }
    // Before the devices are opened, which can take seconds.
    let interrupt = Interrupt::install()?;
    let task = TrainTask {
        config,
        data,
        checkpoint,
        resume,
        ui,
        interrupt,
    };
    dispatch(&spec, task)
}

fn refuse_to_replace(checkpoint: &Checkpoint) -> anyhow::Result<()> {
    if checkpoint.holds_a_run() {
        bail!(
            "{} holds a run already: go on with it by --resume, replace it by --force, or write to another folder with --out",
            checkpoint.dir().display()
        );
    }
    if let Some(path) = checkpoint.occupied() {
        bail!(
            "{} is there already, and of no run that could be gone on with: replace it by --force, or write to another folder with --out",
            path.display()
        );
    }
    Ok(())
}

/// The configuration file with the flags over it, and the mesh.
fn settings(args: TrainArgs) -> anyhow::Result<(TrainConfig, MeshSpec)> {
    let mut config = match &args.config {
        Some(path) => TrainConfig::read(path)?,
        None => TrainConfig::default(),
    };
    macro_rules! override_with {
        ($($field:ident),*) => {
            $(if let Some(value) = args.$field {
                config.$field = value;
            })*
        };
    }
    override_with!(
        engine, model, batch_size, epochs, optimizer, seed, dropout, dtype, out
    );
    config.lr = args.lr.or(config.lr);
    config.data = args.data.or(config.data);
    config.limit = args.limit.or(config.limit);
    config.validate()?;
    let spec = match (args.mesh.devices, &config.devices) {
        (Some(spec), _) => spec,
        (None, Some(text)) => text
            .parse::<MeshSpec>()
            .context("in the key `devices` of the configuration")?,
        (None, None) => spec_or_default(None)?,
    };
    Ok((config, spec))
}

struct TrainTask {
    config: TrainConfig,
    data: DataSet,
    checkpoint: Checkpoint,
    resume: bool,
    ui: Ui,
    interrupt: Interrupt,
}

impl Task for TrainTask {
    type Output = Outcome;

    fn run<B: TrainBackend>(self, spec: &MeshSpec) -> anyhow::Result<Outcome> {
        let Self { config, ui, .. } = &self;
        let mesh = Mesh::<B::InnerBackend>::open_spec(spec)?;
        ui.remark(format_args!("{mesh}"));
        ui.remark(format_args!(
            "engine {}: {} with {}, batches of {} over {} member{}, {} digits",
            config.engine,
            config.model,
            config.optimizer,
            config.batch_size,
            mesh.len(),
            if mesh.len() == 1 { "" } else { "s" },
            self.data.train.len(),
        ));
        let trainer = Trainer::new::<B>(
            &mesh,
            config.clone(),
            self.data.clone(),
            self.checkpoint.clone(),
            self.resume,
        )?;
        self.train(trainer)
    }
}

impl TrainTask {
    /// To the end of the run, or to where somebody stops it.
    fn train(&self, mut trainer: Trainer) -> anyhow::Result<Outcome> {
        let ui = &self.ui;
        let state = trainer.state();
        if self.resume {
            ui.remark(format_args!(
                "resuming after {} epochs and {} steps ({} altogether)",
                state.epoch, state.step_in_epoch, state.global_step
            ));
        }
        while !trainer.finished() {
            if !self.epoch(&mut trainer)? {
                trainer.save()?;
                let state = trainer.state();
                ui.line(format_args!(
                    "interrupted in epoch {} after step {}, saved in {}: the same command with --resume goes on",
                    state.epoch + 1,
                    state.step_in_epoch,
                    self.checkpoint.dir().display()
                ));
                return Ok(Outcome::Interrupted);
            }
            trainer.save()?;
        }
        let accuracy = match trainer.state().history.last() {
            Some(record) => record.accuracy,
            None => trainer.evaluate()?,
        };
        ui.result(format_args!(
            "test accuracy {:.2} % of {} digits",
            100.0 * accuracy,
            self.data.test.len()
        ));
        ui.result(format_args!(
            "model {}",
            self.checkpoint.model_path().display()
        ));
        Ok(Outcome::Done)
    }

    /// Whether the epoch came to its end.
    fn epoch(&self, trainer: &mut Trainer) -> anyhow::Result<bool> {
        let state = trainer.state();
        let (number, earlier) = (state.epoch + 1, state.epoch_items);
        let title = format!("epoch {number}/{}", self.config.epochs);
        let begin = Instant::now();
        let bar = self.ui.progress(&title, self.data.train.len());
        bar.start_at(earlier);
        let end = trainer.run_epoch(|progress| {
            bar.set(progress.items, format!("loss {:.4}", progress.loss));
            !self.interrupt.requested()
        })?;
        drop(bar);
        let EpochEnd::Done(record) = end else {
            return Ok(false);
        };
        let seconds = begin.elapsed().as_secs_f64();
        self.ui.line(format_args!(
            "{title}  loss {:.4}  test accuracy {:.2} %  {:.0} items/s  {seconds:.1} s",
            record.loss,
            100.0 * record.accuracy,
            (self.data.train.len() - earlier) as f64 / seconds,
        ));
        Ok(true)
    }
}
