//! What `multigpu verify` compares, on the bundled digits: losses, gradients and parameters of 100
//! steps on a mesh and on one device, for both models and both optimizers.

use burn::backend::{Autodiff, Flex, Wgpu};
use burn_multigpu::Mesh;
use burn_multigpu_examples::backend::TrainBackend;
use burn_multigpu_examples::config::FloatKind;
use burn_multigpu_examples::data::{DataSet, bundled_dir};
use burn_multigpu_examples::models::ModelKind;
use burn_multigpu_examples::optimizer::OptimizerKind;
use burn_multigpu_examples::verify::{Report, VerifyOptions, run};
use burn_multigpu_tests::draws;

fn verify<B: TrainBackend>(
    mesh: &Mesh<B::InnerBackend>,
    (model, optimizer): (ModelKind, OptimizerKind),
    dtype: FloatKind,
    batch_size: usize,
) -> Report {
    let _draws = draws();
    let data = DataSet::read(&bundled_dir(), None).unwrap();
    let mut options = VerifyOptions::new(data.train);
    options.model = model;
    options.optimizer = optimizer;
    options.dtype = dtype;
    options.batch_size = batch_size;
    let report = run::<B>(mesh, &options).unwrap();
    assert_eq!(report.steps.len(), 100);
    assert!(report.replicas_equal);
    assert!(
        report.passed(),
        "{model:?} {optimizer:?} {dtype:?}: {:?}, largest {:?}",
        report.first_above(),
        report.worst()
    );
    report
}

const ALL: [(ModelKind, OptimizerKind); 4] = [
    (ModelKind::Mlp, OptimizerKind::Sgd),
    (ModelKind::Mlp, OptimizerKind::Adam),
    (ModelKind::Cnn, OptimizerKind::Sgd),
    (ModelKind::Cnn, OptimizerKind::Adam),
];

#[test]
fn uneven_shards_on_flex_in_f64() {
    let mesh = Mesh::<Flex>::open("flex:0,1,2").unwrap();
    for what in ALL {
        let report = verify::<Autodiff<Flex>>(&mesh, what, FloatKind::F64, 50);
        let worst = report.worst();
        assert!(worst.loss <= 1e-9 && worst.gradients <= 1e-9 && worst.parameters <= 1e-9);
    }
}

#[test]
fn uneven_shards_on_flex_in_f32() {
    let mesh = Mesh::<Flex>::open("flex:0,1,2").unwrap();
    for what in ALL {
        let report = verify::<Autodiff<Flex>>(&mesh, what, FloatKind::F32, 50);
        assert!(report.host_sums > 0 && report.kernel_sums == 0);
    }
}

#[test]
fn the_software_vulkan_device_with_kernels() {
    let mesh = Mesh::<Wgpu>::open("wgpu:0,0")
        .expect("a Vulkan device: apt-get install mesa-vulkan-drivers");
    for what in ALL {
        let report = verify::<Autodiff<Wgpu>>(&mesh, what, FloatKind::F32, 25);
        assert!(report.kernel_sums > 0 && report.host_sums == 0);
    }
}
