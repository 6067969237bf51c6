//! What holds on every device: the tests of `vulkan`, `mixed` and `cuda`.

use burn::backend::Autodiff;
use burn::nn::loss::CrossEntropyLossConfig;
use burn::optim::{AdamConfig, GradientsParams};
use burn::tensor::backend::Backend;
use burn::tensor::{Distribution, Int, Tensor, TensorData};
use burn_multigpu::collective::{ReduceOp, Transfer, all_reduce_bucket, broadcast, reduce_scatter};
use burn_multigpu::{DataParallel, Mesh, MeshBackend, Step};
use burn_multigpu_tests::models::{Cnn, Mlp};
use burn_multigpu_tests::{compare, draws, single};

/// Collectives against plain sums, and who did the sums.
pub(crate) fn collectives<B: MeshBackend>(mesh: impl Fn(usize) -> Mesh<B>) {
    let _draws = draws();
    for members in [1, 2, 3, 5] {
        let mesh = mesh(members);
        let device = &mesh.devices()[0];
        let shapes = [[1, 1], [5, 7], [100, 33], [3, 1], [257, 64]];
        let lists: Vec<Vec<Tensor<B, 2>>> = (0..members)
            .map(|_| {
                shapes
                    .map(|shape| Tensor::random(shape, Distribution::Default, device))
                    .to_vec()
            })
            .collect();
        let weights: Vec<f64> = (1..=members).map(|w| w as f64).collect();
        let total: f64 = weights.iter().sum();
        let expected: Vec<Vec<f64>> = (0..shapes.len())
            .map(|i| {
                let parts: Vec<_> = lists
                    .iter()
                    .map(|list| compare::values(list[i].clone()))
                    .collect();
                (0..parts[0].len())
                    .map(|e| {
                        parts
                            .iter()
                            .zip(&weights)
                            .map(|(p, w)| p[e] * w / total)
                            .sum()
                    })
                    .collect()
            })
            .collect();
        let reduced = all_reduce_bucket(&mesh, lists, &ReduceOp::WeightedMean(weights)).unwrap();
        let bits: Vec<TensorData> = reduced[0].iter().map(Tensor::to_data).collect();
        for list in reduced {
            for (i, tensor) in list.into_iter().enumerate() {
                assert_eq!(tensor.to_data(), bits[i]);
                let difference = compare::difference(&expected[i], &compare::values(tensor));
                assert!(
                    difference < 1e-6,
                    "{members} members, tensor {i}: {difference}"
                );
            }
        }
        let stats = mesh.stats().collectives;
        assert_eq!(
            stats.kernel_sums, members as u64,
            "one sum kernel per member"
        );
        assert_eq!(stats.kernel_packs, 2 * members as u64);
        assert_eq!(stats.host_sums, 0);
        assert_eq!(mesh.transfers().path(0, members - 1), Transfer::Same);
    }

    let mesh = mesh(3);
    let device = &mesh.devices()[0];
    let source = Tensor::<B, 2>::random([4, 5], Distribution::Default, device);
    for copy in broadcast(&mesh, source.clone(), 2).unwrap() {
        assert_eq!(copy.into_data(), source.to_data());
    }
    let parts = reduce_scatter(&mesh, vec![source.clone(); 3], &ReduceOp::Sum).unwrap();
    let joined = compare::values(Tensor::cat(parts, 0));
    assert!(compare::difference(&compare::values(source * 3.0), &joined) < 1e-6);
}

/// Trains on the mesh and on one device from the same start, and compares every step's gradients
/// and the final parameters.
pub(crate) fn trains_as_one_device<I: Backend>(mesh: &Mesh<I>) {
    let _draws = draws();
    type A<I> = Autodiff<I>;
    let members = mesh.len();
    let device = mesh.devices()[0].clone();
    let model = Mlp::<A<I>>::new(6, 3, 0.0, &device);
    let mut one = model.clone();
    let mut optimizer = AdamConfig::new().init::<A<I>, Mlp<A<I>>>();
    let mut engine = DataParallel::<A<I>, _>::new(model, mesh)
        .unwrap()
        .with_optimizer(AdamConfig::new().init());
    let loss = |model: &Mlp<A<I>>, (x, y): (Tensor<A<I>, 2>, Tensor<A<I>, 1, Int>)| {
        CrossEntropyLossConfig::new()
            .init(&x.device())
            .forward(model.forward(x), y)
    };
    for items in [11, 6, 2, 1] {
        let xy = single::batch::<A<I>>(items, 6, 3, &device);
        let plain = loss(&one, xy.clone());
        let value = compare::values(plain.clone())[0];
        let grads = GradientsParams::from_grads(plain.backward(), &one);
        one = burn::optim::Optimizer::step(&mut optimizer, 0.01, one, grads);
        let out = engine
            .train_step(0.01, xy, move |model: &Mlp<A<I>>, xy| {
                Step::new(loss(model, xy))
            })
            .unwrap();
        let found = out.loss().unwrap();
        assert!(
            (found / value - 1.0).abs() < 1e-5,
            "{items} items: {found} for {value}"
        );
    }
    let difference = compare::params_difference(&one, &engine.model().unwrap());
    assert!(difference < 1e-4, "{difference}");
    let first = compare::params(&engine.model_of(0).unwrap());
    let last = compare::params(&engine.model_of(members - 1).unwrap());
    assert_eq!(first, last, "replicas are equal bit for bit");
}

/// A convolutional network with batch norm learns, and its statistics are equal on all members.
pub(crate) fn convolutions_with_batch_norm_train<I: Backend>(mesh: &Mesh<I>) {
    let _draws = draws();
    type B<I> = Autodiff<I>;
    let device = mesh.devices()[0].clone();
    let mut engine = DataParallel::<B<I>, _>::new(Cnn::<B<I>>::new(8, 3, true, &device), mesh)
        .unwrap()
        .with_optimizer(AdamConfig::new().init());
    let xy = single::batch::<B<I>>(9, 64, 3, &device);
    let losses: Vec<f64> = (0..6)
        .map(|_| {
            engine
                .train_step(0.02, xy.clone(), |model: &Cnn<B<I>>, (x, y)| {
                    let loss = CrossEntropyLossConfig::new().init(&x.device());
                    Step::new(loss.forward(model.forward(x), y))
                })
                .unwrap()
                .loss()
                .unwrap()
        })
        .collect();
    assert!(losses[5] < losses[0], "{losses:?}");
    let stats = |member: usize| {
        let (mean, var) = engine.model_of(member).unwrap().running().unwrap();
        (compare::values(mean), compare::values(var))
    };
    assert_eq!(stats(0), stats(1));
}
