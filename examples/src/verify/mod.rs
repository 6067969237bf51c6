//! The same run on one device and on a mesh, compared step by step.
//!
//! Both begin with the same parameters and see the same batches. The run on one device is a plain Burn
//! loop with no code of the mesh in it: `loss.backward()`, `GradientsParams::from_grads`,
//! `optimizer.step`. The run on the mesh is that of the replica engine, or the very same loop with
//! the mesh as its device. Dropout is off, since a mask on three devices is not one on one device.
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
//!   measured on one device, by further runs that are mathematically the same, and different by
//!   rounding alone: three whose batches hold their items in another order, and three that hold every
//!   item twice, in another order. In each step the mesh may differ by ten times what the middle one
//!   of either three differs by *up to that step*, whichever is more, and at least by ten units of
//!   rounding.
//!
//! Both, since a mesh does two things: it adds up numbers in another order, and fewer of them at a
//! time. The rounding of a long sum, taken one number after the other, grows with its length and
//! always in the same direction, so that permuting the items hardly shows it; sums twice as long gain
//! about as much of it as the sums of one device have, and shares of a mesh lose at most as much. What
//! is zero but for rounding (the gradient of the bias of attention's keys, which Adam makes a step of)
//! depends on the order more than on the length.
//!
//! Drifting apart is not smooth: when an activation near zero gets the other sign in one run, or
//! another pixel wins a pooling, that run jumps, and it is chance which run does so first (of one
//! device's own runs, some do and some do not). So a step of the mesh that is above its bound is
//! judged by its own merit: one device takes the same step, from the very parameters and optimizer
//! state that the mesh had before it. If the mesh made the same step as this device, within ten times what
//! those two ways change this one step, it was rounding that jumped and not the mesh that
//! erred. Such steps are marked in the report ([`StepReport::continued`]).
//!
//! A single step can jump as well, so that of one device there may be two, both right. The mesh has to
//! have made one of them: that of the batch, of one of the other six, or of the batch on the CPU with Flex.
//! The last is on the other side of the mesh, as it were: the items twice have more rounding than one
//! device has, and a mesh, as Flex, has less.

mod report;
#[cfg(all(test, feature = "flex"))]
mod tests;

use std::sync::Arc;

use anyhow::ensure;
use burn_multigpu::Mesh;

pub use report::{Bound, Continued, Differences, Report, StepReport};

use crate::backend::TrainBackend;
use crate::checkpoint::Snapshot;
use crate::config::FloatKind;
use crate::data::{DigitItems, Digits, batches, epoch_order};
use crate::engine::{Engine, EngineKind, Observed, Resume, Setup, on_device, over_mesh};
use crate::models::ModelKind;
use crate::numeric::{relative_difference, relative_difference_of};
use crate::optimizer::OptimizerKind;

/// Runs of each kind whose differences are taken as those of rounding.
const ROUNDING_RUNS: usize = 3;

/// What to compare.
#[derive(Debug, Clone)]
pub struct VerifyOptions {
    /// How the mesh is used.
    pub engine: EngineKind,
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
    /// 100 steps of the CNN with Adam on batches of 64, in f32, by the replica engine.
    pub fn new(digits: Arc<Digits>) -> Self {
        Self {
            engine: EngineKind::Replica,
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
    let alone = |from: Option<&Snapshot>| on_device::<B>(device, &setup(options, from));
    let lr = options.lr.unwrap_or(options.optimizer.default_lr() / 5.0);
    let mut engine = over_mesh::<B>(options.engine, mesh, &setup(options, None))?;
    let steps = compare(engine.as_mut(), &alone, options, lr, &mut observe)?;

    let stats = mesh.stats().collectives;
    let members = mesh.members();
    Ok(Report {
        engine: options.engine,
        backend: members[0].backend.clone(),
        members: members.iter().map(|member| member.label.clone()).collect(),
        model: options.model,
        optimizer: options.optimizer,
        lr,
        batch_size: options.batch_size,
        seed: options.seed,
        dtype: options.dtype,
        steps,
        replicas_equal: engine.replicas_equal()?,
        kernel_sums: stats.kernel_sums,
        host_sums: stats.host_sums,
    })
}

/// What a run begins with, or goes on from. Dropout is off.
fn setup<'a>(options: &VerifyOptions, from: Option<&'a Snapshot>) -> Setup<'a> {
    Setup {
        model: options.model,
        optimizer: options.optimizer,
        dropout: 0.0,
        seed: options.seed,
        dtype: options.dtype,
        resume: from.map(|snapshot| Resume { snapshot, steps: 0 }),
    }
}

/// Begins a run on one device, or goes on with one.
type Alone<'a> = &'a dyn Fn(Option<&Snapshot>) -> anyhow::Result<Box<dyn Engine>>;

