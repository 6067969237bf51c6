//! The numbers of a comparison, and whether they are within their bounds.

use serde::Serialize;

use crate::config::FloatKind;
use crate::engine::EngineKind;
use crate::models::ModelKind;
use crate::optimizer::OptimizerKind;

/// What f64 may differ by, in every step.
const F64_BOUND: f64 = 1e-9;
/// What f32 may differ by, as a multiple of what rounding comes to on one device.
const ROUNDING_FACTOR: f64 = 10.0;

/// Relative differences of one step.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Differences {
    /// Of the loss.
    pub loss: f64,
    /// Of the gradients: the largest of a parameter.
    pub gradients: f64,
    /// Of the updated parameters: the largest of one.
    pub parameters: f64,
}

impl Differences {
    fn of_all(value: f64) -> Self {
        Self {
            loss: value,
            gradients: value,
            parameters: value,
        }
    }

    /// Combines value by value.
    fn zip(self, other: Self, f: impl Fn(f64, f64) -> f64) -> Self {
        Self {
            loss: f(self.loss, other.loss),
            gradients: f(self.gradients, other.gradients),
            parameters: f(self.parameters, other.parameters),
        }
    }

    /// Whether each value is at most that of the bound.
    pub fn within(&self, bound: &Self) -> bool {
        self.loss <= bound.loss
            && self.gradients <= bound.gradients
            && self.parameters <= bound.parameters
    }

    /// The largest share of its bound that one of them took; 1 is the bound.
    pub fn share_of(&self, bound: &Self) -> f64 {
        let share = self.zip(*bound, |value, bound| value / bound);
        share.loss.max(share.gradients).max(share.parameters)
    }

    /// The larger ones.
    pub fn max(self, other: Self) -> Self {
        self.zip(other, f64::max)
    }
}

/// What the mesh may differ by, as it grows from step to step.
#[derive(Debug, Clone)]
pub struct Bound {
    dtype: FloatKind,
    /// What rounding has come to so far.
    rounding: Differences,
}

impl Bound {
    /// Before the first step.
    pub fn new(dtype: FloatKind) -> Self {
        Self {
            dtype,
            rounding: Differences::default(),
        }
    }

    /// Takes in what further runs of one kind differ by in this step. The middle one counts: a
    /// jump in one of them is not what the others, and the mesh, are allowed.
    pub fn widen(&mut self, runs: impl IntoIterator<Item = Differences>) {
        let runs: Vec<Differences> = runs.into_iter().collect();
        if runs.is_empty() {
            return;
        }
        let middle = |value: fn(&Differences) -> f64| {
            let mut values: Vec<f64> = runs.iter().map(value).collect();
            values.sort_by(f64::total_cmp);
            values[values.len() / 2]
        };
        self.rounding = self.rounding.max(Differences {
            loss: middle(|run| run.loss),
            gradients: middle(|run| run.gradients),
            parameters: middle(|run| run.parameters),
        });
    }

    /// What rounding came to so far; nothing in f64, where it is not measured.
    pub fn rounding(&self) -> Option<Differences> {
        (self.dtype == FloatKind::F32).then_some(self.rounding)
    }

    /// What the mesh may differ by in this step.
    pub fn current(&self) -> Differences {
        match self.dtype {
            FloatKind::F64 => Differences::of_all(F64_BOUND),
            FloatKind::F32 => Self::of_rounding(self.rounding),
        }
    }

    /// What f32 may differ by where rounding comes to so much.
    pub fn of_rounding(rounding: Differences) -> Differences {
        // A sum can be equal by chance, in the first step above all.
        let unit = Differences::of_all(f64::from(f32::EPSILON));
        rounding
            .max(unit)
            .zip(unit, |value, _| ROUNDING_FACTOR * value)
    }
}

/// A step of the mesh, against the same step of one device from the state that the mesh had before it;
/// where that step can jump, against the nearest of those that are right.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Continued {
    /// How far apart they are.
    pub mesh: Differences,
    /// How far apart they may be.
    pub bound: Differences,
}

impl Continued {
    /// Whether it is the same step.
    pub fn passed(&self) -> bool {
        self.mesh.within(&self.bound)
    }
}

/// One step of the comparison.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct StepReport {
    /// Counted from 1.
    pub step: usize,
    /// The loss on one device.
    pub loss: f64,
    /// How far the mesh is from one device.
    pub mesh: Differences,
    /// How far rounding alone has taken one device from itself, up to this step (f32).
    pub rounding: Option<Differences>,
    /// What the mesh may differ by.
    pub bound: Differences,
    /// Only where it differs by more (in f32): whether it was rounding that jumped.
    pub continued: Option<Continued>,
}

impl StepReport {
    /// Whether the mesh did what one device does.
    pub fn passed(&self) -> bool {
        self.mesh.within(&self.bound) || self.continued.is_some_and(|step| step.passed())
    }

    /// The largest share of its bound that a difference took; 1 is the bound.
    fn share(&self) -> f64 {
        let (mesh, bound) = match &self.continued {
            Some(step) => (step.mesh, step.bound),
            None => (self.mesh, self.bound),
        };
        mesh.share_of(&bound)
    }
}

