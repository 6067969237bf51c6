//! The loop of a member's thread, and what happens when something panics.

use super::super::InnerBackend;
use super::super::command::{Command, Failure};
use super::super::queue::Queue;
use super::super::session::{Fault, Health};
use super::quantized::Quantized;
use crate::mesh::MeshCore;
use crate::worker::panic_message;
use burn::tensor::StreamId;
use burn_ir::{BaseOperationIr, OperationIr, ShapeOpIr, TensorId, TensorIr, TensorStatus};
use burn_router::{Runner, RunnerClient};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// What a member's thread works with.
pub(in super::super) struct Worker<B: InnerBackend> {
    pub(super) member: usize,
    pub(super) device: B::Device,
    pub(super) core: Arc<MeshCore<B>>,
    pub(super) runner: Runner<B>,
    pub(super) quantized: Quantized<B>,
    health: Arc<Health>,
}

impl<B: InnerBackend> Worker<B> {
    pub(in super::super) fn new(
        member: usize,
        core: Arc<MeshCore<B>>,
        health: Arc<Health>,
    ) -> Self {
        let device = core.devices[member].clone();
        Self {
            member,
            runner: Runner::new(device.clone()),
            device,
            core,
            quantized: Quantized::default(),
            health,
        }
    }

    /// Runs what the queue holds until it is closed.
    ///
    /// All members work on one stream, `stream`: CubeCL's wgpu runtime hands memory freed in one
    /// stream out again while a task of another stream that reads it still waits, and members on
    /// one device exchange tensors.
    pub(in super::super) fn run(mut self, queue: &Queue<B>, stream: StreamId) {
        stream.executes(|| {
            while let Some(commands) = queue.take() {
                for command in commands {
                    queue.begin(command.name());
                    self.step(&command);
                }
            }
        });
    }

    fn step(&mut self, command: &Arc<Command<B>>) {
        if let Some(fault) = self.health.fault() {
            return self.refuse(command, &fault);
        }
        let done = catch_unwind(AssertUnwindSafe(|| self.execute(command)));
        let cause = match done {
            Ok(Ok(())) => return,
            // Another member failed, and has said so.
            Ok(Err(Stop::Fault(fault))) => return self.refuse(command, &fault),
            Ok(Err(Stop::Device(cause))) => cause,
            Err(panic) => format!("panicked: {}", panic_message(panic.as_ref())),
        };
        let fault = self.health.report(Fault::member(
            self.member,
            &self.core.members[self.member].label,
            command.name(),
            cause,
        ));
        self.refuse(command, &fault);
    }

    /// Takes part in a command with an error in place of a result, so that nobody waits.
    fn refuse(&self, command: &Command<B>, fault: &Arc<Fault>) {
        let failure = || Failure::Fault(fault.clone());
        match command {
            Command::Random { turns, drawn, .. } => {
                drop(turns.wait(self.member));
                drawn.bring(self.member, Err(fault.clone()));
            }
            Command::Move { parts, .. } => parts.bring(self.member, Err(fault.clone())),
            Command::Reduce(reduction) => {
                reduction.packed.bring(self.member, Err(fault.clone()));
                if let Some(summed) = &reduction.summed {
                    summed.bring(self.member, Err(fault.clone()));
                }
            }
            // The other side may have given up.
            Command::Read { reply, .. } => drop(reply.send((self.member, Err(failure())))),
            Command::Sync(reply) | Command::Fence(reply) => {
                drop(reply.send((self.member, Err(failure()))));
            }
            Command::Run { .. }
            | Command::RunWhole(_)
            | Command::Upload { .. }
            | Command::Cut { .. }
            | Command::Cleanup => {}
        }
    }

    /// Puts a tensor under an id of the session. The runner can only name tensors itself, so it is
    /// given this one and asked for a view of it under the right name.
    pub(super) fn register(
        &self,
        id: TensorId,
        tensor: super::Primitive<B>,
        shape: burn::tensor::Shape,
        dtype: burn::tensor::DType,
    ) {
        let handle = tensor.into_handle();
        let named = self
            .runner
            .register_tensor(handle, shape, dtype, self.runner.clone())
            .into_ir();
        let out = TensorIr::uninit(id, named.shape.clone(), dtype);
        let view = BaseOperationIr::Reshape(ShapeOpIr { input: named, out });
        self.runner.register_op(base_op(dtype, view));
    }

    /// A member's part of a tensor; its own handle stays.
    pub(super) fn part(
        &self,
        tensor: &TensorIr,
        shape: burn::tensor::Shape,
    ) -> super::Primitive<B> {
        self.get(tensor, shape, TensorStatus::ReadOnly)
    }

    /// Takes a tensor out of the runner.
    pub(super) fn take(&self, tensor: &TensorIr) -> super::Primitive<B> {
        self.get(tensor, tensor.shape.clone(), TensorStatus::ReadWrite)
    }

    /// A tensor that an operation takes: its last use takes it out of the runner.
    pub(super) fn input(&self, tensor: &TensorIr) -> super::Primitive<B> {
        self.get(tensor, tensor.shape.clone(), tensor.status)
    }

    fn get(
        &self,
        tensor: &TensorIr,
        shape: burn::tensor::Shape,
        status: TensorStatus,
    ) -> super::Primitive<B> {
        let handle = self.runner.get_tensor_handle(&TensorIr {
            status,
            ..tensor.clone()
        });
        super::Primitive::from_handle(handle, shape, tensor.dtype)
    }

    pub(super) fn drop_tensor(&self, tensor: &TensorIr) {
        self.runner.register_op(OperationIr::Drop(tensor.clone()));
    }
}

/// Why a command was not done.
pub(super) enum Stop {
    /// A member failed; its fault is known.
    Fault(Arc<Fault>),
    /// This member's device or library call failed.
    Device(String),
}

impl From<Arc<Fault>> for Stop {
    fn from(fault: Arc<Fault>) -> Self {
        Self::Fault(fault)
    }
}

impl From<crate::Error> for Stop {
    fn from(error: crate::Error) -> Self {
        Self::Device(error.to_string())
    }
}

impl From<burn::tensor::backend::ExecutionError> for Stop {
    fn from(error: burn::tensor::backend::ExecutionError) -> Self {
        Self::Device(error.to_string())
    }
}

/// An operation on any kind of tensor, of the kind that a dtype says.
pub(in super::super) fn base_op(dtype: burn::tensor::DType, op: BaseOperationIr) -> OperationIr {
    if dtype.is_bool() {
        OperationIr::BaseBool(op)
    } else if dtype.is_float() || matches!(dtype, burn::tensor::DType::QFloat(_)) {
        OperationIr::BaseFloat(op)
    } else {
        OperationIr::BaseInt(op)
    }
}
