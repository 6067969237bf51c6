//! What the decorator did with a program's operations, and why.

use crate::layout::Layout;
use crate::partition::inner;
use crate::partition::ir::NAMES;
use crate::partition::plan::{Gathered, Plan};
use burn_ir::TensorIr;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use std::fmt::{self, Write};
use std::sync::LazyLock;

/// The names of all operations that a program can consist of, as [`OperationStats`] has them: those
/// of Burn's intermediate representation, some of which no function of Burn asks for, and those of
/// the inner backend that travel beside them, such as `Inner::Softmax`.
///
/// ```
/// assert!(burn_multigpu::backend::operation_names().contains(&"Module::Conv2d"));
/// ```
#[must_use]
pub fn operation_names() -> &'static [&'static str] {
    static ALL: LazyLock<Vec<&str>> = LazyLock::new(|| [NAMES, inner::NAMES].concat());
    &ALL
}

/// What happened to the operations of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct OperationCounts {
    /// How often it ran in parts, each member on its own.
    pub sharded: u64,
    /// How often it ran whole on every member, on inputs that every member had.
    pub replicated: u64,
    /// How often it ran whole on every member, because it has no rule for inputs cut so.
    pub fallbacks: u64,
    /// How often an input of it had to be brought to another layout.
    pub gathers: u64,
    /// The bytes of those inputs.
    pub gathered_bytes: u64,
    /// How often it needed sums that were in parts.
    pub reductions: u64,
    /// The bytes of those sums.
    pub reduced_bytes: u64,
}

/// What the decorator did, by operation.
///
/// ```
/// use burn::backend::Flex;
/// use burn::tensor::Tensor;
/// use burn_multigpu::{Mesh, MultiGpu};
///
/// let mesh = Mesh::<Flex>::open("flex:0,1")?;
/// let x = Tensor::<MultiGpu<Flex>, 1>::from_floats([3.0, 1.0, 2.0], &mesh.device());
/// assert_eq!((x * 2.0).cumsum(0).into_data().to_vec::<f32>().unwrap(), [6.0, 8.0, 12.0]);
/// let operations = mesh.stats().operations;
/// assert_eq!(operations.operations["NumericFloat::CumSum"].fallbacks, 1);
/// assert_eq!(operations.total().gathered_bytes, 12);
/// # Ok::<(), burn_multigpu::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct OperationStats {
    /// By the operation's name, as `Module::Conv2d`: one of [`operation_names`], or what else moved
    /// tensors, as `read`.
    pub operations: BTreeMap<&'static str, OperationCounts>,
}

impl OperationStats {
    /// Of all operations together.
    #[must_use]
    pub fn total(&self) -> OperationCounts {
        let mut total = OperationCounts::default();
        for counts in self.operations.values() {
            total.sharded += counts.sharded;
            total.replicated += counts.replicated;
            total.fallbacks += counts.fallbacks;
            total.gathers += counts.gathers;
            total.gathered_bytes += counts.gathered_bytes;
            total.reductions += counts.reductions;
            total.reduced_bytes += counts.reduced_bytes;
        }
        total
    }
}

impl fmt::Display for OperationStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total = self.total();
        writeln!(
            f,
            "{} operations in parts, {} whole; {} fallbacks, {} gathers of {} bytes, \
             {} reductions of {} bytes",
            total.sharded,
            total.replicated,
            total.fallbacks,
            total.gathers,
            total.gathered_bytes,
            total.reductions,
            total.reduced_bytes
        )?;
        for (name, counts) in &self.operations {
            if counts.fallbacks + counts.gathers > 0 {
                writeln!(
                    f,
                    "{name}: {} fallbacks, {} gathers of {} bytes",
                    counts.fallbacks, counts.gathers, counts.gathered_bytes
                )?;
            }
        }
        Ok(())
    }
}

/// What the log of a step says, with how often.
type Lines = BTreeMap<String, usize>;

/// The decorator's record.
///
/// A step starts where a batch comes from the host after sums were added up: the first data after
/// a backward pass.
#[derive(Default)]
pub(super) struct Log {
    counts: HashMap<&'static str, OperationCounts>,
    last: Step,
    current: Step,
    /// Why the operation at hand needs its inputs in other layouts.
    why: Option<Gathered>,
}

