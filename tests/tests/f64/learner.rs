//! burn-train's `Learner` on a mesh against the same training on one device: the parameters after
//! each update and every metric value, for optimizers, accumulation, clipping, schedulers and
//! placements.

use crate::BOUND;
use burn::backend::{Autodiff, Flex};
use burn::grad_clipping::GradientClippingConfig;
use burn::lr_scheduler::LrScheduler;
use burn::lr_scheduler::constant::ConstantLr;
use burn::lr_scheduler::cosine::CosineAnnealingLrSchedulerConfig;
use burn::module::{Module, ModuleMapper, Param, ParamId};
use burn::optim::momentum::MomentumConfig;
use burn::optim::{AdamConfig, Optimizer, SgdConfig};
use burn::tensor::backend::{AutodiffBackend, Backend};
use burn::tensor::{DType, Tensor, TensorData};
use burn::train::{ExecutionStrategy, Learner, LearnerOptimizerRecord, TrainingStrategy};
use burn_multigpu::train::{LoaderBatch, StatePerParameter};
use burn_multigpu::{Compression, Mesh, MultiGpu, MultiGpuStrategy, OptimizerPlacement};
use burn_multigpu_tests::trainee::{Components, Images, Trainee, loader, training, training_on};
use burn_multigpu_tests::{compare, use_f64};

type B = Autodiff<Flex>;
type LC<LR, O> = Components<B, LR, O>;

/// What a training gave.
struct Run {
    /// All parameters after each update.
    updates: Vec<Vec<Vec<f64>>>,
    metrics: Vec<(String, f64)>,
    /// The parameters and running statistics at the end.
    end: Vec<Vec<f64>>,
}

/// Two epochs.
fn run<B, LR, O>(
    model: Trainee<B>,
    optimizer: O,
    scheduler: LR,
    accumulation: Option<usize>,
    strategy: impl Into<TrainingStrategy<Components<B, LR, O>>>,
    device: &B::Device,
) -> Run
where
    B: AutodiffBackend,
    LR: LrScheduler + 'static,
    O: Optimizer<Trainee<B>, B> + 'static,
{
    let dir = tempfile::tempdir().unwrap();
    let (mut training, metrics) = training::<B, LR, O>(dir.path(), 2, device);
    if let Some(accumulation) = accumulation {
        training = training.grads_accumulation(accumulation);
    }
    let (model, updates) = model.watched();
    let learner = Learner::new(model, optimizer, scheduler);
    let result = training
        .with_training_strategy(strategy.into())
        .launch(learner);
    let end = compare::params(&result.model);
    Run {
        updates: updates.take(),
        metrics: metrics.take(),
        end: end.into_iter().map(|(_, values)| values).collect(),
    }
}

fn differ(a: &[Vec<f64>], b: &[Vec<f64>]) -> f64 {
    assert_eq!(a.len(), b.len());
    let pairs = a.iter().zip(b);
    pairs
        .map(|(a, b)| compare::difference(a, b))
        .fold(0.0, f64::max)
}

/// Every metric value at its place, and the end.
fn assert_same_values(one: &Run, mesh: &Run, bound: f64, what: &str) {
    // 6 batches of 4 metrics and 3 of 3 in each of 2 epochs.
    assert_eq!(one.metrics.len(), 2 * (6 * 4 + 3 * 3), "{what}");
    assert_eq!(one.metrics.len(), mesh.metrics.len(), "{what}");
    for ((place, a), (other, b)) in one.metrics.iter().zip(&mesh.metrics) {
        assert_eq!(place, other, "{what}");
        let difference = compare::difference(&[*a], &[*b]);
        assert!(difference < bound, "{what}, {place}: {a} and {b}");
    }
    let worst = differ(&one.end, &mesh.end);
    assert!(worst < bound, "{what}: parameters differ by {worst:e}");
}

/// The parameters after each update: every member makes it.
fn assert_same_updates(one: &Run, mesh: &Run, members: usize, what: &str) {
    assert_eq!(mesh.updates.len(), one.updates.len() * members, "{what}");
    for (step, updates) in mesh.updates.chunks(members).enumerate() {
        for update in updates {
            let worst = differ(&one.updates[step], update);
            assert!(worst < BOUND, "{what}, update {step}: {worst:e}");
        }
    }
}

