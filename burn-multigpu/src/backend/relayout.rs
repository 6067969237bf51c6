//! Bringing a tensor to the layout that an operation needs.

use super::InnerBackend;
use super::command::{Command, Reduction};
use super::meeting::{Meeting, Turn};
use super::session::{Session, next_id};
use super::state::{Creation, Place, State, is_random};
use crate::collective::BucketPlan;
use crate::layout::Layout;
use crate::partition::ir::name;
use burn::tensor::DType;
use burn_ir::{TensorId, TensorIr, TensorStatus};
use std::sync::atomic::Ordering;

/// Sums up to this size are added up by every member itself: one exchange instead of two, and more
/// bytes, which do not matter yet.
const SMALL_BYTES: usize = 64 * 1024;

impl<B: InnerBackend> Session<B> {
    /// Brings a tensor to a layout, for the operation named `op`.
    ///
    /// Mostly the tensor itself changes its layout and keeps it. A whole tensor of which parts are
    /// needed stays whole, unless this is its last use: the parts get an id of their own, which is
    /// returned.
    pub(super) fn bring(
        &self,
        state: &mut State,
        tensor: &TensorIr,
        want: &Layout,
        last_use: bool,
        op: &'static str,
    ) -> Option<TensorId> {
        let have = match state.place(tensor.id)? {
            Place::Deferred(creation) => {
                let creation = creation.clone();
                self.create(state, tensor, creation, want);
                return None;
            }
            Place::Laid(have) => have.clone(),
        };
        if have == *want {
            return None;
        }
        if have == Layout::Partial {
            self.reduce_pending(state, op);
            return self.bring(state, tensor, want, last_use, op);
        }
        match (&have, want) {
            (Layout::Replicated, Layout::Sharded { .. }) => {
                let out = if last_use { tensor.id } else { next_id() };
                let cut = Command::Cut {
                    tensor: tensor.clone(),
                    out,
                    layout: want.clone(),
                };
                self.send(state, cut);
                if last_use {
                    state.set_layout(tensor.id, want.clone());
                    return None;
                }
                Some(out)
            }
            (Layout::Sharded { .. }, _) => {
                self.move_parts(state, tensor, have, want, op);
                None
            }
            _ => None,
        }
    }

    fn move_parts(
        &self,
        state: &mut State,
        tensor: &TensorIr,
        from: Layout,
        to: &Layout,
        op: &'static str,
    ) {
        state.log.moved(op, tensor, &from, to);
        let command = Command::Move {
            op,
            tensor: TensorIr {
                status: TensorStatus::ReadOnly,
                ..tensor.clone()
            },
            from,
            to: to.clone(),
            parts: Meeting::new(state.members),
        };
        self.send(state, command);
        state.set_layout(tensor.id, to.clone());
        // A wrong guess costs one exchange: what a view was needed whole of will be needed whole
        // the next time as well.
        let origin = state
            .tensors
            .get(&tensor.id)
            .and_then(|entry| entry.origin)
            .filter(|_| *to == Layout::Replicated);
        if let Some(id) = origin
            && let Some(root) = state.tensors.get(&id)
            && matches!(root.place, Place::Laid(Layout::Sharded { .. }))
        {
            let root = TensorIr {
                id,
                shape: root.shape.clone(),
                status: TensorStatus::ReadOnly,
                dtype: root.dtype,
            };
            self.bring(state, &root, &Layout::Replicated, false, op);
        }
    }

    /// Makes a tensor that was deferred.
    fn create(&self, state: &mut State, out: &TensorIr, creation: Creation, layout: &Layout) {
        if let Creation::Op(op) = &creation {
            state.log.created(name(op), layout);
        }
        let command = match creation {
            Creation::Data { data, .. } => Command::Upload {
                out: out.id,
                data,
                layout: layout.clone(),
            },
            Creation::Op(op) if is_random(&op) => Command::Random {
                op,
                layout: layout.clone(),
                turn: Turn::default(),
                drawn: Meeting::new(state.members),
            },
            Creation::Op(op) => match layout {
                Layout::Sharded { .. } => Command::Run {
                    op,
                    inputs: Vec::new(),
                    outputs: vec![layout.clone()],
                },
                Layout::Replicated | Layout::Partial => Command::RunWhole(op),
            },
        };
        self.send(state, command);
        state.set_layout(out.id, layout.clone());
    }

    /// Adds up all partial sums that are pending.
    pub(super) fn reduce_pending(&self, state: &mut State, op: &'static str) {
        state.pending_bytes = 0;
        let pending = std::mem::take(&mut state.pending);
        let tensors: Vec<TensorIr> = pending
            .into_iter()
            .filter_map(|id| {
                let entry = state.tensors.get(&id)?;
                let partial = matches!(entry.place, Place::Laid(Layout::Partial));
                partial.then(|| TensorIr {
                    id,
                    shape: entry.shape.clone(),
                    status: TensorStatus::ReadWrite,
                    dtype: entry.dtype,
                })
            })
            .collect();
        if tensors.is_empty() {
            return;
        }
        let kinds: Vec<(DType, usize)> = tensors
            .iter()
            .map(|tensor| (tensor.dtype, tensor.shape.num_elements()))
            .collect();
        let bytes: usize = kinds.iter().map(|(dtype, len)| dtype.size() * len).sum();
        let small = bytes <= SMALL_BYTES;
        let chunks = if small { 1 } else { state.members };
        let bucket_bytes = self.bucket_bytes.load(Ordering::Relaxed);
        for tensor in &tensors {
            state.set_layout(tensor.id, Layout::Replicated);
        }
        state.log.reduced(op, tensors.len(), bytes);
        let reduction = Reduction {
            op,
            plan: BucketPlan::new(&kinds, chunks, bucket_bytes),
            tensors,
            packed: Meeting::new(state.members),
            summed: (!small).then(|| Meeting::new(state.members)),
        };
        self.send(state, Command::Reduce(reduction));
    }

    /// Changes the layout of a tensor that stays where it is, as a user asks.
    pub(super) fn relayout(&self, tensor: &TensorIr, want: &Layout) {
        if self.members() == 1 || self.health.fault().is_some() {
            return;
        }
        let mut state = self.state();
        self.bring(&mut state, tensor, want, true, "a change of layout");
        if let Some(entry) = state.tensors.get_mut(&tensor.id) {
            // The user has spoken: it is no guess any more.
            entry.origin = None;
        }
    }

    /// The layout of a tensor; `None` while its first use has not decided.
    pub(super) fn layout(&self, tensor: &TensorIr) -> Option<Layout> {
        if self.members() == 1 {
            return Some(Layout::Replicated);
        }
        match self.state().place(tensor.id) {
            Some(Place::Laid(layout)) => Some(layout.clone()),
            Some(Place::Deferred(_)) | None => None,
        }
    }
}
