//! What the caller's thread says to the members. One command goes to all of them, and each takes
//! its own part of it.

use super::InnerBackend;
use super::meeting::{Meeting, Turns};
use super::member::Primitive;
use super::session::Fault;
use crate::collective::BucketPlan;
use crate::layout::Layout;
use burn::tensor::{TensorData, backend::ExecutionError};
use burn_backend::tensor::FloatTensor;
use burn_ir::{OperationIr, TensorId, TensorIr};
use std::sync::Arc;
use std::sync::mpsc::Sender;

/// Where a member's answer goes: its position, and what it has.
pub(super) type Reply<T> = Sender<(usize, Result<T, Failure>)>;

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum Failure {
    /// The mesh has stopped.
    Fault(Arc<Fault>),
    /// The device reported an error.
    Device(ExecutionError),
}

pub(super) enum Command<B: InnerBackend> {
    /// Runs an operation, each member on its parts.
    Run {
        op: OperationIr,
        inputs: Vec<Layout>,
        outputs: Vec<Layout>,
    },
    /// Runs an operation whole on every member.
    RunWhole(OperationIr),
    /// Brings each member its part of data from the host.
    Upload {
        out: TensorId,
        data: Arc<TensorData>,
        layout: Layout,
    },
    /// Draws random numbers.
    Random {
        op: OperationIr,
        layout: Layout,
        turns: Turns,
        drawn: Meeting<Primitive<B>>,
    },
    /// Cuts a replicated tensor: each member keeps its part, under a new id or the same one.
    Cut {
        tensor: TensorIr,
        out: TensorId,
        layout: Layout,
    },
    /// Brings the parts of a tensor from where they are to where they are needed.
    Move {
        op: &'static str,
        tensor: TensorIr,
        from: Layout,
        to: Layout,
        parts: Meeting<Option<Primitive<B>>>,
    },
    /// Adds up partial sums, so that every member has the whole sums.
    Reduce(Reduction<B>),
    /// Reads a member's part.
    Read {
        tensor: TensorIr,
        layout: Layout,
        reply: Reply<TensorData>,
    },
    /// Waits for the device.
    Sync(Reply<()>),
    /// Answers when all that was queued before has been issued.
    Fence(Reply<()>),
    /// Gives memory that is free back to the device.
    Cleanup,
}

/// Tensors whose partial sums are added up together.
pub(super) struct Reduction<B: InnerBackend> {
    pub(super) op: &'static str,
    pub(super) tensors: Vec<TensorIr>,
    pub(super) plan: BucketPlan,
    /// The buffers of each member, by bucket and chunk.
    pub(super) packed: Meeting<Buffers<B>>,
    /// The chunks that each member has summed, by bucket; `None` where all buffers are so small
    /// that every member sums all of them itself.
    pub(super) summed: Option<Meeting<Vec<FloatTensor<B>>>>,
}

/// Buffers by bucket and chunk.
pub(super) type Buffers<B> = Arc<Vec<Vec<FloatTensor<B>>>>;

impl<B: InnerBackend> Command<B> {
    /// What errors call it.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Run { op, .. } | Self::RunWhole(op) | Self::Random { op, .. } => {
                crate::partition::ir::name(op)
            }
            Self::Upload { .. } => "upload",
            Self::Cut { .. } => "cut",
            Self::Move { op, .. } => op,
            Self::Reduce(reduction) => reduction.op,
            Self::Read { .. } => "read",
            Self::Sync(_) | Self::Fence(_) => "sync",
            Self::Cleanup => "memory cleanup",
        }
    }
}