fn compare(
    mesh: &mut dyn Engine,
    alone: Alone<'_>,
    options: &VerifyOptions,
    lr: f64,
    observe: &mut dyn FnMut(usize) -> bool,
) -> anyhow::Result<Vec<StepReport>> {
    let rounding_counts = options.dtype == FloatKind::F32;
    let mut single = alone(None)?;
    // Each begins anew: copies of one model would share the running statistics of its norms.
    let mut runs: Vec<Vec<Box<dyn Engine>>> = Vec::new();
    if rounding_counts {
        for _ in 0..2 {
            let kind = (0..ROUNDING_RUNS).map(|_| alone(None));
            runs.push(kind.collect::<anyhow::Result<_>>()?);
        }
    }

    let mut bound = Bound::new(options.dtype);
    let mut steps = Vec::with_capacity(options.steps);
    for (number, items) in (1..=options.steps).zip(steps_of(options)) {
        let reference = single.observed_step(lr, items.clone())?;
        let same = same_batches(&items, options.seed ^ (number as u64) << 8);
        for (runs, batches) in runs.iter_mut().zip(&same) {
            let mut rounding = Vec::with_capacity(ROUNDING_RUNS);
            for (run, items) in runs.iter_mut().zip(batches) {
                rounding.push(differences(
                    &reference,
                    &run.observed_step(lr, items.clone())?,
                ));
            }
            bound.widen(rounding);
        }

        // Only in f32, which is all that a snapshot holds.
        let before = match rounding_counts {
            true => Some(mesh.snapshot()?),
            false => None,
        };
        let observed = mesh.observed_step(lr, items.clone())?;
        let mut step = StepReport {
            step: number,
            loss: reference.loss,
            mesh: differences(&reference, &observed),
            rounding: bound.rounding(),
            bound: bound.current(),
            continued: None,
        };
        if let Some(before) = before.filter(|_| !step.passed()) {
            let elsewhere = on_flex(&setup(options, Some(&before)))?;
            let alone = || alone(Some(&before));
            let same = same.into_iter().flatten();
            step.continued = Some(continued(&alone, elsewhere, lr, items, same, &observed)?);
        }
        steps.push(step);
        if !observe(number) {
            break;
        }
    }
    Ok(steps)
}

/// The batches of one epoch after the other.
fn steps_of(options: &VerifyOptions) -> impl Iterator<Item = DigitItems> {
    (0..).flat_map(|epoch| {
        let order = epoch_order(options.digits.len(), options.seed, epoch);
        batches(&options.digits, &order, options.batch_size).collect::<Vec<_>>()
    })
}

/// Batches of which each mean is that of these items: the items in other orders, and every item twice
/// in other orders. Orders differ from step to step and from run to run.
fn same_batches(items: &DigitItems, key: u64) -> [Vec<DigitItems>; 2] {
    let orders = |items: DigitItems, runs: std::ops::Range<u64>| {
        runs.map(|run| items.clone().permuted(key ^ run)).collect()
    };
    let (first, second) = (1, 1 + ROUNDING_RUNS as u64);
    [
        orders(items.clone(), first..second),
        orders(items.clone().twice(), second..second + ROUNDING_RUNS as u64),
    ]
}

/// Compares a step of the mesh with the step that one device makes from the same state.
fn continued(
    before: &dyn Fn() -> anyhow::Result<Box<dyn Engine>>,
    elsewhere: Option<Box<dyn Engine>>,
    lr: f64,
    items: DigitItems,
    same: impl Iterator<Item = DigitItems>,
    observed: &Observed,
) -> anyhow::Result<Continued> {
    let mut right = vec![before()?.observed_step(lr, items.clone())?];
    // The largest of them here: all begin at one point, and have had no time to drift.
    let mut rounding = Differences::default();
    for items in same {
        let other = before()?.observed_step(lr, items)?;
        rounding = rounding.max(differences(&right[0], &other));
        right.push(other);
    }
    if let Some(mut engine) = elsewhere {
        right.push(engine.observed_step(lr, items)?);
    }
    let bound = Bound::of_rounding(rounding);
    let mesh = right.iter().map(|step| differences(step, observed));
    let mesh = mesh.min_by(|a, b| a.share_of(&bound).total_cmp(&b.share_of(&bound)));
    Ok(Continued {
        mesh: mesh.expect("the step of the batch itself is one"),
        bound,
    })
}

/// A run on Burn's CPU backend, where the program has it.
fn on_flex(setup: &Setup<'_>) -> anyhow::Result<Option<Box<dyn Engine>>> {
    #[cfg(feature = "flex")]
    return on_device::<burn::backend::Autodiff<burn::backend::Flex>>(&Default::default(), setup)
        .map(Some);
    #[cfg(not(feature = "flex"))]
    {
        let _ = setup;
        Ok(None)
    }
}

fn differences(reference: &Observed, other: &Observed) -> Differences {
    Differences {
        loss: relative_difference_of(reference.loss, other.loss),
        gradients: relative_difference(&reference.gradients, &other.gradients),
        parameters: relative_difference(&reference.parameters, &other.parameters),
    }
}
