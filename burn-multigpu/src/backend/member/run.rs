//! What a member does by itself: operations, uploads, random numbers, reads.

use super::super::InnerBackend;
use super::super::command::{Command, Failure};
use super::host;
use super::worker::{Stop, Worker, base_op};
use crate::layout::Layout;
use crate::partition::ir::tensors_mut;
use crate::partition::local::localize;
use burn::tensor::{DType, Slice, TensorData};
use burn_ir::{
    BaseOperationIr, CreationOpIr, OperationIr, SliceOpIr, TensorId, TensorIr, TensorStatus,
};
use burn_router::RunnerClient;

impl<B: InnerBackend> Worker<B> {
    pub(super) fn execute(&mut self, command: &Command<B>) -> Result<(), Stop> {
        match command {
            Command::RunWhole(op) => self.run_op(op.clone())?,
            Command::Run {
                op,
                inputs,
                outputs,
            } => self.run_parts(op, inputs, outputs)?,
            Command::Upload { out, data, layout } => self.upload(*out, data, layout),
            Command::Random {
                op,
                layout,
                turns,
                drawn,
            } => self.draw(op, layout, turns, drawn)?,
            Command::Cut {
                tensor,
                out,
                layout,
            } => self.cut(tensor, *out, layout),
            Command::Move {
                tensor,
                from,
                to,
                parts,
                ..
            } => self.exchange(tensor, from, to, parts)?,
            Command::Reduce(reduction) => self.reduce(reduction)?,
            Command::Read {
                tensor,
                layout,
                reply,
            } => {
                let holds = match layout {
                    Layout::Replicated | Layout::Partial => self.member == 0,
                    Layout::Sharded { .. } => !layout.is_empty_at(self.member),
                };
                if holds {
                    let read = self.read(tensor, layout).map_err(Failure::Device);
                    // The reader may have given up.
                    let _ = reply.send((self.member, read));
                }
            }
            Command::Sync(reply) => {
                let synced = B::sync(&self.device).map_err(Failure::Device);
                let _ = reply.send((self.member, synced));
            }
            Command::Fence(reply) => {
                let _ = reply.send((self.member, Ok(())));
            }
            Command::Cleanup => B::memory_cleanup(&self.device),
        }
        Ok(())
    }

    fn run_op(&mut self, op: OperationIr) -> Result<(), Stop> {
        if let OperationIr::Drop(tensor) = &op {
            self.quantized.remove(tensor.id);
        } else if let OperationIr::Custom(op) = &op {
            return self.run_inner(op);
        } else if let OperationIr::BaseInt(BaseOperationIr::Cast(op)) = &op {
            return self.cast_int(op);
        } else if is_quantized(&op) {
            return self.run_quantized(&op);
        }
        self.runner.register_op(op);
        Ok(())
    }

    fn run_parts(
        &mut self,
        op: &OperationIr,
        inputs: &[Layout],
        outputs: &[Layout],
    ) -> Result<(), Stop> {
        let idle = inputs
            .iter()
            .chain(outputs)
            .any(|layout| layout.is_empty_at(self.member));
        if idle {
            self.run_nothing(op, inputs, outputs);
            return Ok(());
        }
        self.run_op(localize(op, inputs, outputs, self.member))
    }

    /// The part of a member that has no elements: its sums are zero, and what was used for the last
    /// time is let go.
    fn run_nothing(&self, op: &OperationIr, inputs: &[Layout], outputs: &[Layout]) {
        let mut op = op.clone();
        let (operands, results) = tensors_mut(&mut op);
        for (tensor, layout) in operands.into_iter().zip(inputs) {
            if tensor.status == TensorStatus::ReadWrite && !layout.is_empty_at(self.member) {
                self.drop_tensor(tensor);
            }
        }
        for (tensor, layout) in results.into_iter().zip(outputs) {
            if *layout == Layout::Partial {
                let zeros = BaseOperationIr::Zeros(CreationOpIr {
                    out: tensor.clone(),
                });
                self.runner.register_op(base_op(tensor.dtype, zeros));
            }
        }
    }

    fn upload(&mut self, out: TensorId, data: &TensorData, layout: &Layout) {
        if layout.is_empty_at(self.member) {
            return;
        }
        let part = host::part(data, layout, self.member);
        if let DType::QFloat(_) = data.dtype {
            let tensor = B::q_from_data(part, &self.device);
            self.quantized.insert(out, tensor);
        } else {
            self.runner.register_tensor_data_id(out, part);
        }
    }

    fn cut(&self, tensor: &TensorIr, out: TensorId, layout: &Layout) {
        let Layout::Sharded { dim, bounds } = layout else {
            return;
        };
        let in_place = tensor.id == out;
        if layout.is_empty_at(self.member) {
            if in_place {
                self.drop_tensor(tensor);
            }
            return;
        }
        let range = bounds.range(self.member);
        let ranges = (0..tensor.shape.num_dims())
            .map(|d| {
                let range = if d == *dim {
                    range.clone()
                } else {
                    0..tensor.shape[d]
                };
                Slice::new(range.start as isize, Some(range.end as isize), 1)
            })
            .collect();
        let status = if in_place {
            TensorStatus::ReadWrite
        } else {
            TensorStatus::ReadOnly
        };
        let slice = BaseOperationIr::Slice(SliceOpIr {
            tensor: TensorIr {
                status,
                ..tensor.clone()
            },
            ranges,
            out: TensorIr::uninit(
                out,
                layout.local_shape(&tensor.shape, self.member),
                tensor.dtype,
            ),
        });
        self.runner.register_op(base_op(tensor.dtype, slice));
    }

    fn read(
        &mut self,
        tensor: &TensorIr,
        layout: &Layout,
    ) -> Result<TensorData, burn::tensor::backend::ExecutionError> {
        if let DType::QFloat(_) = tensor.dtype {
            return self.read_quantized(tensor);
        }
        let shape = layout.local_shape(&tensor.shape, self.member);
        self.part(tensor, shape).read()
    }
}

fn is_quantized(op: &OperationIr) -> bool {
    op.inputs()
        .chain(op.outputs())
        .any(|tensor| matches!(tensor.dtype, DType::QFloat(_)))
}