/// The strategy against one device, on meshes of 1, 2, 3 and 5, replicated and sharded.
fn is_one_device<LR, O>(optimizer: O, scheduler: LR, accumulation: Option<usize>)
where
    LR: LrScheduler + 'static,
    O: Optimizer<Trainee<B>, B> + 'static,
    LearnerOptimizerRecord<LC<LR, O>>: StatePerParameter,
{
    use_f64();
    let device = Default::default();
    let model = Trainee::<B>::new(false, &device);
    let go = |strategy: TrainingStrategy<LC<LR, O>>| {
        let (optimizer, scheduler) = (optimizer.clone(), scheduler.clone());
        run(
            model.clone(),
            optimizer,
            scheduler,
            accumulation,
            strategy,
            &device,
        )
    };
    let one = go(ExecutionStrategy::single(device).into());
    assert_eq!(one.updates.len(), 2 * (6 / accumulation.unwrap_or(1)));
    for members in [1, 2, 3, 5] {
        let mesh = Mesh::<Flex>::from_devices(vec![device; members]).unwrap();
        let replicated = go(MultiGpuStrategy::new(&mesh).into());
        let what = format!("{members} members");
        assert_same_values(&one, &replicated, BOUND, &what);
        assert_same_updates(&one, &replicated, members, &what);
        let sharded = MultiGpuStrategy::new(&mesh).optimizer_placement(OptimizerPlacement::Sharded);
        let sharded = go(sharded.into());
        assert_same_values(&one, &sharded, BOUND, &format!("{what}, sharded"));
    }
}

#[test]
fn adam_with_a_scheduler() {
    let scheduler = CosineAnnealingLrSchedulerConfig::new(0.02, 7)
        .init()
        .unwrap();
    is_one_device(AdamConfig::new().init(), scheduler, None);
}

#[test]
fn adam_with_clipping_by_norm_and_accumulation() {
    let clipping = GradientClippingConfig::Norm(0.05);
    let optimizer = AdamConfig::new().with_grad_clipping(Some(clipping));
    // 6 batches an epoch, and the last 2 of each lead to no update, as on one device.
    is_one_device(optimizer.init(), ConstantLr::new(0.01), Some(4));
}

fn momentum() -> SgdConfig {
    SgdConfig::new().with_momentum(Some(MomentumConfig::new()))
}

#[test]
fn momentum_with_clipping_by_value() {
    let optimizer = momentum().with_gradient_clipping(Some(GradientClippingConfig::Value(0.02)));
    is_one_device(optimizer.init(), ConstantLr::new(0.05), None);
}

#[test]
fn momentum_with_accumulation_and_a_scheduler() {
    let scheduler = CosineAnnealingLrSchedulerConfig::new(0.02, 7)
        .init()
        .unwrap();
    is_one_device(momentum().init(), scheduler, Some(3));
}

/// The other door: the single-device strategy, on a device that is a mesh. Batch norm sees the whole
/// batch there.
#[test]
fn the_decorator_under_the_single_device_strategy() {
    use_f64();
    let device = Default::default();
    let model = Trainee::<B>::new(true, &device);
    // Before the first training, which moves the running statistics that clones share.
    let values = compare::params(&model);
    let strategy = ExecutionStrategy::single(device);
    let one = run(
        model,
        AdamConfig::new().init(),
        ConstantLr::new(0.01),
        Some(2),
        strategy,
        &device,
    );
    for spec in ["flex:0", "flex:0-2"] {
        let mesh = Mesh::<Flex>::open(spec).unwrap();
        let on_mesh = mesh.device();
        let copy = with_values::<Autodiff<MultiGpu<Flex>>>(values.clone(), &on_mesh);
        let strategy = ExecutionStrategy::single(on_mesh.clone());
        let other = run(
            copy,
            AdamConfig::new().init(),
            ConstantLr::new(0.01),
            Some(2),
            strategy,
            &on_mesh,
        );
        assert_same_values(&one, &other, BOUND, spec);
        assert_same_updates(&one, &other, 1, spec);
    }
}

