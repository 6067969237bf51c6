//! The same run on one device and on a mesh, compared step by step.
//!
//! Both begin with the same parameters and see the same batches. The run on one device is a plain Burn
//! loop with no code of the mesh in it: `loss.backward()`, `GradientsParams::from_grads`,
//! `optimizer.step`. Dropout is off, since a mask on three devices is not one on one device.
//!
//! # What is measured
//!
//! For each step the relative difference of the loss, of the gradients and of the updated parameters. Tensors
//! are compared by norm: `max|a-b| / max|a|` for each parameter, and of these the largest
//! ([`relative_difference`]). Each
//! run goes its own way: step 100 compares what 100 steps of rounding came to, and not one step
//! from a common point.
//!
//! # The bounds
//!
//! - **f64**: `1e-9` in every step.
//! - **f32**: rounding alone makes two runs drift apart, the more the longer they are. How much is
//!   measured on one device, by three further runs whose batches hold the same items in another
//!   order: mathematically the same run, and different by rounding alone. In each step the mesh may
//!   differ by ten times what the middle one of them differs by *up to that step*, and at least by
//!   ten units of rounding.
//!
//! Drifting apart is not smooth: when an activation near zero gets the other sign in one run, or
//! another pixel wins a pooling, that run jumps, and it is chance which run does so first (of one
//! device's own runs, some do and some do not). So a step of the mesh that is above its bound is
//! judged by its own merit: one device takes the same step, from the very parameters and optimizer
//! state that the mesh had before it. If the mesh made the same step as this device, within ten times what
//! permuting the batch of this one step changes, it was rounding that jumped and not the mesh that
//! erred. Such steps are marked in the report ([`StepReport::continued`]).

mod report;
mod trajectory;

use std::sync::Arc;

use anyhow::ensure;
use burn_multigpu::Mesh;

pub use report::{Bound, Continued, Differences, Report, StepReport};
use trajectory::{MeshRun, Outcome, PlainRun};

use crate::backend::TrainBackend;
use crate::config::FloatKind;
use crate::data::{DigitItems, Digits, batches, epoch_order};
use crate::models::{Classifier, ModelKind};
use crate::numeric::{relative_difference, relative_difference_of};
use crate::optimizer::OptimizerKind;
use crate::training::check_dtype;

/// Runs with permuted batches whose differences are taken as those of rounding.
const PERMUTATIONS: usize = 3;

/// What to compare.
#[derive(Debug, Clone)]
pub struct VerifyOptions {
    /// The network.
    pub model: ModelKind,
    /// The optimizer.
    pub optimizer: OptimizerKind,
    /// The learning rate; without one, a fifth of what one would train with. Large steps make
    /// training itself unstable, and then rounding grows until there is nothing left to compare.
    pub lr: Option<f64>,
    /// Items of a step, over all devices together.
    pub batch_size: usize,
    /// How many steps.
    pub steps: usize,
    /// Seed of parameters and order.
    pub seed: u64,
    /// Element type.
    pub dtype: FloatKind,
    /// The digits to train on.
    pub digits: Arc<Digits>,
}

impl VerifyOptions {
    /// 100 steps of the CNN with Adam on batches of 64, in f32.
    pub fn new(digits: Arc<Digits>) -> Self {
        Self {
            model: ModelKind::Cnn,
            optimizer: OptimizerKind::Adam,
            lr: None,
            batch_size: 64,
            steps: 100,
            seed: 42,
            dtype: FloatKind::F32,
            digits,
        }
    }
}

/// Runs on one device and on the mesh, and compares.
///
/// # Errors
///
/// When the backend lacks the element type or a device fails. A difference above its bound is no
/// error: see [`Report::passed`].
pub fn run<B: TrainBackend>(
    mesh: &Mesh<B::InnerBackend>,
    options: &VerifyOptions,
) -> anyhow::Result<Report> {
    run_observed::<B>(mesh, options, |_| true)
}

