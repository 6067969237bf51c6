//! Checkpoints, killed trainings, early stopping, interruption.

use burn::backend::{Autodiff, Flex};
use burn::lr_scheduler::cosine::{CosineAnnealingLrScheduler, CosineAnnealingLrSchedulerConfig};
use burn::module::AutodiffModule;
use burn::optim::adaptor::OptimizerAdaptor;
use burn::optim::{Adam, AdamConfig};
use burn::record::{DoublePrecisionSettings, NamedMpkFileRecorder};
use burn::train::metric::LossMetric;
use burn::train::metric::store::{Aggregate, Direction, Split};
use burn::train::{
    EarlyStoppingStrategy, ExecutionStrategy, Interrupter, Learner, MetricEarlyStoppingStrategy,
    StoppingCondition, SupervisedTraining, TrainingStrategy,
};
use burn_multigpu::train::last_checkpoint;
use burn_multigpu::{Mesh, MultiGpuStrategy, OptimizerPlacement};
use burn_multigpu_tests::trainee::{Components, Metrics, Trainee, training};
use burn_multigpu_tests::{compare, draws};
use std::path::Path;
use std::sync::Mutex;

type B = Autodiff<Flex>;
type O = OptimizerAdaptor<Adam, Trainee<B>, B>;
type LC = Components<B, CosineAnnealingLrScheduler, O>;

/// A learner of the model as it is. A clone would share its running statistics.
fn learner(model: &Trainee<B>) -> Learner<LC> {
    let model = Trainee::from_inner(model.valid());
    let scheduler = CosineAnnealingLrSchedulerConfig::new(0.02, 9)
        .init()
        .unwrap();
    Learner::new(model, AdamConfig::new().init(), scheduler)
}

fn mesh() -> Mesh<Flex> {
    Mesh::open("flex:0-2").unwrap()
}

