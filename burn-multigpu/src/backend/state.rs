//! The tensors of a session and their layouts.

use super::explain::Log;
use super::meeting::Line;
use crate::layout::Layout;
use crate::partition::plan::Given;
use burn::tensor::{DType, Shape, TensorData};
use burn_ir::{
    BaseOperationIr, FloatOperationIr, NumericOperationIr, OperationIr, TensorId, TensorIr,
    TensorStatus,
};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// What is known of a session's tensors. The lock around it also orders the commands: whoever
/// queues one holds it.
pub(super) struct State {
    pub(super) members: usize,
    pub(super) tensors: HashMap<TensorId, Entry>,
    /// Deferred tensors of random numbers, in the order in which the program made them.
    pub(super) undrawn: VecDeque<TensorId>,
    /// Where members stand in line to draw random numbers.
    pub(super) line: Line,
    /// Partial sums, oldest first, and their bytes.
    pub(super) pending: Vec<TensorId>,
    pub(super) pending_bytes: usize,
    pub(super) log: Log,
}

/// A tensor.
pub(super) struct Entry {
    pub(super) place: Place,
    pub(super) shape: Shape,
    pub(super) dtype: DType,
    /// Whether it was made of nothing but data from the host, without a model's work in it.
    pub(super) host: bool,
    /// The tensor from the host that it is a view of.
    pub(super) origin: Option<TensorId>,
}

/// Where a tensor is.
#[derive(Clone)]
pub(super) enum Place {
    Laid(Layout),
    /// Nowhere yet: its first use decides.
    Deferred(Creation),
}

/// How a tensor will be made.
#[derive(Clone)]
pub(super) enum Creation {
    Op(Arc<OperationIr>),
    Data {
        data: Arc<TensorData>,
        /// Whether its first dimension may be a batch.
        batch: bool,
    },
}

impl Entry {
    /// The tensor as an operand.
    pub(super) fn ir(&self, id: TensorId, status: TensorStatus) -> TensorIr {
        TensorIr {
            id,
            shape: self.shape.clone(),
            status,
            dtype: self.dtype,
        }
    }
}

impl State {
    pub(super) fn new(members: usize) -> Self {
        Self {
            members,
            tensors: HashMap::new(),
            undrawn: VecDeque::new(),
            line: Line::default(),
            pending: Vec::new(),
            pending_bytes: 0,
            log: Log::default(),
        }
    }

    /// Notes a tensor that its first use will make.
    pub(super) fn defer(&mut self, out: &TensorIr, creation: Creation) {
        let host = matches!(&creation, Creation::Data { .. });
        if matches!(&creation, Creation::Data { batch: true, .. }) {
            self.log.host_data();
        }
        if matches!(&creation, Creation::Op(op) if is_random(op)) {
            self.undrawn.push_back(out.id);
        }
        self.insert(out, Place::Deferred(creation), host, None);
    }

    pub(super) fn insert(
        &mut self,
        tensor: &TensorIr,
        place: Place,
        host: bool,
        origin: Option<TensorId>,
    ) {
        if matches!(&place, Place::Laid(Layout::Partial)) {
            self.pending.push(tensor.id);
            self.pending_bytes += tensor.shape.num_elements() * tensor.dtype.size();
        }
        let entry = Entry {
            place,
            shape: tensor.shape.clone(),
            dtype: tensor.dtype,
            host,
            origin,
        };
        self.tensors.insert(tensor.id, entry);
    }

    pub(super) fn place(&self, id: TensorId) -> Option<&Place> {
        self.tensors.get(&id).map(|entry| &entry.place)
    }

    pub(super) fn is_replicated(&self, id: TensorId) -> bool {
        matches!(self.place(id), Some(Place::Laid(Layout::Replicated)))
    }

    pub(super) fn set_layout(&mut self, id: TensorId, layout: Layout) {
        if let Some(entry) = self.tensors.get_mut(&id) {
            entry.place = Place::Laid(layout);
        }
    }