/// The whole comparison.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// How the mesh was used.
    pub engine: EngineKind,
    /// The backend of the mesh.
    pub backend: String,
    /// The members of the mesh.
    pub members: Vec<String>,
    /// The network.
    pub model: ModelKind,
    /// The optimizer.
    pub optimizer: OptimizerKind,
    /// The learning rate.
    pub lr: f64,
    /// Items of a step, over all members together.
    pub batch_size: usize,
    /// Seed of parameters and order.
    pub seed: u64,
    /// Element type.
    pub dtype: FloatKind,
    /// Every step.
    pub steps: Vec<StepReport>,
    /// Whether all replicas held the same parameters at the end, bit for bit; nothing with the
    /// decorator, which has one model.
    pub replicas_equal: Option<bool>,
    /// Sums of the reductions that a CubeCL kernel did on a device.
    pub kernel_sums: u64,
    /// Sums of the reductions done in plain Rust, on backends without CubeCL.
    pub host_sums: u64,
}

impl Report {
    /// The largest differences of any step.
    pub fn worst(&self) -> Differences {
        self.steps
            .iter()
            .fold(Differences::default(), |worst, step| worst.max(step.mesh))
    }

    /// The first step in which the mesh did not do what one device does.
    pub fn first_above(&self) -> Option<&StepReport> {
        self.steps.iter().find(|step| !step.passed())
    }

    /// How many steps were above the bound of the run and right by themselves, since rounding jumped.
    pub fn jumped(&self) -> usize {
        let jumped = |step: &&StepReport| step.continued.is_some_and(|step| step.passed());
        self.steps.iter().filter(jumped).count()
    }

    /// The largest share of its bound that a difference took; 1 is the bound.
    pub fn closest(&self) -> f64 {
        self.steps.iter().map(StepReport::share).fold(0.0, f64::max)
    }

    /// Whether everything is within its bound, and no replica differs from another.
    pub fn passed(&self) -> bool {
        self.first_above().is_none() && self.replicas_equal != Some(false) && !self.steps.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(differences: &[f64], bounds: &[f64]) -> Report {
        Report {
            engine: EngineKind::Replica,
            backend: "flex".into(),
            members: vec!["flex:0".into()],
            model: ModelKind::Mlp,
            optimizer: OptimizerKind::Sgd,
            lr: 0.1,
            batch_size: 4,
            seed: 1,
            dtype: FloatKind::F32,
            steps: differences
                .iter()
                .zip(bounds)
                .enumerate()
                .map(|(i, (&gradients, &bound))| StepReport {
                    step: i + 1,
                    loss: 1.0,
                    mesh: Differences {
                        gradients,
                        ..Differences::default()
                    },
                    rounding: None,
                    bound: Differences::of_all(bound),
                    continued: None,
                })
                .collect(),
            replicas_equal: Some(true),
            kernel_sums: 0,
            host_sums: 1,
        }
    }

    #[test]
    fn a_report_passes_when_every_step_does() {
        let good = report(&[1e-7, 2e-6], &[1e-6, 4e-6]);
        assert!(good.passed());
        assert_eq!(good.closest(), 0.5);
        assert_eq!(good.worst().gradients, 2e-6);

        let bad = report(&[1e-7, 5e-6, 1e-7], &[1e-6, 4e-6, 4e-6]);
        assert_eq!(bad.first_above().map(|step| step.step), Some(2));
        assert!(!bad.passed());
        assert!(!report(&[f64::INFINITY], &[1e-6]).passed());
        assert!(!report(&[f64::NAN], &[1e-6]).passed());
        assert!(
            !report(&[], &[]).passed(),
            "nothing compared is nothing shown"
        );
        let drifted = Report {
            replicas_equal: Some(false),
            ..good
        };
        assert!(!drifted.passed());
    }

    #[test]
    fn a_jump_is_judged_by_the_step_itself() {
        let mut jumped = report(&[1e-7, 1e-3], &[1e-6, 1e-6]);
        assert!(!jumped.passed());
        let continued = |difference| Continued {
            mesh: Differences::of_all(difference),
            bound: Differences::of_all(1e-6),
        };
        jumped.steps[1].continued = Some(continued(5e-7));
        assert!(jumped.passed());
        assert_eq!((jumped.jumped(), jumped.closest()), (1, 0.5));
        jumped.steps[1].continued = Some(continued(5e-6));
        assert_eq!(jumped.first_above().map(|step| step.step), Some(2));
        assert_eq!((jumped.passed(), jumped.jumped()), (false, 0));
    }

    #[test]
    fn the_bound_of_f32_grows_with_the_rounding_seen() {
        let mut bound = Bound::new(FloatKind::F32);
        let floor = 10.0 * f64::from(f32::EPSILON);
        assert_eq!(bound.current(), Differences::of_all(floor));
        // Three runs, of which one jumped.
        bound.widen([1e-5, 0.5, 2e-5].map(Differences::of_all));
        bound.widen([1e-6, 1e-6, 1e-6].map(Differences::of_all));
        assert_eq!(bound.rounding(), Some(Differences::of_all(2e-5)));
        assert_eq!(bound.current(), Differences::of_all(10.0 * 2e-5));
        assert_eq!(
            Bound::new(FloatKind::F64).current(),
            Differences::of_all(1e-9)
        );
        assert_eq!(Bound::new(FloatKind::F64).rounding(), None);
    }
}