/// A strategy and its name.
type Named = (&'static str, fn() -> TrainingStrategy<LC>);

fn strategies() -> [Named; 3] {
    [
        ("one device", || {
            ExecutionStrategy::single(Default::default()).into()
        }),
        ("replicated", || MultiGpuStrategy::new(&mesh()).into()),
        ("sharded", || {
            MultiGpuStrategy::new(&mesh())
                .optimizer_placement(OptimizerPlacement::Sharded)
                .into()
        }),
    ]
}

fn training_in(dir: &Path, epochs: usize) -> (SupervisedTraining<LC>, Metrics) {
    training(dir, epochs, &Default::default())
}

fn values(model: &impl burn::module::Module<Flex>) -> Vec<Vec<f64>> {
    let params = compare::params(model).into_iter();
    params.map(|(_, values)| values).collect()
}

/// Stops the training in the middle of an epoch, as if it had been killed: what is on the disk then
/// are the checkpoints of whole epochs.
#[derive(Clone)]
struct Kill(Interrupter);

impl EarlyStoppingStrategy for Kill {
    fn should_stop(
        &mut self,
        epoch: usize,
        _: &burn::train::metric::store::EventStoreClient,
    ) -> bool {
        if epoch == 2 {
            self.0.stop(Some("killed"));
        }
        false
    }
}

/// Three epochs at once, and two epochs, a part of the third, and then the third from the checkpoint.
#[test]
fn a_killed_training_resumes_to_the_same_parameters() {
    let _random = draws();
    let model = Trainee::<B>::new(true, &Default::default());
    for (what, strategy) in &strategies()[1..] {
        let whole = tempfile::tempdir().unwrap();
        let (training, _) = training_in(whole.path(), 3);
        let whole = training
            .with_training_strategy(strategy())
            .launch(learner(&model));

        let dir = tempfile::tempdir().unwrap();
        let (training, metrics) = training_in(dir.path(), 3);
        let interrupter = training.interrupter();
        let training = training.early_stopping(Kill(interrupter));
        training
            .with_training_strategy(strategy())
            .launch(learner(&model));
        let third = metrics.take();
        let third = third.iter().filter(|(place, _)| place.contains("epoch 3"));
        assert_eq!(
            third.count(),
            4,
            "{what}: killed after the first batch of the third epoch"
        );

        // A new process: nothing but the folder is left.
        let (training, _) = training_in(dir.path(), 3);
        let training = training.checkpoint(2).with_training_strategy(strategy());
        let fresh = Trainee::<B>::new(true, &Default::default());
        let resumed = training.launch(learner(&fresh));
        // Bit for bit: the checkpoint has every bit, and sums have one order.
        assert_eq!(values(&whole.model), values(&resumed.model), "{what}");
    }
}

/// A checkpoint of a mesh is one of a single device, and the other way round.
#[test]
fn checkpoints_fit_any_number_of_devices() {
    let _random = draws();
    let model = Trainee::<B>::new(false, &Default::default());
    let dir = tempfile::tempdir().unwrap();
    let (training, _) = training_in(dir.path(), 1);
    let (_, sharded) = strategies()[2];
    training
        .with_training_strategy(sharded())
        .launch(learner(&model));
    let mut ends = Vec::new();
    for (what, strategy) in strategies() {
        let copy = tempfile::tempdir().unwrap();
        let checkpoints = copy.path().join("checkpoint");
        std::fs::create_dir(&checkpoints).unwrap();
        for entry in std::fs::read_dir(dir.path().join("checkpoint")).unwrap() {
            let path = entry.unwrap().path();
            std::fs::copy(&path, checkpoints.join(path.file_name().unwrap())).unwrap();
        }
        let (training, metrics) = training_in(copy.path(), 2);
        let training = training.checkpoint(1).with_training_strategy(strategy());
        // The order of the data differs: a single device starts again with the first epoch's.
        let result = training.launch(learner(&model));
        if what != "one device" {
            ends.push((values(&result.model), metrics.take()));
        }
    }
    let [replicated, sharded] = ends.try_into().unwrap();
    assert_eq!(replicated, sharded);
}

#[test]
fn early_stopping_and_interruption_work() {
    let _random = draws();
    let model = Trainee::<B>::new(false, &Default::default());
    let dir = tempfile::tempdir().unwrap();
    let (training, metrics) = training_in(dir.path(), 9);
    // The loss does not get higher for ever, so that "no improvement" comes soon.
    let stopping = MetricEarlyStoppingStrategy::new(
        &LossMetric::<Flex>::new(),
        Aggregate::Mean,
        Direction::Highest,
        Split::Valid,
        StoppingCondition::NoImprovementSince { n_epochs: 1 },
    );
    let training = training.early_stopping(stopping);
    let strategy = MultiGpuStrategy::new(&mesh());
    strategy.launch(training, learner(&model)).unwrap();
    let epochs = |metrics: Vec<(String, f64)>| {
        let last = (1..=9).rev().find(|epoch| {
            let epoch = format!("epoch {epoch}:");
            metrics.iter().any(|(place, _)| place.contains(&epoch))
        });
        last.unwrap()
    };
    assert!(epochs(metrics.take()) < 9);

    let (training, metrics) = training_in(dir.path(), 9);
    let interrupter = Mutex::new(training.interrupter());
    interrupter.lock().unwrap().stop(Some("enough"));
    MultiGpuStrategy::new(&mesh())
        .launch(training, learner(&model))
        .unwrap();
    // One batch, as with the single-device strategy.
    assert_eq!(metrics.take().len(), 4);
}

#[test]
fn half_a_checkpoint_is_passed_over() {
    let _random = draws();
    let model = Trainee::<B>::new(false, &Default::default());
    let dir = tempfile::tempdir().unwrap();
    let recorder = NamedMpkFileRecorder::<DoublePrecisionSettings>::new();
    let last = || last_checkpoint::<LC, _>(dir.path(), &recorder, &Default::default());
    assert_eq!(last(), None);
    let (training, _) = training_in(dir.path(), 3);
    let strategy = MultiGpuStrategy::new(&mesh());
    strategy.launch(training, learner(&model)).unwrap();
    assert_eq!(last(), Some(3));
    let path = dir.path().join("checkpoint/optim-3.mpk");
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    assert_eq!(last(), Some(2));
}