/// A model with these parameters. Not by way of a record, which Burn keeps in f32.
fn with_values<To: AutodiffBackend>(
    values: Vec<(ParamId, Vec<f64>)>,
    device: &To::Device,
) -> Trainee<To> {
    struct Set(std::vec::IntoIter<(ParamId, Vec<f64>)>);
    impl<B: Backend> ModuleMapper<B> for Set {
        fn map_float<const D: usize>(&mut self, param: Param<Tensor<B, D>>) -> Param<Tensor<B, D>> {
            let (_, old, mapper) = param.consume();
            let (id, values) = self.0.next().unwrap();
            let values = TensorData::new(values, old.shape());
            let tensor = Tensor::from_data(values, (&old.device(), DType::F64));
            Param::from_mapped_value(id, tensor.set_require_grad(old.is_require_grad()), mapper)
        }
    }
    Trainee::<To>::new(true, device).map(&mut Set(values.into_iter()))
}

/// Compressed gradients are close, and not the same.
#[test]
fn compression_rounds_and_no_more() {
    use_f64();
    let device = Default::default();
    let model = Trainee::<B>::new(false, &device);
    let go = |strategy: TrainingStrategy<LC<ConstantLr, _>>| {
        run(
            model.clone(),
            momentum().init(),
            ConstantLr::new(0.01),
            None,
            strategy,
            &device,
        )
    };
    let one = go(ExecutionStrategy::single(device).into());
    let mesh = Mesh::<Flex>::from_devices(vec![device; 3]).unwrap();
    // Rounded twice to 11 and 8 bits, over 12 updates whose sum is below a tenth of a parameter.
    for (compression, bound) in [
        (Compression::F16, 2f64.powi(-11)),
        (Compression::Bf16, 2f64.powi(-8)),
    ] {
        let strategy = MultiGpuStrategy::new(&mesh).compression(compression);
        let compressed = go(strategy.into());
        let worst = differ(&one.end, &compressed.end);
        assert!(worst > 1e-7 && worst < bound, "{compression:?}: {worst:e}");
    }
}

/// A batch of the loader for each member is a batch that is as many times as large.
#[test]
fn one_batch_for_each_member() {
    use_f64();
    let device = Default::default();
    let model = Trainee::<B>::new(false, &device);
    let go = |batch: usize, strategy: TrainingStrategy<LC<ConstantLr, _>>| {
        let (model, updates) = model.clone().watched();
        let dir = tempfile::tempdir().unwrap();
        let train = loader::<B>(Images::new(53, 1), batch, None, 0, &device);
        let valid = loader::<Flex>(Images::new(17, 2), batch, None, 0, &device);
        let (training, metrics) = training_on(dir.path(), 1, train, valid);
        let learner = Learner::new(model, momentum().init(), ConstantLr::new(0.05));
        let result = training.with_training_strategy(strategy).launch(learner);
        let end = compare::params(&result.model).into_iter();
        Run {
            updates: updates.take(),
            metrics: metrics.take(),
            end: end.map(|(_, values)| values).collect(),
        }
    };
    let one = go(12, ExecutionStrategy::single(device).into());
    let mesh = Mesh::<Flex>::from_devices(vec![device; 3]).unwrap();
    let strategy = MultiGpuStrategy::new(&mesh).loader_batch(LoaderBatch::PerMember);
    let other = go(4, strategy.into());
    // 4 batches of 12 and one of 5, of which the third member has none.
    assert_eq!(one.updates.len(), 5);
    assert_same_updates(&one, &other, 3, "per member");
    let losses = |run: &Run| -> Vec<f64> {
        let losses = run
            .metrics
            .iter()
            .filter(|(place, _)| place.contains("Loss"));
        losses.map(|(_, value)| *value).collect()
    };
    let difference = compare::difference(&losses(&one), &losses(&other));
    assert!(difference < BOUND, "{difference:e}");
}