/// As [`run`], telling after each step how many are done; when `observe` answers `false`, the report
/// ends there.
///
/// # Errors
///
/// As [`run`].
pub fn run_observed<B: TrainBackend>(
    mesh: &Mesh<B::InnerBackend>,
    options: &VerifyOptions,
    mut observe: impl FnMut(usize) -> bool,
) -> anyhow::Result<Report> {
    ensure!(
        !options.digits.is_empty(),
        "there are no digits to train on"
    );
    ensure!(options.batch_size >= 1, "a batch has at least one item");
    let device = &mesh.devices()[0];
    check_dtype::<B>(options.dtype, device)?;
    let lr = options.lr.unwrap_or(options.optimizer.default_lr() / 5.0);
    let dtype = options.dtype.dtype();
    let model = Classifier::<B>::seeded(options.model, 0.0, options.seed, device, dtype);
    let optimizer = options.optimizer.init::<B, Classifier<B>>();

    let mut single = PlainRun::new(model.clone(), optimizer.clone(), lr);
    let mut permuted = match options.dtype {
        FloatKind::F32 => vec![single.clone(); PERMUTATIONS],
        FloatKind::F64 => Vec::new(),
    };
    let mut over_mesh = MeshRun::new(model, optimizer, lr, mesh)?;

    let mut bound = Bound::new(options.dtype);
    let mut steps = Vec::with_capacity(options.steps);
    for (number, items) in (1..=options.steps).zip(steps_of(options)) {
        let reference = single.step(items.clone());
        let orders = permutations(&items, options.seed ^ (number as u64) << 8);
        let rounding = permuted.iter_mut().zip(orders.clone());
        bound.widen(rounding.map(|(run, items)| differences(&reference, &run.step(items))));

        let before = over_mesh.on_one_device()?;
        let outcome = over_mesh.step(items.clone())?;
        let mut step = StepReport {
            step: number,
            loss: reference.loss,
            mesh: differences(&reference, &outcome),
            rounding: bound.rounding(),
            bound: bound.current(),
            continued: None,
        };
        if !step.passed() && options.dtype == FloatKind::F32 {
            step.continued = Some(continued(&before, items, orders, &outcome));
        }
        steps.push(step);
        if !observe(number) {
            break;
        }
    }
    let stats = mesh.stats().collectives;
    Ok(Report {
        backend: mesh.members()[0].backend.clone(),
        members: mesh
            .members()
            .iter()
            .map(|member| member.label.clone())
            .collect(),
        model: options.model,
        optimizer: options.optimizer,
        lr,
        batch_size: options.batch_size,
        seed: options.seed,
        dtype: options.dtype,
        steps,
        replicas_equal: over_mesh.replicas_equal()?,
        kernel_sums: stats.kernel_sums,
        host_sums: stats.host_sums,
    })
}

/// The batches of one epoch after the other.
fn steps_of(options: &VerifyOptions) -> impl Iterator<Item = DigitItems> {
    (0..).flat_map(|epoch| {
        let order = epoch_order(options.digits.len(), options.seed, epoch);
        batches(&options.digits, &order, options.batch_size).collect::<Vec<_>>()
    })
}

/// The same items in other orders, which differ from step to step and from run to run.
fn permutations(items: &DigitItems, key: u64) -> impl Iterator<Item = DigitItems> + Clone + use<> {
    let items = items.clone();
    (1..=PERMUTATIONS as u64).map(move |permutation| items.clone().permuted(key ^ permutation))
}

/// Compares a step of the mesh with the step that one device makes from the same state.
fn continued<B: TrainBackend>(
    before: &PlainRun<B>,
    items: DigitItems,
    orders: impl Iterator<Item = DigitItems>,
    outcome: &Outcome,
) -> Continued {
    let reference = before.clone().step(items);
    // The largest of them here: all begin at one point, and have had no time to drift.
    let rounding = orders
        .map(|items| differences(&reference, &before.clone().step(items)))
        .fold(Differences::default(), Differences::max);
    Continued {
        mesh: differences(&reference, outcome),
        bound: Bound::of_rounding(rounding),
    }
}

fn differences(reference: &Outcome, other: &Outcome) -> Differences {
    Differences {
        loss: relative_difference_of(reference.loss, other.loss),
        gradients: relative_difference(&reference.gradients, &other.gradients),
        parameters: relative_difference(&reference.parameters, &other.parameters),
    }
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::*;
    use crate::data::{DataSet, bundled_dir};
    use burn::backend::{Autodiff, Flex};
    use burn::tensor::DType;

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
        for (optimizer, dtype) in [
            (OptimizerKind::Adam, FloatKind::F32),
            (OptimizerKind::Sgd, FloatKind::F64),
        ] {
            let options = VerifyOptions {
                optimizer,
                dtype,
                ..options()
            };
            let report = run::<B>(&mesh("flex:0,1,2"), &options).expect("a report");
            assert!(report.passed(), "{report:?}");
            // 200 items are 8 batches of 23 and one of 16: an uneven one is among the steps.
            assert_eq!(report.steps.len(), 12);
            assert!(
                report.worst().gradients > 0.0,
                "the sums are in another order"
            );
        }
    }

    #[test]
    fn stops_when_told_to() {
        let report = run_observed::<B>(&mesh("flex:0"), &options(), |step| step < 3);
        assert_eq!(report.expect("a report").steps.len(), 3);
    }

    #[test]
    fn a_step_is_judged_from_the_state_before_it() {
        let options = options();
        let model = Classifier::<B>::seeded(options.model, 0.0, 1, &Default::default(), DType::F32);
        let optimizer = options.optimizer.init();
        let mut run = MeshRun::new(model, optimizer, 1e-3, &mesh("flex:0,1")).expect("an engine");
        let mut batches = steps_of(&options);
        let mut next = || batches.next().expect("endless");
        run.step(next()).expect("a step");

        let (before, items) = (run.on_one_device().expect("a copy"), next());
        let mut outcome = run.step(items.clone()).expect("a step");
        let judge =
            |outcome: &Outcome| continued(&before, items.clone(), permutations(&items, 1), outcome);
        assert!(judge(&outcome).passed());
        // One percent more in a single parameter's gradient is no rounding.
        for value in &mut outcome.gradients[0].1 {
            *value *= 1.01;
        }
        assert!(!judge(&outcome).passed());
    }
}
