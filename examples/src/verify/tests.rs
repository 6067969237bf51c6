use super::*;
use crate::data::{DataSet, bundled_dir};
use burn::backend::{Autodiff, Flex};

type B = Autodiff<Flex>;

fn options() -> VerifyOptions {
    let data = DataSet::read(&bundled_dir(), Some(200)).expect("the bundled digits");
    VerifyOptions {
        model: ModelKind::Mlp,
        batch_size: 23,
        steps: 12,
        ..VerifyOptions::new(data.train)
    }
}

fn mesh(spec: &str) -> Mesh<Flex> {
    Mesh::open(spec).expect("logical devices")
}

#[test]
fn a_mesh_of_three_is_one_device() {
    for engine in EngineKind::ALL {
        for (optimizer, dtype) in [
            (OptimizerKind::Adam, FloatKind::F32),
            (OptimizerKind::Sgd, FloatKind::F64),
        ] {
            let options = VerifyOptions {
                engine,
                optimizer,
                dtype,
                ..options()
            };
            let report = run::<B>(&mesh("flex:0,1,2"), &options).expect("a report");
            assert!(report.passed(), "{report:?}");
            let replicas = (engine == EngineKind::Replica).then_some(true);
            assert_eq!(report.replicas_equal, replicas);
            // 200 items are 8 batches of 23 and one of 16: an uneven one is among the steps.
            assert_eq!(report.steps.len(), 12);
            assert!(
                report.worst().gradients > 0.0,
                "the sums are in another order"
            );
            assert!(report.host_sums > 0, "somebody added up");
        }
    }
}

/// Batch norm over the whole batch is what only the decorator does.
#[test]
fn a_batch_norm_sees_the_whole_batch() {
    let report = |engine| {
        let options = VerifyOptions {
            engine,
            model: ModelKind::CnnNorm,
            dtype: FloatKind::F64,
            steps: 3,
            ..options()
        };
        run::<B>(&mesh("flex:0,1,2"), &options).expect("a report")
    };
    let decorator = report(EngineKind::Decorator);
    assert!(decorator.passed(), "{decorator:?}");
    let replica = report(EngineKind::Replica);
    assert!(!replica.passed(), "{:?}", replica.worst());
    assert_eq!(replica.replicas_equal, Some(true));
}

#[test]
fn stops_when_told_to() {
    let report = run_observed::<B>(&mesh("flex:0"), &options(), |step| step < 3);
    assert_eq!(report.expect("a report").steps.len(), 3);
}

#[test]
fn a_step_is_judged_from_the_state_before_it() {
    let options = options();
    let setup = Setup {
        model: options.model,
        optimizer: options.optimizer,
        dropout: 0.0,
        seed: 1,
        dtype: FloatKind::F32,
        resume: None,
    };
    for kind in EngineKind::ALL {
        let mut run = over_mesh::<B>(kind, &mesh("flex:0,1"), &setup).expect("an engine");
        let mut batches = steps_of(&options);
        let mut next = || batches.next().expect("endless");
        run.observed_step(1e-3, next()).expect("a step");

        let (before, items) = (run.snapshot().expect("records"), next());
        let mut observed = run.observed_step(1e-3, items.clone()).expect("a step");
        let alone = || {
            let resume = Some(Resume {
                snapshot: &before,
                steps: 1,
            });
            on_device::<B>(
                &Default::default(),
                &Setup {
                    resume,
                    ..setup.clone()
                },
            )
        };
        let judge = |observed: &Observed| {
            let same = same_batches(&items, 1).into_iter().flatten();
            continued(&alone, None, 1e-3, items.clone(), same, observed).expect("a step")
        };
        assert!(judge(&observed).passed(), "{kind}");
        // One percent more in a single parameter's gradient is no rounding.
        for value in &mut observed.gradients[0].1 {
            *value *= 1.01;
        }
        assert!(!judge(&observed).passed(), "{kind}");
    }
}

#[test]
fn of_several_right_steps_the_mesh_makes_one() {
    let options = options();
    let run = |seed| {
        let options = VerifyOptions {
            seed,
            ..options.clone()
        };
        on_device::<B>(&Default::default(), &setup(&options, None))
    };
    let items = steps_of(&options).next().expect("endless");
    let mut step = run(2).expect("a run");
    let observed = step.observed_step(1e-3, items.clone()).expect("a step");
    let judge = |elsewhere| {
        let elsewhere = run(elsewhere).expect("a run");
        let same = same_batches(&items, 1).into_iter().flatten();
        let items = items.clone();
        continued(&|| run(1), Some(elsewhere), 1e-3, items, same, &observed).expect("a step")
    };
    assert!(judge(2).passed());
    assert!(!judge(3).passed());
}
