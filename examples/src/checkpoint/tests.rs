use super::*;
use crate::config::FloatKind;
use crate::numeric::parameters;
use crate::optimizer::{AnyOptimizer, OptimizerKind};
use burn::backend::{Autodiff, Flex};
use burn::module::{AutodiffModule, Module};
use burn::optim::{GradientsParams, Optimizer};
use burn::record::{FullPrecisionSettings, NamedMpkFileRecorder};
use burn::tensor::{DType, Tensor};
use tempfile::TempDir;

type B = Autodiff<Flex>;
type Model = Classifier<B>;
type Optim = AnyOptimizer<B, Model>;

fn identity(model: ModelKind) -> Identity {
    Identity {
        model,
        optimizer: OptimizerKind::Adam,
        batch_size: 64,
        seed: 42,
        dropout: 0.0,
        dtype: FloatKind::F32,
        train_items: 8000,
        test_items: 2000,
        data_fingerprint: "00ff".to_owned(),
    }
}

/// A step on made-up data, the same for the same `key`.
fn step(model: Model, optimizer: &mut Optim, key: i32) -> Model {
    let device = Default::default();
    let images = Tensor::<B, 3>::ones([2, 28, 28], &device) * f64::from(key);
    let loss = model.loss(images, Tensor::from_data([key, 9 - key], &device));
    let grads = GradientsParams::from_grads(loss.backward(), &model);
    optimizer.step(0.01, model, grads)
}

fn save(dir: &TempDir, model: &Model, optimizer: &Optim, state: &State) -> Checkpoint {
    let checkpoint = Checkpoint::open(dir.path()).expect("a folder");
    let snapshot = Snapshot::new::<B, _>(model.valid(), optimizer.to_record());
    checkpoint
        .save(&snapshot.expect("records"), state)
        .expect("saving");
    checkpoint
}

fn files(dir: &TempDir) -> Vec<String> {
    let entries = fs::read_dir(dir.path()).expect("a folder");
    let mut names: Vec<String> = entries
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    names.sort();
    names
}

#[test]
fn a_loaded_run_goes_on_as_the_saved_one() {
    let device = Default::default();
    for (kind, optimizer_kind) in [
        (ModelKind::Mlp, OptimizerKind::Adam),
        (ModelKind::Cnn, OptimizerKind::Sgd),
    ] {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let mut optimizer: Optim = optimizer_kind.init();
        let mut model = Model::seeded(kind, 0.0, 1, &device, DType::F32);
        model = step(model, &mut optimizer, 1);
        let state = State::new(identity(kind), 0.01);
        let checkpoint = save(&dir, &model, &optimizer, &state);
        assert_eq!(files(&dir), ["model.mpk", "optimizer.mpk", "state.json"]);

        assert_eq!(checkpoint.load_state(&state.run).expect("a state"), state);
        let mut loaded: Model = checkpoint.load_model(kind, 0.0, &device).expect("a model");
        assert_eq!(parameters(&loaded), parameters(&model));
        let mut loaded_optimizer: Optim = optimizer_kind.init();
        let snapshot = checkpoint.load().expect("the files");
        loaded_optimizer =
            loaded_optimizer.load_record(snapshot.optimizer::<B, _>(&device).expect("a record"));
        for key in 2..5 {
            model = step(model, &mut optimizer, key);
            loaded = step(loaded, &mut loaded_optimizer, key);
        }
        assert_eq!(parameters(&loaded), parameters(&model));
    }
}

#[test]
fn the_model_file_is_that_of_a_plain_burn_program() {
    use crate::models::{Cnn, CnnConfig};
    let dir = tempfile::tempdir().expect("a temporary folder");
    let device = Default::default();
    let model = Model::seeded(ModelKind::Cnn, 0.0, 1, &device, DType::F32);
    let state = State::new(identity(ModelKind::Cnn), 0.01);
    let checkpoint = save(&dir, &model, &OptimizerKind::Adam.init(), &state);
    let recorder = NamedMpkFileRecorder::<FullPrecisionSettings>::new();
    let plain: Cnn<Flex> = CnnConfig::new()
        .init(&device)
        .load_file(checkpoint.model_path(), &recorder, &device)
        .expect("a model file");
    let values = |values: crate::numeric::Values| -> Vec<Vec<f64>> {
        values.into_iter().map(|(_, tensor)| tensor).collect()
    };
    assert_eq!(values(parameters(&plain)), values(parameters(&model)));
}

