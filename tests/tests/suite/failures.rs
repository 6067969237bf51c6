//! What goes wrong in a replica reaches the caller, names the device, and leaves the engine usable.

use burn::backend::{Autodiff, Flex};
use burn::optim::{AdamConfig, SgdConfig};
use burn::tensor::{Int, Tensor};
use burn_multigpu::{DataParallel, Error, Mesh, Step};
use burn_multigpu_tests::models::Mlp;
use burn_multigpu_tests::{compare, draws, single, within};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

type B = Autodiff<Flex>;
type Batch = (Tensor<B, 2>, Tensor<B, 1, Int>);

fn engine(members: usize) -> (Mesh<Flex>, DataParallel<B, Mlp<B>>) {
    let mesh = Mesh::open(&format!("flex:0-{}", members - 1)).unwrap();
    let model = Mlp::<B>::new(6, 3, 0.0, &mesh.devices()[0]);
    let engine = DataParallel::new(model, &mesh).unwrap();
    (mesh, engine)
}

fn batch(items: usize) -> Batch {
    single::batch::<B>(items, 6, 3, &Default::default())
}

fn loss(model: &Mlp<B>, (x, y): Batch) -> Step<B> {
    let loss = burn::nn::loss::CrossEntropyLossConfig::new().init(&x.device());
    Step::new(loss.forward(model.forward(x), y))
}

#[test]
fn a_panic_in_one_replica_names_its_device_and_the_engine_goes_on() {
    let _draws = draws();
    within(60, || {
        let (_, engine) = engine(3);
        let mut engine = engine.with_optimizer(AdamConfig::new().init());
        let before = engine.model().unwrap();
        // The second part of 9 items starts at item 3, whose class is (3 * 7 + 3) % 3.
        let error = engine
            .train_step(
                0.1,
                (batch(9), (0..9).collect::<Vec<usize>>()),
                |model, (xy, items)| {
                    assert!(items[0] != 3, "item 3 is broken");
                    loss(model, xy)
                },
            )
            .unwrap_err();
        assert!(
            matches!(&error, Error::Worker { member: 1, device, cause } if device == "flex:1" && cause.contains("item 3 is broken")),
            "{error}"
        );
        assert_eq!(engine.steps(), 0);
        let after = engine.model().unwrap();
        assert_eq!(
            compare::params(&before),
            compare::params(&after),
            "parameters are untouched"
        );
        engine.train_step(0.1, batch(9), loss).unwrap();
        assert_eq!(engine.steps(), 1);
    });
}

#[test]
fn with_a_seed_a_failure_ends_the_step_as_well() {
    let _random = burn_multigpu_tests::owns_random();
    within(60, || {
        let (_, engine) = engine(4);
        let mut engine = engine.seed(1).with_optimizer(SgdConfig::new().init());
        for broken in [0usize, 3] {
            let error = engine
                .train_step(
                    0.1,
                    (batch(4), (0..4).collect::<Vec<usize>>()),
                    move |model, (xy, items)| {
                        assert!(items[0] != broken, "broken");
                        loss(model, xy)
                    },
                )
                .unwrap_err();
            assert!(
                matches!(&error, Error::Worker { member, .. } if *member == broken),
                "{error}"
            );
        }
        engine.train_step(0.1, batch(4), loss).unwrap();
    });
}

#[test]
fn a_loss_that_no_parameter_takes_part_in_gives_no_gradient() {
    // As on one device.
    let _draws = draws();
    let (_, mut engine) = engine(2);
    let (out, grads) = engine
        .step(batch(4), |_: &Mlp<B>, (x, _)| Step::new(x.mean()))
        .unwrap();
    assert!(grads.is_empty());
    assert!(out.loss().unwrap().is_finite());
}

#[test]
fn a_replica_that_hangs_times_out_and_the_engine_can_be_dropped() {
    let _draws = draws();
    within(30, || {
        let (_, engine) = engine(2);
        let release = Arc::new(AtomicBool::new(false));
        let held = release.clone();
        let mut engine = engine
            .timeout(Duration::from_millis(300))
            .with_optimizer(SgdConfig::new().init());
        let error = engine
            .train_step(0.1, (batch(2), vec![0, 1]), move |model, (xy, items)| {
                while items[0] == 1 && !held.load(Ordering::Relaxed) {
                    std::thread::sleep(Duration::from_millis(5));
                }
                loss(model, xy)
            })
            .unwrap_err();
        assert!(
            matches!(&error, Error::Timeout { member: 1, device, .. } if device == "flex:1"),
            "{error}"
        );
        drop(engine);
        release.store(true, Ordering::Relaxed);
    });
}

