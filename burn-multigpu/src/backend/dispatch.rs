//! From an operation to the commands for the members.

use super::InnerBackend;
use super::command::Command;
use super::session::{Fault, Session, next_id};
use super::state::{Creation, Place, State, is_creation, is_random, is_view, joins_batch};
use crate::layout::Layout;
use crate::partition::ir::{name, tensors_mut};
use crate::partition::plan::{Plan, batch_len, plan};
use crate::partition::rule::rule;
use burn_ir::{
    NumericOperationIr, OperationIr, ReduceDimOpIr, ReduceOpIr, ScalarIr, ScalarOpIr, TensorId,
    TensorIr, TensorStatus,
};
use std::sync::Arc;

impl<B: InnerBackend> Session<B> {
    /// Takes an operation of the program.
    pub(super) fn register(&self, op: OperationIr) {
        // The next read says why.
        if self.health.fault().is_some() {
            return;
        }
        let mut state = self.state();
        if self.members() == 1 {
            if !matches!(op, OperationIr::Init(_)) {
                self.send(&mut state, Command::RunWhole(op));
            }
            return;
        }
        self.dispatch(&mut state, op);
    }

    fn dispatch(&self, state: &mut State, op: OperationIr) {
        match op {
            OperationIr::Init(_) => {}
            OperationIr::Drop(tensor) => self.drop_tensor(state, &tensor),
            op if is_creation(&op) => {
                let out = op.outputs().next().cloned();
                if let Some(out) = out {
                    state.defer(&out, Creation::Op(Arc::new(op)));
                }
            }
            op => match split_mean(&op, state) {
                Some(steps) => steps.into_iter().for_each(|op| self.run(state, op)),
                None => self.run(state, op),
            },
        }
    }

    pub(super) fn drop_tensor(&self, state: &mut State, tensor: &TensorIr) {
        if matches!(state.place(tensor.id), Some(Place::Deferred(Creation::Op(op))) if is_random(op))
        {
            self.draw_unused(state, tensor);
        }
        if let Some(entry) = state.tensors.remove(&tensor.id)
            && matches!(entry.place, Place::Laid(_))
        {
            self.send(state, Command::RunWhole(OperationIr::Drop(tensor.clone())));
        }
    }

    fn run(&self, state: &mut State, mut op: OperationIr) {
        if op.inputs().all(|tensor| state.is_replicated(tensor.id)) {
            return self.run_whole(state, op);
        }
        let Some(given) = op
            .inputs()
            .map(|tensor| state.given(tensor))
            .collect::<Option<Vec<_>>>()
        else {
            let text = "an input of it is not a tensor of this mesh".to_string();
            self.health
                .report(Fault::member(0, &self.name(), name(&op), text));
            return;
        };
        let plan = plan(&op, &rule(&op), &given, state.members);
        let host = state.is_host_data(&op);
        let origin = origin(&op, state);
        state.log.deciding(&plan);
        let consumed = self.prepare(state, &mut op, &plan);
        state.log.ran(name(&op), &plan);

        if plan.again {
            self.run_again(state, op, plan);
        } else {
            let results: Vec<TensorIr> = op.outputs().cloned().collect();
            let joined = host && joins_batch(&op);
            for (tensor, layout) in results.iter().zip(&plan.outputs) {
                state.insert(tensor, Place::Laid(layout.clone()), host, origin);
            }
            let rebalance = plan.rebalance;
            self.send_run(state, op, plan);
            for tensor in &results {
                if rebalance || joined {
                    self.deal_batch(state, tensor);
                }
            }
        }
        for tensor in consumed {
            self.drop_tensor(state, &tensor);
        }
        if state.pending_bytes >= self.bucket_bytes.load(std::sync::atomic::Ordering::Relaxed) {
            self.reduce_pending(state, "backward");
        }
    }

    /// An operation whose inputs every member has whole: most of an optimizer's. There is nothing to
    /// plan and nothing to move.
    fn run_whole(&self, state: &mut State, op: OperationIr) {
        let host = state.is_host_data(&op);
        let origin = origin(&op, state);
        for tensor in op.inputs() {
            if tensor.status == TensorStatus::ReadWrite {
                state.tensors.remove(&tensor.id);
            }
        }
        let joined = if host && joins_batch(&op) {
            op.outputs().next().cloned()
        } else {
            None
        };
        for tensor in op.outputs() {
            state.insert(tensor, Place::Laid(Layout::Replicated), host, origin);
        }
        state.log.ran_whole(name(&op));
        self.send(state, Command::RunWhole(op));
        if let Some(tensor) = joined {
            self.deal_batch(state, &tensor);
        }
    }

    fn send_run(&self, state: &mut State, op: OperationIr, plan: Plan) {
        let cut = |layout: &Layout| matches!(layout, Layout::Sharded { .. });
        let command = if plan.inputs.iter().chain(&plan.outputs).any(cut) {
            Command::Run {
                op,
                inputs: plan.inputs,
                outputs: plan.outputs,
            }
        } else {
            Command::RunWhole(op)
        };
        self.send(state, command);
    }

