//! Dropout: different on each replica, repeatable from a seed.

use burn::backend::{Autodiff, Flex};
use burn::nn::DropoutConfig;
use burn::optim::SgdConfig;
use burn::tensor::Tensor;
use burn_multigpu::{DataParallel, Mesh, Step};
use burn_multigpu_tests::models::Mlp;
use burn_multigpu_tests::{compare, owns_random};

type B = Autodiff<Flex>;

fn engine(members: usize, dropout: f64) -> DataParallel<B, Mlp<B>> {
    use burn::tensor::backend::Backend;
    Flex::seed(&Default::default(), 5);
    let model = Mlp::<B>::new(4, 2, dropout, &Default::default());
    let mesh = Mesh::from_devices(vec![Default::default(); members]).unwrap();
    DataParallel::new(model, &mesh).unwrap()
}

fn ones(items: usize) -> Tensor<B, 2> {
    Tensor::ones([items, 4], &Default::default())
}

/// The masks that the replicas' dropout drew in each of some steps.
fn masks(members: usize, seed: Option<u64>, from: u64, steps: usize) -> Vec<Vec<Vec<f64>>> {
    let mut engine = engine(members, 0.5);
    if let Some(seed) = seed {
        engine = engine.seed(seed);
    }
    engine.set_steps(from);
    (0..steps)
        .map(|_| {
            let (out, _) = engine
                .step(ones(members * 16), |model: &Mlp<B>, x| {
                    let mask = DropoutConfig::new(0.5).init().forward(x.clone());
                    Step::new((model.forward(x) * mask.clone().mean().unsqueeze()).mean())
                        .output(compare::values(mask.inner()))
                })
                .unwrap();
            out.outputs
        })
        .collect()
}

#[test]
fn masks_differ_between_replicas_and_steps() {
    let _random = owns_random();
    for seed in [None, Some(7)] {
        let masks: Vec<_> = masks(3, seed, 0, 3).into_iter().flatten().collect();
        for (i, mask) in masks.iter().enumerate() {
            assert!(
                masks[i + 1..].iter().all(|other| other != mask),
                "a mask repeats"
            );
        }
    }
}

#[test]
fn a_seed_makes_a_run_repeatable_and_resumable() {
    let _random = owns_random();
    let run = masks(3, Some(7), 0, 4);
    assert_eq!(run, masks(3, Some(7), 0, 4));
    assert_ne!(run, masks(3, Some(8), 0, 4));
    assert_eq!(run[2..], masks(3, Some(7), 2, 2));
}

#[test]
fn seeded_training_is_the_same_bit_for_bit() {
    let _random = owns_random();
    let run = || {
        let mut engine = engine(4, 0.3)
            .seed(3)
            .with_optimizer(SgdConfig::new().init());
        for items in [16, 9, 3] {
            engine
                .train_step(0.1, ones(items), |model: &Mlp<B>, x| {
                    Step::new(model.forward(x).mean())
                })
                .unwrap();
        }
        compare::params(&engine.model().unwrap())
            .into_iter()
            .map(|(_, v)| v)
            .collect::<Vec<_>>()
    };
    assert_eq!(run(), run());
}
