//! Reading tensors back: the parts come straight to the host and are joined there.

use super::InnerBackend;
use super::command::{Command, Failure};
use super::member::host;
use super::session::Session;
use super::state::{Creation, Place, State};
use crate::layout::Layout;
use burn::tensor::TensorData;
use burn::tensor::backend::ExecutionError;
use burn_ir::{TensorIr, TensorStatus};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

/// What a read waits for.
pub(super) enum Pending {
    /// Nothing: it was still on the host.
    Here(Arc<TensorData>),
    /// The members' parts.
    Parts {
        answers: Receiver<(usize, Result<TensorData, Failure>)>,
        layout: Layout,
        tensor: TensorIr,
    },
    /// It will not come.
    Failed(ExecutionError),
}

impl<B: InnerBackend> Session<B> {
    /// Queues a read. The tensor's last use lets it go.
    pub(super) fn start_read(&self, tensor: TensorIr) -> Pending {
        if self.health.fault().is_some() {
            return Pending::Failed(self.ended());
        }
        let mut state = self.state();
        let pending = self.queue_read(&mut state, &tensor);
        if tensor.status == TensorStatus::ReadWrite {
            if self.members() == 1 {
                let drop = burn_ir::OperationIr::Drop(tensor);
                self.send(&mut state, Command::RunWhole(drop));
            } else {
                self.drop_tensor(&mut state, &tensor);
            }
        }
        pending
    }

    fn queue_read(&self, state: &mut State, tensor: &TensorIr) -> Pending {
        let layout = if self.members() == 1 {
            Layout::Replicated
        } else {
            match state.place(tensor.id) {
                Some(Place::Deferred(Creation::Data { data, .. })) => {
                    return Pending::Here(data.clone());
                }
                Some(Place::Laid(layout @ Layout::Sharded { .. })) => layout.clone(),
                Some(_) => {
                    self.bring(state, tensor, &Layout::Replicated, false, "read");
                    Layout::Replicated
                }
                None => {
                    return Pending::Failed(ExecutionError::WithContext {
                        reason: format!(
                            "{} is not a tensor of the mesh {}",
                            tensor.id,
                            self.name()
                        ),
                    });
                }
            }
        };
        let (reply, answers) = channel();
        let command = Command::Read {
            tensor: tensor.clone(),
            layout: layout.clone(),
            reply,
        };
        self.send(state, command);
        Pending::Parts {
            answers,
            layout,
            tensor: tensor.clone(),
        }
    }

    /// Waits for a read.
    ///
    /// # Errors
    ///
    /// That of the first member that failed, also before it came to this read.
    pub(super) fn finish_read(&self, pending: Pending) -> Result<TensorData, ExecutionError> {
        let (answers, layout, tensor) = match pending {
            Pending::Here(data) => return Ok(Arc::unwrap_or_clone(data)),
            Pending::Failed(error) => return Err(error),
            Pending::Parts {
                answers,
                layout,
                tensor,
            } => (answers, layout, tensor),
        };
        let members = self.members();
        let holders = match &layout {
            Layout::Replicated | Layout::Partial => 1,
            Layout::Sharded { .. } => (0..members).filter(|m| !layout.is_empty_at(*m)).count(),
        };
        let mut parts: Vec<Option<TensorData>> = (0..members).map(|_| None).collect();
        let mut received = 0;
        while received < holders {
            let (member, part) = self.answer(&answers)?;
            parts[member] = Some(part);
            received += 1;
        }
        let mut parts: Vec<TensorData> = parts.into_iter().flatten().collect();
        match &layout {
            Layout::Sharded { dim, .. } if !parts.is_empty() => {
                let dtype = parts[0].dtype;
                Ok(host::join(&parts, &tensor.shape, *dim, dtype))
            }
            _ => parts.pop().ok_or_else(|| self.ended()),
        }
    }
}