    /// Brings the inputs to the layouts that they must have, and forgets those that are used for
    /// the last time. Returns what has to be dropped after the operation.
    fn prepare(&self, state: &mut State, op: &mut OperationIr, plan: &Plan) -> Vec<TensorIr> {
        let label = name(op);
        let inputs: Vec<TensorIr> = op.inputs().cloned().collect();
        let wants = |id: TensorId| {
            let own = inputs.iter().zip(&plan.inputs);
            own.filter(move |(tensor, _)| tensor.id == id)
                .map(|(_, layout)| layout)
        };
        // What is made whole comes first: with a view its origin may become whole as well, which
        // may be another operand. One tensor that is needed in two layouts is cut from the whole.
        for (tensor, layout) in inputs.iter().zip(&plan.inputs) {
            let whole = *layout == Layout::Replicated;
            if whole || wants(tensor.id).any(|other| other != layout) {
                self.bring(state, tensor, &Layout::Replicated, false, label);
            }
        }
        let mut stand_ins: Vec<Option<TensorId>> = Vec::with_capacity(inputs.len());
        for (tensor, layout) in inputs.iter().zip(&plan.inputs) {
            let last_use =
                tensor.status == TensorStatus::ReadWrite && wants(tensor.id).count() == 1;
            stand_ins.push(self.bring(state, tensor, layout, last_use, label));
        }
        let (operands, _) = tensors_mut(op);
        for (operand, stand_in) in operands.into_iter().zip(&stand_ins) {
            if let Some(id) = stand_in {
                operand.id = *id;
                operand.status = TensorStatus::ReadWrite;
            }
        }
        let mut left = Vec::new();
        for (index, tensor) in inputs.iter().enumerate() {
            if tensor.status != TensorStatus::ReadWrite {
                continue;
            }
            if stand_ins[index].is_some() {
                left.push(tensor.clone());
            } else {
                state.tensors.remove(&tensor.id);
            }
        }
        left
    }

    /// An operation whose parts give one result each: runs it on the parts, brings their results
    /// together, and runs it again on those.
    fn run_again(&self, state: &mut State, op: OperationIr, plan: Plan) {
        let mut first = op.clone();
        let mut second = op;
        let mut parts = None;
        if let (Some(Layout::Sharded { dim, bounds }), (_, results)) =
            (plan.outputs.first(), tensors_mut(&mut first))
        {
            for result in results {
                result.id = next_id();
                result.shape.as_mut_slice()[*dim] = bounds.len();
                parts = Some(result.clone());
            }
        }
        let Some(parts) = parts else { return };
        state.insert(&parts, Place::Laid(plan.outputs[0].clone()), false, None);
        let label = name(&first);
        self.send_run(state, first, plan);
        self.bring(state, &parts, &Layout::Replicated, false, label);

        let (operands, _) = tensors_mut(&mut second);
        for operand in operands {
            *operand = TensorIr {
                status: TensorStatus::ReadWrite,
                ..parts.clone()
            };
        }
        self.run(state, second);
    }

    /// Deals the rows of a tensor anew, as evenly as possible.
    fn deal_batch(&self, state: &mut State, tensor: &TensorIr) {
        let Some(Place::Laid(layout)) = state.place(tensor.id).cloned() else {
            return;
        };
        let dim = match layout {
            // Cut along another dimension before, as images are that become a batch.
            Layout::Sharded { dim, .. } if batch_len(&tensor.shape).is_none() => dim,
            _ => 0,
        };
        let even = Layout::even(dim, tensor.shape[dim], state.members);
        self.bring(state, tensor, &even, true, "dealing a batch");
    }
}

/// The tensor from the host that the result of an operation is a view of.
fn origin(op: &OperationIr, state: &State) -> Option<TensorId> {
    let input = op.inputs().next().filter(|_| is_view(op))?;
    let entry = state.tensors.get(&input.id).filter(|entry| entry.host)?;
    match (entry.origin, input.status) {
        (Some(origin), _) => Some(origin),
        (None, TensorStatus::ReadOnly) => Some(input.id),
        (None, _) => None,
    }
}

/// A mean over the dimension that is cut, as a sum divided by the count of all.
fn split_mean(op: &OperationIr, state: &State) -> Option<Vec<OperationIr>> {
    let wrap = |op: &OperationIr, numeric| match op {
        OperationIr::NumericInt(dtype, _) => OperationIr::NumericInt(*dtype, numeric),
        OperationIr::NumericFloat(dtype, _) => OperationIr::NumericFloat(*dtype, numeric),
        _ => unreachable!("only numeric operations are means"),
    };
    let (OperationIr::NumericFloat(_, numeric) | OperationIr::NumericInt(_, numeric)) = op else {
        return None;
    };
    let cut = |tensor: &TensorIr| match state.place(tensor.id) {
        Some(Place::Laid(Layout::Sharded { dim, .. })) => Some(*dim),
        _ => None,
    };
    let next = |out: &TensorIr| TensorIr {
        id: next_id(),
        ..out.clone()
    };
    let (sum, total, out, count) = match numeric {
        NumericOperationIr::Mean(desc) => {
            cut(&desc.input)?;
            let total = next(&desc.out);
            let sum = NumericOperationIr::Sum(ReduceOpIr {
                input: desc.input.clone(),
                out: total.clone(),
            });
            (sum, total, &desc.out, desc.input.shape.num_elements())
        }
        NumericOperationIr::MeanDim(desc) if cut(&desc.input) == Some(desc.axis) => {
            let total = next(&desc.out);
            let sum = NumericOperationIr::SumDim(ReduceDimOpIr {
                input: desc.input.clone(),
                out: total.clone(),
                ..desc.clone()
            });
            (sum, total, &desc.out, desc.input.shape[desc.axis])
        }
        _ => return None,
    };
    let divide = NumericOperationIr::DivScalar(ScalarOpIr {
        rhs: ScalarIr::new(count as f64, &total.dtype),
        lhs: TensorIr {
            status: TensorStatus::ReadWrite,
            ..total
        },
        out: out.clone(),
    });
    Some(vec![wrap(op, sum), wrap(op, divide)])
}