#[derive(Default)]
struct Step {
    sharded: usize,
    replicated: usize,
    reductions: usize,
    lines: Lines,
}

impl Step {
    fn note(&mut self, line: String) {
        *self.lines.entry(line).or_default() += 1;
    }
}

impl Log {
    /// Data came from the host that may be a batch.
    pub(super) fn host_data(&mut self) {
        if self.current.reductions > 0 {
            self.last = std::mem::take(&mut self.current);
        }
    }

    pub(super) fn deciding(&mut self, plan: &Plan) {
        self.why = plan.gathered;
    }

    pub(super) fn ran(&mut self, op: &'static str, plan: &Plan) {
        let counts = self.counts.entry(op).or_default();
        let cut = |layout: &Layout| *layout != Layout::Replicated;
        if plan.gathered == Some(Gathered::NoRule) {
            counts.fallbacks += 1;
            let line = format!("{op}: {}", Gathered::NoRule.text());
            self.current.note(line);
        } else if plan.inputs.iter().chain(&plan.outputs).any(cut) {
            counts.sharded += 1;
            self.current.sharded += 1;
        } else {
            counts.replicated += 1;
            self.current.replicated += 1;
        }
        self.why = None;
    }

    /// An operation ran whole since its inputs were.
    pub(super) fn ran_whole(&mut self, op: &'static str) {
        self.counts.entry(op).or_default().replicated += 1;
        self.current.replicated += 1;
    }

    /// A tensor was made that was deferred until now. It costs next to nothing either way, and so
    /// it is no part of the step that is explained.
    pub(super) fn created(&mut self, op: &'static str, layout: &Layout) {
        let counts = self.counts.entry(op).or_default();
        match layout {
            Layout::Replicated => counts.replicated += 1,
            Layout::Sharded { .. } | Layout::Partial => counts.sharded += 1,
        }
    }

    pub(super) fn moved(
        &mut self,
        op: &'static str,
        tensor: &TensorIr,
        from: &Layout,
        to: &Layout,
    ) {
        let bytes = tensor.shape.num_elements() * tensor.dtype.size();
        let counts = self.counts.entry(op).or_default();
        counts.gathers += 1;
        counts.gathered_bytes += bytes as u64;
        let mut line = format!(
            "{op}: {:?} of {bytes} bytes, {from}, became {to}",
            tensor.shape.as_slice()
        );
        if let Some(why) = self.why {
            let _ = write!(line, ", because {}", why.text());
        }
        self.current.note(line);
    }

    pub(super) fn reduced(&mut self, op: &'static str, tensors: usize, bytes: usize) {
        let counts = self.counts.entry(op).or_default();
        counts.reductions += 1;
        counts.reduced_bytes += bytes as u64;
        self.current.reductions += 1;
        let line = format!("{op}: {tensors} sums of {bytes} bytes were added up");
        self.current.note(line);
    }

    pub(super) fn stats(&self) -> OperationStats {
        OperationStats {
            operations: self.counts.iter().map(|(name, c)| (*name, *c)).collect(),
        }
    }

    /// The last step that is complete, or what there is of the first one.
    pub(super) fn explain(&self) -> String {
        let step = match self.last.sharded + self.last.replicated {
            0 => &self.current,
            _ => &self.last,
        };
        let mut text = format!(
            "{} operations ran in parts, {} whole on every member\n",
            step.sharded, step.replicated
        );
        for (line, times) in &step.lines {
            let _ = match times {
                1 => writeln!(text, "{line}"),
                times => writeln!(text, "{line} ({times} times)"),
            };
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_ends_with_the_data_after_a_reduction() {
        let mut log = Log::default();
        log.host_data();
        log.reduced("SumDim", 2, 80);
        log.reduced("SumDim", 2, 80);
        log.host_data();
        log.host_data();
        log.current.sharded += 1;
        log.last.sharded += 5;
        assert_eq!(
            log.explain(),
            "5 operations ran in parts, 0 whole on every member\n\
             SumDim: 2 sums of 80 bytes were added up (2 times)\n"
        );
        assert_eq!(log.stats().total().reduced_bytes, 160);
    }
}
