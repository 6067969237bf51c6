//! The two places where a case runs: one device, and a mesh of the same backend.

use super::place::{Inputs, Lay, Place, Values, mix};
use burn::tensor::backend::Backend;
use burn::tensor::{Bool, DType, Int, Shape, Tensor, TensorData, TensorPrimitive};
use burn_multigpu::backend::InnerBackend;
use burn_multigpu::{Mesh, MeshDevice, MultiGpu};
use std::cell::RefCell;
use std::fmt;

/// One device: the judge.
#[derive(Debug)]
pub(super) struct One<B: Backend> {
    inputs: Inputs,
    device: B::Device,
}

impl<B: Backend> One<B> {
    /// This device.
    pub(super) fn new(inputs: Inputs, device: B::Device) -> Self {
        Self { inputs, device }
    }
}

impl<B: Backend> Place<B> for One<B> {
    fn inputs(&self) -> &Inputs {
        &self.inputs
    }

    fn device(&self) -> B::Device {
        self.device.clone()
    }

    fn other_device(&self) -> B::Device {
        self.device.clone()
    }

    fn lay_float<const D: usize>(&self, values: Values, _lay: Lay) -> Tensor<B, D> {
        float(values, self.dtype(), &self.device)
    }

    fn lay_int<const D: usize>(&self, values: Values, _lay: Lay) -> Tensor<B, D, Int> {
        int(values, &self.device)
    }

    fn lay_bool<const D: usize>(&self, values: Values, _lay: Lay) -> Tensor<B, D, Bool> {
        bool(values, &self.device)
    }
}

/// An input that is kept, so that no use of it in the case is its last: how to read it, and what
/// must be read.
type Kept = (Box<dyn Fn() -> TensorData>, TensorData);

/// A mesh.
pub(super) struct OnMesh<B: InnerBackend> {
    inputs: Inputs,
    mesh: Mesh<B>,
    other: MeshDevice<B>,
    kept: Option<RefCell<Vec<Kept>>>,
}

impl<B: InnerBackend> OnMesh<B> {
    /// This mesh, with another one to move tensors to. `keep` holds on to the inputs.
    pub(super) fn new(inputs: Inputs, mesh: &Mesh<B>, other: &Mesh<B>, keep: bool) -> Self {
        Self {
            inputs,
            mesh: mesh.clone(),
            other: other.device(),
            kept: keep.then(RefCell::default),
        }
    }

    /// What the inputs that were kept hold now, and what they held at first.
    pub(super) fn kept(&self) -> Vec<(TensorData, TensorData)> {
        let Some(kept) = &self.kept else {
            return Vec::new();
        };
        kept.take()
            .into_iter()
            .map(|(read, first)| (read(), first))
            .collect()
    }

    fn keep(&self, first: TensorData, read: impl Fn() -> TensorData + 'static) {
        if let Some(kept) = &self.kept {
            kept.borrow_mut().push((Box::new(read), first));
        }
    }

    /// Rows, one for each member and one more, that add up to these values without rounding.
    fn sum_in_parts<const D: usize>(&self, data: &TensorData) -> Tensor<MultiGpu<B>, D> {
        let values: Vec<f64> = data.iter().collect();
        let (rows, len) = (self.mesh.len() + 1, values.len());
        let mut parts = vec![0.0; rows * len];
        for (element, value) in values.iter().enumerate() {
            let mut rest = *value;
            // Values off the grid would be rounded.
            if (value * 64.0).fract() == 0.0 {
                for row in 1..rows {
                    let part = (mix(row, element) % 257) as f64 / 64.0 - 2.0;
                    parts[row * len + element] = part;
                    rest -= part;
                }
            }
            parts[element] = rest;
        }
        let rows = TensorData::new(parts, [rows, len]);
        let rows: Tensor<MultiGpu<B>, 2> =
            Tensor::from_data(rows, (&self.mesh.device(), self.dtype()));
        self.mesh.shard(&rows, 0);
        let shape: [usize; D] = std::array::from_fn(|dim| data.shape[dim]);
        rows.sum_dim(0).reshape(shape)
    }
}

impl<B: InnerBackend> Place<MultiGpu<B>> for OnMesh<B> {
    fn inputs(&self) -> &Inputs {
        &self.inputs
    }

    fn device(&self) -> MeshDevice<B> {
        self.mesh.device()
    }

    fn other_device(&self) -> MeshDevice<B> {
        self.other.clone()
    }