    /// What the planner needs to know of a tensor; `None` for one that the session does not know.
    pub(super) fn given(&self, tensor: &TensorIr) -> Option<Given> {
        let entry = self.tensors.get(&tensor.id)?;
        Some(match &entry.place {
            Place::Laid(layout) => Given::Placed(layout.clone()),
            Place::Deferred(Creation::Data { batch, .. }) => Given::Free {
                host: *batch,
                zero: false,
            },
            Place::Deferred(Creation::Op(op)) => Given::Free {
                host: false,
                zero: is_zeros(op),
            },
        })
    }

    /// Whether an operation's results are made of data from the host alone: everything else that it
    /// takes is not there yet, and it does none of a model's work.
    pub(super) fn is_host_data(&self, op: &OperationIr) -> bool {
        let mut any = false;
        let all = op.inputs().all(|tensor| {
            let Some(entry) = self.tensors.get(&tensor.id) else {
                return false;
            };
            any |= entry.host;
            entry.host || matches!(entry.place, Place::Deferred(_))
        });
        let light = !matches!(
            op,
            OperationIr::Module(_)
                | OperationIr::Float(_, FloatOperationIr::Matmul(_))
                | OperationIr::Custom(_)
        );
        any && all && light
    }
}

fn is_zeros(op: &OperationIr) -> bool {
    let zero = |value: &burn_ir::ScalarIr| value.elem::<f64>() == 0.0;
    match op {
        OperationIr::BaseFloat(BaseOperationIr::Zeros(_))
        | OperationIr::BaseInt(BaseOperationIr::Zeros(_)) => true,
        OperationIr::NumericFloat(_, NumericOperationIr::Full(desc))
        | OperationIr::NumericInt(_, NumericOperationIr::Full(desc)) => zero(&desc.value),
        _ => false,
    }
}

/// Whether an operation makes a tensor out of nothing.
pub(super) fn is_creation(op: &OperationIr) -> bool {
    match op {
        OperationIr::BaseFloat(op) | OperationIr::BaseInt(op) | OperationIr::BaseBool(op) => {
            matches!(
                op,
                BaseOperationIr::Empty(_) | BaseOperationIr::Ones(_) | BaseOperationIr::Zeros(_)
            )
        }
        OperationIr::NumericFloat(_, op) | OperationIr::NumericInt(_, op) => matches!(
            op,
            NumericOperationIr::Full(_) | NumericOperationIr::IntRandom(_)
        ),
        OperationIr::Float(_, FloatOperationIr::Random(_)) => true,
        _ => false,
    }
}

/// Whether a creation draws random numbers.
pub(super) fn is_random(op: &OperationIr) -> bool {
    matches!(
        op,
        OperationIr::Float(_, FloatOperationIr::Random(_))
            | OperationIr::NumericFloat(_, NumericOperationIr::IntRandom(_))
            | OperationIr::NumericInt(_, NumericOperationIr::IntRandom(_))
    )
}

/// Whether an operation only looks at its input in another way.
pub(super) fn is_view(op: &OperationIr) -> bool {
    match op {
        OperationIr::BaseFloat(op) | OperationIr::BaseInt(op) | OperationIr::BaseBool(op) => {
            matches!(
                op,
                BaseOperationIr::Reshape(_)
                    | BaseOperationIr::SwapDims(_)
                    | BaseOperationIr::Permute(_)
                    | BaseOperationIr::Expand(_)
            )
        }
        _ => false,
    }
}

/// Whether an operation joins tensors along their first dimension.
pub(super) fn joins_batch(op: &OperationIr) -> bool {
    match op {
        OperationIr::BaseFloat(BaseOperationIr::Cat(desc))
        | OperationIr::BaseInt(BaseOperationIr::Cat(desc))
        | OperationIr::BaseBool(BaseOperationIr::Cat(desc)) => desc.dim == 0,
        _ => false,
    }
}
