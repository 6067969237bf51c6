//! Different backends in one mesh: data moves through host memory, and the sums are done in plain
//! Rust.
//!
//! The model has no ReLU: on Burn's router the bool type is that of the first backend, and masks,
//! which ReLU is made of, are wrong on the second.

use burn::backend::router::{Router, duo::MultiDevice};
use burn::backend::wgpu::{CubeBackend, WgpuDevice};
use burn::backend::{Autodiff, Flex, flex::FlexDevice};
use burn::nn::loss::{MseLoss, Reduction};
use burn::nn::{Linear, LinearConfig};
use burn::optim::AdamConfig;
use burn::tensor::{Distribution, Tensor, activation::tanh};
use burn_multigpu::collective::Transfer;
use burn_multigpu::{DataParallel, Mesh, Step};
use burn_multigpu_tests::{compare, draws, single};

type Gpu = CubeBackend<cubecl::wgpu::WgpuRuntime, f32, i32, u32>;
type Both = Router<(Flex, Gpu)>;
type B = Autodiff<Both>;

#[test]
fn a_mesh_of_two_backends_trains_as_one_device() {
    let _draws = draws();
    let cpu = MultiDevice::B1(FlexDevice);
    let devices = vec![
        cpu.clone(),
        MultiDevice::B2(WgpuDevice::default()),
        cpu.clone(),
    ];
    let mesh = Mesh::<Both>::from_devices(devices).unwrap();
    assert_eq!(mesh.transfers().path(0, 1), Transfer::Host);
    assert_eq!(mesh.transfers().path(0, 2), Transfer::Same);
    let shown = mesh.transfers().to_string();
    assert!(shown.contains("through host memory: 0-1, 1-2"), "{shown}");

    let model: Linear<B> = LinearConfig::new(6, 3).init(&cpu);
    let engine = DataParallel::<B, _>::new(model, &mesh).unwrap();
    let mut one = engine.model().unwrap();
    let mut optimizer = AdamConfig::new().init::<B, Linear<B>>();
    let mut engine = engine.with_optimizer(AdamConfig::new().init());
    let loss = |model: &Linear<B>, x: Tensor<B, 2>| {
        let target = x.clone().slice([0..x.dims()[0], 0..3]);
        MseLoss::new().forward(tanh(model.forward(x)), target, Reduction::Mean)
    };
    for items in [11, 6, 2, 1] {
        let x = Tensor::<B, 2>::random([items, 6], Distribution::Default, &cpu);
        let out = engine
            .train_step(0.01, x.clone(), move |model: &Linear<B>, x| {
                Step::new(loss(model, x))
            })
            .unwrap();
        let (next, plain) = single::step(one, &mut optimizer, 0.01, |model| loss(model, x));
        one = next;
        let found = out.loss().unwrap();
        assert!(
            (found / plain.loss - 1.0).abs() < 1e-5,
            "{found} for {}",
            plain.loss
        );
    }
    for member in 0..3 {
        let difference = compare::params_difference(&one, &engine.model_of(member).unwrap());
        assert!(difference < 1e-5, "member {member}: {difference}");
    }
    // A record is copied to the other backend by way of bytes.
    let record = engine.optimizer_record().unwrap();
    engine.load_optimizer_record(record).unwrap();
    let x = Tensor::<B, 2>::random([4, 6], Distribution::Default, &cpu);
    let joined = engine
        .forward(x.clone().inner(), |model, x| model.forward(x))
        .unwrap();
    let difference = compare::difference(
        &compare::values(engine.model().unwrap().forward(x)),
        &compare::values(joined),
    );
    assert!(difference < 1e-6, "{difference}");
    assert!(mesh.stats().collectives.host_sums > 0);
}
