//! What `multigpu verify` compares, on the bundled digits: losses, gradients and parameters of 50 or
//! 100 steps (10 and 3 of what is slow on a software device) on a mesh and on one device, for the models, both optimizers and both engines.

use burn::backend::{Autodiff, Flex, Wgpu};
use burn_multigpu::Mesh;
use burn_multigpu_examples::backend::TrainBackend;
use burn_multigpu_examples::config::FloatKind;
use burn_multigpu_examples::data::{DataSet, bundled_dir};
use burn_multigpu_examples::engine::EngineKind;
use burn_multigpu_examples::models::ModelKind;
use burn_multigpu_examples::optimizer::OptimizerKind;
use burn_multigpu_examples::verify::{Report, VerifyOptions, run};
use burn_multigpu_tests::draws;

fn verify<B: TrainBackend>(
    mesh: &Mesh<B::InnerBackend>,
    engine: EngineKind,
    (model, optimizer): (ModelKind, OptimizerKind),
    dtype: FloatKind,
    batch_size: usize,
    steps: usize,
) -> Report {
    let _draws = draws();
    let data = DataSet::read(&bundled_dir(), None).unwrap();
    let mut options = VerifyOptions::new(data.train);
    options.engine = engine;
    options.model = model;
    options.optimizer = optimizer;
    options.dtype = dtype;
    options.batch_size = batch_size;
    options.steps = steps;
    let report = run::<B>(mesh, &options).unwrap();
    assert_eq!(report.steps.len(), steps);
    let replicas = (engine == EngineKind::Replica).then_some(true);
    assert_eq!(report.replicas_equal, replicas);
    assert!(
        report.passed(),
        "{engine} {model} {optimizer} {dtype}: {:?}, largest {:?}",
        report.first_above(),
        report.worst()
    );
    report
}

const ALL: [(ModelKind, OptimizerKind); 5] = [
    (ModelKind::Mlp, OptimizerKind::Sgd),
    (ModelKind::Mlp, OptimizerKind::Adam),
    (ModelKind::Cnn, OptimizerKind::Sgd),
    (ModelKind::Cnn, OptimizerKind::Adam),
    (ModelKind::Transformer, OptimizerKind::Adam),
];

/// Batch norm over the whole batch is the decorator's alone: a replica normalises its own part.
const OF_THE_DECORATOR: (ModelKind, OptimizerKind) = (ModelKind::CnnNorm, OptimizerKind::Adam);

fn on_flex(dtype: FloatKind, check: impl Fn(Report)) {
    // In f32 six more runs of one device measure what rounding comes to.
    let steps = match dtype {
        FloatKind::F64 => 100,
        FloatKind::F32 => 50,
    };
    for engine in EngineKind::ALL {
        let mesh = Mesh::<Flex>::open("flex:0,1,2").unwrap();
        for what in ALL {
            check(verify::<Autodiff<Flex>>(
                &mesh, engine, what, dtype, 50, steps,
            ));
        }
    }
    let mesh = Mesh::<Flex>::open("flex:0,1,2").unwrap();
    let engine = EngineKind::Decorator;
    check(verify::<Autodiff<Flex>>(
        &mesh,
        engine,
        OF_THE_DECORATOR,
        dtype,
        50,
        steps,
    ));
}

#[test]
fn uneven_shards_on_flex_in_f64() {
    on_flex(FloatKind::F64, |report| {
        let worst = report.worst();
        assert!(worst.loss <= 1e-9 && worst.gradients <= 1e-9 && worst.parameters <= 1e-9);
    });
}

#[test]
fn uneven_shards_on_flex_in_f32() {
    on_flex(FloatKind::F32, |report| {
        assert!(report.host_sums > 0 && report.kernel_sums == 0);
    });
}

fn on_vulkan(
    engine: EngineKind,
    what: (ModelKind, OptimizerKind),
    batch_size: usize,
    steps: usize,
) {
    let mesh = Mesh::<Wgpu>::open("wgpu:0,0")
        .expect("a Vulkan device: apt-get install mesa-vulkan-drivers");
    let report = verify::<Autodiff<Wgpu>>(&mesh, engine, what, FloatKind::F32, batch_size, steps);
    assert!(report.kernel_sums > 0 && report.host_sums == 0);
}

#[test]
fn the_software_vulkan_device_with_kernels() {
    // The transformer is left to the decorator: it tunes some fifty kernels first.
    for what in &ALL[..4] {
        on_vulkan(EngineKind::Replica, *what, 25, 50);
    }
}

#[test]
fn the_decorator_on_the_software_vulkan_device() {
    // A kernel is launched for each operation of each member: fewer runs, and fewer steps.
    on_vulkan(EngineKind::Decorator, ALL[1], 25, 50);
    on_vulkan(EngineKind::Decorator, ALL[3], 25, 50);
    on_vulkan(EngineKind::Decorator, OF_THE_DECORATOR, 13, 10);
    on_vulkan(EngineKind::Decorator, ALL[4], 13, 3);
}
