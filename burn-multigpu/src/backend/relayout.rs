//! Bringing a tensor to the layout that an operation needs.

use super::InnerBackend;
use super::command::{Command, Reduction};
use super::meeting::Meeting;
use super::session::{Session, next_id};
use super::state::{Creation, Place, State, is_random};
use crate::collective::BucketPlan;
use crate::layout::{Bounds, Layout};
use crate::partition::ir::name;
use burn::tensor::DType;
use burn_ir::{TensorId, TensorIr, TensorStatus};
use std::sync::Arc;
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
                return self.bring(state, tensor, want, last_use, op);
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
            let root = root.ir(id, TensorStatus::ReadOnly);
            self.bring(state, &root, &Layout::Replicated, false, op);
        }
    }

    /// Makes a tensor that was deferred: as wanted, or whole.
    fn create(&self, state: &mut State, out: &TensorIr, creation: Creation, want: &Layout) {
        let command = match creation {
            Creation::Data { data, .. } => Command::Upload {
                out: out.id,
                data,
                layout: want.clone(),
            },
            Creation::Op(op) if is_random(&op) => return self.draw_until(state, out.id, want),
            Creation::Op(op) => {
                state.log.created(name(&op), want);
                let op = Arc::unwrap_or_clone(op);
                match want {
                    Layout::Sharded { .. } => Command::Run {
                        op,
                        inputs: Vec::new(),
                        outputs: vec![want.clone()],
                    },
                    Layout::Replicated | Layout::Partial => Command::RunWhole(op),
                }
            }
        };
        self.send(state, command);
        state.set_layout(out.id, want.clone());
    }

    /// Draws the numbers of a random tensor, after those of all that the program made before it:
    /// one device draws them where they are made, and the generator must give each the same.
    fn draw_until(&self, state: &mut State, last: TensorId, want: &Layout) {
        while let Some(id) = state.undrawn.pop_front() {
            if id == last {
                return self.draw(state, id, want);
            }
            self.draw(state, id, &Layout::Replicated);
        }
    }

    /// Draws what is still deferred.
    pub(super) fn draw_all(&self, state: &mut State) {
        while let Some(id) = state.undrawn.pop_front() {
            self.draw(state, id, &Layout::Replicated);
        }
    }

    fn draw(&self, state: &mut State, id: TensorId, want: &Layout) {
        let Some(Place::Deferred(Creation::Op(op))) = state.place(id).cloned() else {
            return;
        };
        // Members draw their parts one after the other, which is the order of one device where no
        // dimension before the cut takes turns between them.
        let in_order = match (want, op.outputs().next()) {
            (Layout::Sharded { dim, .. }, Some(out)) => {
                out.shape.as_slice()[..*dim].iter().product::<usize>() <= 1
            }
            _ => true,
        };
        let layout = if in_order {
            want.clone()
        } else {
            Layout::Replicated
        };
        state.log.created(name(&op), &layout);
        let command = Command::Random {
            op: Arc::unwrap_or_clone(op),
            layout: layout.clone(),
            turns: state.line.turns(state.members),
            drawn: Meeting::new(state.members),
        };
        self.send(state, command);
        state.set_layout(id, layout);
    }

    /// Draws the numbers of a random tensor that nobody has used, on the first member alone, so
    /// that the next one gets those that it gets on one device.
    pub(super) fn draw_unused(&self, state: &mut State, tensor: &TensorIr) {
        let rows = tensor.shape.as_slice().first().copied().unwrap_or(0);
        let others = std::iter::repeat_n(0, state.members - 1);
        let first = Layout::Sharded {
            dim: 0,
            bounds: Bounds::from_sizes(std::iter::once(rows).chain(others)),
        };
        self.draw_until(state, tensor.id, &first);
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
                partial.then(|| entry.ir(id, TensorStatus::ReadWrite))
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