#[test]
fn an_update_that_fails_halfway_is_reported_until_the_model_is_set_again() {
    let _draws = draws();
    let (mesh, engine) = engine(2);
    let fresh = engine.model().unwrap();
    let mut engine = engine.with_optimizer(Failing);
    let error = engine.train_step(0.1, batch(4), loss).unwrap_err();
    assert!(error.to_string().contains("no memory left"), "{error}");
    let error = engine.train_step(0.1, batch(4), loss).unwrap_err();
    assert!(
        matches!(&error, Error::Diverged { cause } if cause.contains("no memory left")),
        "{error}"
    );
    assert_eq!(mesh.len(), 2);
    engine.set_model(fresh).unwrap();
    let (out, _) = engine.step(batch(4), loss).unwrap();
    assert!(out.loss().unwrap().is_finite());
    FAIL.store(false, Ordering::Relaxed);
    engine.train_step(0.1, batch(4), loss).unwrap();
}

#[test]
fn empty_and_wrong_batches_are_errors() {
    let _draws = draws();
    let (_, engine) = engine(2);
    let mut engine = engine.with_optimizer(SgdConfig::new().init());
    let function = |_: &Mlp<B>, _: Vec<u8>| -> Step<B> { panic!("must not run") };
    let error = engine.train_step(0.1, Vec::new(), function).unwrap_err();
    assert!(matches!(error, Error::EmptyBatch), "{error}");
    let error = engine.step_shards(vec![vec![1u8]], function).unwrap_err();
    assert!(
        matches!(
            error,
            Error::MemberCount {
                expected: 2,
                found: 1
            }
        ),
        "{error}"
    );
    let error = engine
        .step_shards(vec![vec![], vec![]], function)
        .unwrap_err();
    assert!(matches!(error, Error::EmptyBatch), "{error}");
    let (x, y) = batch(4);
    let longer = (x, Tensor::cat(vec![y.clone(), y], 0));
    let error = engine.train_step(0.1, longer, loss).unwrap_err();
    assert!(
        matches!(&error, Error::UnevenBatch { lengths } if lengths == &[4, 8]),
        "{error}"
    );
    let error = engine
        .train_step(0.1, batch(4), |model: &Mlp<B>, (x, _)| {
            Step::new(model.forward(x).flatten(0, 1))
        })
        .unwrap_err();
    assert!(matches!(error, Error::LossShape { elements: 6 }), "{error}");
    let error = engine.model_of(2).unwrap_err();
    assert!(matches!(error, Error::MemberCount { .. }), "{error}");
}

#[test]
fn a_part_with_weights_that_make_no_mean_is_an_error() {
    let _draws = draws();
    let (_, mut engine) = engine(2);
    let error = engine
        .step(batch(4), |model: &Mlp<B>, xy| {
            loss(model, xy).weight(f64::NAN)
        })
        .unwrap_err();
    assert!(matches!(error, Error::Weights { .. }), "{error}");
}

#[test]
fn a_part_of_weight_zero_counts_for_nothing_even_if_it_is_nan() {
    let _draws = draws();
    let (_, mut engine) = engine(2);
    let (out, grads) = engine
        .step(
            (batch(4), vec![0, 1, 2, 3]),
            |model: &Mlp<B>, (xy, items)| {
                if items[0] == 0 {
                    Step::new(model.forward(xy.0).mean() * f32::NAN).weight(0.0)
                } else {
                    loss(model, xy)
                }
            },
        )
        .unwrap();
    assert!(out.loss().unwrap().is_finite());
    let model = engine.model().unwrap();
    let grads = compare::grads(&model, &grads);
    assert!(
        grads
            .iter()
            .flatten()
            .flatten()
            .all(|value| value.is_finite())
    );
}

/// An optimizer that fails, until it is told not to.
#[derive(Clone, Default)]
struct Failing;

static FAIL: AtomicBool = AtomicBool::new(true);

impl burn::optim::Optimizer<Mlp<B>, B> for Failing {
    type Record = ();
    fn step(&mut self, _: f64, model: Mlp<B>, _: burn::optim::GradientsParams) -> Mlp<B> {
        assert!(!FAIL.load(Ordering::Relaxed), "no memory left");
        model
    }
    fn step_multi(&mut self, _: f64, _: Mlp<B>, _: burn::optim::MultiGradientsParams) -> Mlp<B> {
        panic!("no memory left")
    }
    fn to_record(&self) -> Self::Record {}
    fn load_record(self, (): Self::Record) -> Self {
        self
    }
}