#[test]
fn an_interrupted_save_leaves_one_run_whole() {
    let device = Default::default();
    let mut optimizer: Optim = OptimizerKind::Adam.init();
    let old = Model::seeded(ModelKind::Mlp, 0.0, 1, &device, DType::F32);
    let new = step(old.clone(), &mut optimizer, 1);
    let old_state = State::new(identity(ModelKind::Mlp), 0.01);
    let mut new_state = old_state.clone();
    new_state.global_step = 1;

    let other = tempfile::tempdir().expect("a temporary folder");
    save(&other, &new, &optimizer, &new_state);
    // How many of the files were written and how many renamed when the program ended.
    for (written, renamed) in [(1, 0), (2, 0), (3, 0), (3, 1), (3, 2), (3, 3)] {
        let dir = tempfile::tempdir().expect("a temporary folder");
        save(&dir, &old, &OptimizerKind::Adam.init(), &old_state);
        for (i, (name, temporary)) in FILES.into_iter().enumerate().take(written) {
            let target = if i < renamed { name } else { temporary };
            fs::copy(other.path().join(name), dir.path().join(target)).expect("copying");
        }
        let checkpoint = Checkpoint::open(dir.path()).expect("a folder");
        assert_eq!(files(&dir), ["model.mpk", "optimizer.mpk", "state.json"]);
        let (state, model) = match written {
            3 => (&new_state, &new),
            _ => (&old_state, &old),
        };
        assert_eq!(&checkpoint.load_state(&state.run).expect("a state"), state);
        let loaded: Model = checkpoint
            .load_model(ModelKind::Mlp, 0.0, &device)
            .expect("a model");
        assert_eq!(parameters(&loaded), parameters(model));
    }
}

#[test]
fn refuses_what_is_no_run_or_another_one() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let checkpoint = Checkpoint::open(dir.path()).expect("a folder");
    let run = identity(ModelKind::Mlp);
    let check = |text: Option<&str>, expected: &str| {
        if let Some(text) = text {
            fs::write(dir.path().join("state.json"), text).expect("writing");
        }
        let message = checkpoint
            .load_state(&run)
            .expect_err("no such run")
            .to_string();
        assert!(message.contains(expected), "{message}");
    };
    check(None, "holds no training run to resume");
    check(Some("{"), "does not hold the state of a training run");
    check(
        Some("{\"version\": 7}"),
        "version 7 and this program reads version 1",
    );
    let other = State::new(identity(ModelKind::Cnn), 0.1);
    let text = serde_json::to_string(&other).expect("a state");
    check(Some(&text), "its model is cnn, this run's is mlp");
}

#[test]
fn a_model_of_another_kind_is_refused() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let device = Default::default();
    let model = Model::seeded(ModelKind::Mlp, 0.0, 1, &device, DType::F32);
    let state = State::new(identity(ModelKind::Mlp), 0.1);
    let checkpoint = save(&dir, &model, &OptimizerKind::Adam.init(), &state);
    let error = checkpoint
        .load_model::<B>(ModelKind::Cnn, 0.0, &device)
        .expect_err("another model");
    assert!(error.to_string().contains("model.mpk"), "{error}");
}

#[test]
fn a_file_of_its_own_name_is_seen_also_without_a_run() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let checkpoint = Checkpoint::open(dir.path()).expect("a folder");
    assert_eq!(
        (checkpoint.occupied(), checkpoint.holds_a_run()),
        (None, false)
    );
    fs::write(dir.path().join("notes.txt"), "").expect("writing");
    assert_eq!(checkpoint.occupied(), None);
    let model = checkpoint.model_path();
    fs::write(&model, "somebody's").expect("writing");
    assert_eq!(checkpoint.occupied(), Some(model));
    assert!(!checkpoint.holds_a_run());
}
