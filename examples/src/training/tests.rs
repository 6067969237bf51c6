use super::*;
use crate::data::bundled_dir;
use crate::engine::EngineKind;
use crate::models::{Mlp, MlpConfig, ModelKind};
use crate::numeric::{Values, parameters, relative_difference};
use burn::backend::{Autodiff, Flex};
use burn::module::Module;
use burn::record::{FullPrecisionSettings, NamedMpkFileRecorder};
use std::path::Path;

type B = Autodiff<Flex>;

fn trainer(engine: EngineKind, spec: &str, out: &Path, resume: bool) -> anyhow::Result<Trainer> {
    let config = TrainConfig {
        engine,
        model: ModelKind::Mlp,
        epochs: 2,
        // Dropout draws from the generator of the whole process, which other tests use as well.
        dropout: 0.0,
        ..TrainConfig::default()
    };
    let data = DataSet::read(&bundled_dir(), Some(600))?;
    let mesh = Mesh::<Flex>::open(spec)?;
    Trainer::new::<B>(&mesh, config, data, Checkpoint::open(out)?, resume)
}

fn finish(trainer: &mut Trainer) {
    while !trainer.finished() {
        let end = trainer.run_epoch(|_| true).expect("an epoch");
        assert!(matches!(end, EpochEnd::Done(_)));
    }
    trainer.save().expect("saving");
}

fn parameters_of(run: &Trainer) -> Values {
    let snapshot = run.engine.snapshot().expect("records");
    let model: Classifier<Flex> = snapshot
        .model(run.config.model, 0.0, &Default::default())
        .expect("a model");
    parameters(&model)
}

#[test]
fn one_device_loads_the_model_and_is_as_accurate() {
    for engine in EngineKind::ALL {
        let out = tempfile::tempdir().expect("a temporary folder");
        let mut run = trainer(engine, "flex:0,1,2", out.path(), false).expect("a run");
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
        let alone = accuracy(&Classifier::Mlp(model), &data.test).expect("an accuracy");
        assert_eq!(alone, over_mesh);
        assert!(alone > 0.7, "{engine}: {alone}");
        assert_eq!(
            run.state().history.last().map(|epoch| epoch.accuracy),
            Some(alone)
        );
    }
}

#[test]
fn a_stopped_run_goes_on_as_if_nothing_had_been() {
    for engine in EngineKind::ALL {
        let (out, whole_out) = (tempfile::tempdir(), tempfile::tempdir());
        let (out, whole_out) = (out.expect("a folder"), whole_out.expect("a folder"));
        let mut whole = trainer(engine, "flex:0,1", whole_out.path(), false).expect("a run");
        finish(&mut whole);

        let mut stopped = trainer(engine, "flex:0,1", out.path(), false).expect("a run");
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
        let mut resumed = trainer(engine, "flex:0,1", out.path(), true).expect("a run");
        assert_eq!(resumed.state().step_in_epoch, 4);
        finish(&mut resumed);

        assert_eq!(resumed.state(), whole.state());
        assert_eq!(parameters_of(&resumed), parameters_of(&whole));
    }
}

/// The run is the same one, up to rounding: the engines add up in different orders.
#[test]
fn the_other_engine_goes_on_with_a_run() {
    let whole_out = tempfile::tempdir().expect("a folder");
    let mut whole = trainer(EngineKind::Replica, "flex:0", whole_out.path(), false).expect("a run");
    finish(&mut whole);
    for (first, second) in [
        (EngineKind::Decorator, EngineKind::Replica),
        (EngineKind::Replica, EngineKind::Decorator),
    ] {
        let out = tempfile::tempdir().expect("a folder");
        let mut begun = trainer(first, "flex:0,1", out.path(), false).expect("a run");
        begun
            .run_epoch(|progress| progress.items < 200)
            .expect("an epoch");
        begun.save().expect("saving");
        drop(begun);
        let mut run = trainer(second, "flex:0,1,2", out.path(), true).expect("the same run");
        assert_eq!(run.state().global_step, 4);
        finish(&mut run);
        assert_eq!(run.state().global_step, whole.state().global_step);
        let difference = relative_difference(&parameters_of(&whole), &parameters_of(&run));
        assert!(difference < 1e-3, "{first} then {second}: {difference}");
        let losses = run.state().history.iter().zip(&whole.state().history);
        for (ours, theirs) in losses {
            assert!(
                (ours.loss / theirs.loss - 1.0).abs() < 1e-4,
                "{ours:?} {theirs:?}"
            );
        }
    }
}

#[test]
fn a_loss_that_is_no_number_ends_the_run() {
    for engine in EngineKind::ALL {
        let out = tempfile::tempdir().expect("a temporary folder");
        let mut run = trainer(engine, "flex:0,1", out.path(), false).expect("a run");
        run.config.lr = Some(1e30);
        let message = run.run_epoch(|_| true).expect_err("no number").to_string();
        assert!(message.contains("try a smaller --lr"), "{message}");
    }
}

#[test]
fn another_run_is_not_gone_on_with() {
    let trainer = |spec, out: &Path, resume| trainer(EngineKind::Replica, spec, out, resume);
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