    fn lay_float<const D: usize>(&self, values: Values, lay: Lay) -> Tensor<MultiGpu<B>, D> {
        let first = data(&values).convert_dtype(self.dtype());
        let tensor = match &values {
            Values::Each(data) if lay == Lay::Partial => self.sum_in_parts(data),
            _ => float(values, self.dtype(), &self.mesh.device()),
        };
        match dim(lay, D) {
            Some(dim) => self.mesh.shard(&tensor, dim),
            None if lay == Lay::Whole => self.mesh.replicate(&tensor),
            None => {}
        }
        let copy = tensor.clone();
        self.keep(first, move || copy.to_data());
        tensor
    }

    fn lay_int<const D: usize>(&self, values: Values, lay: Lay) -> Tensor<MultiGpu<B>, D, Int> {
        let first = data(&values);
        let tensor: Tensor<MultiGpu<B>, D, Int> = int(values, &self.mesh.device());
        match dim(lay, D) {
            Some(dim) => self.mesh.shard(&tensor, dim),
            None if matches!(lay, Lay::Whole | Lay::Partial) => self.mesh.replicate(&tensor),
            None => {}
        }
        let copy = tensor.clone();
        self.keep(first.convert_dtype(tensor.dtype()), move || copy.to_data());
        tensor
    }

    fn lay_bool<const D: usize>(&self, values: Values, lay: Lay) -> Tensor<MultiGpu<B>, D, Bool> {
        let first = data(&values);
        let tensor: Tensor<MultiGpu<B>, D, Bool> = bool(values, &self.mesh.device());
        match dim(lay, D) {
            Some(dim) => self.mesh.shard(&tensor, dim),
            None if matches!(lay, Lay::Whole | Lay::Partial) => self.mesh.replicate(&tensor),
            None => {}
        }
        let copy = tensor.clone();
        self.keep(first.convert_dtype(tensor.dtype()), move || copy.to_data());
        tensor
    }
}

impl<B: InnerBackend> fmt::Debug for OnMesh<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnMesh")
            .field("mesh", &self.mesh)
            .field("inputs", &self.inputs)
            .finish_non_exhaustive()
    }
}

/// The dimension that is cut.
fn dim(lay: Lay, dims: usize) -> Option<usize> {
    match lay {
        Lay::First => Some(0),
        Lay::Second => Some(1.min(dims - 1)),
        Lay::Last => Some(dims - 1),
        Lay::Host | Lay::Made | Lay::Whole | Lay::Partial => None,
    }
}

fn data(values: &Values) -> TensorData {
    match values {
        Values::Each(data) => data.clone(),
        Values::All(value, shape) => TensorData::full::<f64, _>(shape.clone(), *value),
    }
}

fn dims<const D: usize>(shape: &Shape) -> [usize; D] {
    std::array::from_fn(|dim| shape[dim])
}

fn float<B: Backend, const D: usize>(
    values: Values,
    dtype: DType,
    device: &B::Device,
) -> Tensor<B, D> {
    match values {
        Values::Each(data) => Tensor::from_data(data, (device, dtype)),
        Values::All(value, shape) => Tensor::full(dims::<D>(&shape), value, (device, dtype)),
    }
}

fn int<B: Backend, const D: usize>(values: Values, device: &B::Device) -> Tensor<B, D, Int> {
    match values {
        Values::Each(data) => Tensor::from_data(data, device),
        Values::All(value, shape) => Tensor::full(dims::<D>(&shape), value as i64, device),
    }
}

fn bool<B: Backend, const D: usize>(values: Values, device: &B::Device) -> Tensor<B, D, Bool> {
    match values {
        Values::Each(data) => {
            let bools: Vec<bool> = data.iter::<f64>().map(|value| value != 0.0).collect();
            Tensor::from_data(TensorData::new(bools, data.shape), device)
        }
        Values::All(0.0, shape) => Tensor::zeros(dims::<D>(&shape), device),
        Values::All(_, shape) => Tensor::ones(dims::<D>(&shape), device),
    }
}

/// The primitive of a float tensor, for the backend's own functions.
pub(super) fn primitive<B: Backend, const D: usize>(
    tensor: Tensor<B, D>,
) -> B::FloatTensorPrimitive {
    tensor.into_primitive().tensor()
}

/// The data of a float primitive of `D` dimensions.
pub(super) fn read<B: Backend, const D: usize>(tensor: B::FloatTensorPrimitive) -> TensorData {
    Tensor::<B, D>::from_primitive(TensorPrimitive::Float(tensor)).into_data()
}
