//! The engine against one device in f64, where rounding is far below any mistake: losses, gradients
//! and parameters agree to 1e-9.
#![allow(clippy::unwrap_used, missing_docs)]

mod learner;
mod programs;
mod training;

use burn::backend::{Autodiff, Flex};
use burn::module::AutodiffModule;
use burn::nn::loss::CrossEntropyLossConfig;
use burn::optim::{AdamConfig, Optimizer, SgdConfig, momentum::MomentumConfig};
use burn::tensor::{DType, Int, Tensor};
use burn_multigpu::{DataParallel, Mesh, Step};
use burn_multigpu_tests::models::{Cnn, Mlp};
use burn_multigpu_tests::{compare, single, use_f64};
use proptest::prelude::*;

type B = Autodiff<Flex>;
type Batch = (Tensor<B, 2>, Tensor<B, 1, Int>);

const BOUND: f64 = 1e-9;

fn cross_entropy(logits: Tensor<B, 2>, targets: Tensor<B, 1, Int>) -> Tensor<B, 1> {
    CrossEntropyLossConfig::new()
        .init(&logits.device())
        .forward(logits, targets)
}

/// Trains both ways and returns the largest difference of losses, gradients and parameters.
fn difference<M, O>(
    model: M,
    optimizer: O,
    members: usize,
    bucket_bytes: usize,
    batches: &[Batch],
    logits: fn(&M, Tensor<B, 2>) -> Tensor<B, 2>,
) -> f64
where
    M: AutodiffModule<B> + 'static,
    O: Optimizer<M, B> + 'static,
{
    let mesh = Mesh::<Flex>::from_devices(vec![Default::default(); members]).unwrap();
    let mut one = model.clone();
    let mut single_optimizer = optimizer.clone();
    let mut engine = DataParallel::<B, M>::new(model, &mesh)
        .unwrap()
        .bucket_bytes(bucket_bytes)
        .with_optimizer(optimizer);
    let function = move |model: &M, (x, y): Batch| Step::new(cross_entropy(logits(model, x), y));
    let mut worst = 0.0f64;
    for (x, y) in batches {
        let (_, grads) = engine.step((x.clone(), y.clone()), function).unwrap();
        let out = engine
            .train_step(0.02, (x.clone(), y.clone()), function)
            .unwrap();
        let before = one.clone();
        let (next, plain) = single::step(one, &mut single_optimizer, 0.02, |model| {
            cross_entropy(logits(model, x.clone()), y.clone())
        });
        one = next;
        let grads = compare::grads(&before, &grads);
        worst = worst
            .max((out.loss().unwrap() / plain.loss - 1.0).abs())
            .max(compare::grads_difference(&plain.grads, &grads))
            .max(compare::params_difference(
                &one,
                &engine.model_of(members - 1).unwrap(),
            ));
    }
    worst
}

fn batches(sizes: &[usize], features: usize) -> Vec<Batch> {
    sizes
        .iter()
        .map(|items| single::batch::<B>(*items, features, 3, &Default::default()))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn any_batch_on_any_mesh_is_one_device(
        members in 1usize..6,
        sizes in prop::collection::vec(1usize..12, 1..5),
        conv in any::<bool>(),
        adam in any::<bool>(),
        bucket_bytes in prop::sample::select(vec![1usize, 300, 25 << 20]),
    ) {
        use_f64();
        let device = Default::default();
        let worst = match (conv, adam) {
            (false, true) => difference(Mlp::new(6, 3, 0.0, &device), AdamConfig::new().init(), members, bucket_bytes, &batches(&sizes, 6), Mlp::forward),
            (false, false) => difference(Mlp::new(6, 3, 0.0, &device), SgdConfig::new().init(), members, bucket_bytes, &batches(&sizes, 6), Mlp::forward),
            (true, true) => difference(Cnn::new(6, 3, false, &device), AdamConfig::new().init(), members, bucket_bytes, &batches(&sizes, 36), Cnn::forward),
            (true, false) => difference(Cnn::new(6, 3, false, &device), SgdConfig::new().init(), members, bucket_bytes, &batches(&sizes, 36), Cnn::forward),
        };
        prop_assert!(worst <= BOUND, "difference {worst:e}");
    }
}

#[test]
fn a_long_run_with_momentum_and_uneven_batches() {
    use_f64();
    let sizes: Vec<usize> = (0..100).map(|i| 1 + (i * 7) % 13).collect();
    let optimizer = SgdConfig::new()
        .with_momentum(Some(MomentumConfig::new()))
        .init::<B, Mlp<B>>();
    let model = Mlp::new(6, 3, 0.0, &Default::default());
    let worst = difference(
        model,
        optimizer,
        3,
        25 << 20,
        &batches(&sizes, 6),
        Mlp::forward,
    );
    assert!(worst <= BOUND, "difference {worst:e}");
}

#[test]
fn everything_is_really_in_f64() {
    use_f64();
    let model = Mlp::<B>::new(6, 3, 0.0, &Default::default());
    let (x, _) = single::batch::<B>(2, 6, 3, &Default::default());
    assert_eq!(model.forward(x).dtype(), DType::F64);
}
