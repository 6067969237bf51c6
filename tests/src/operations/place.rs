//! Where the inputs of a case come from, and how they lie when the operation meets them.

use burn::tensor::backend::Backend;
use burn::tensor::{Bool, DType, Int, Shape, Tensor, TensorData};
use std::cell::Cell;
use std::ops::RangeInclusive;

/// How an input lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lay {
    /// Data from the host: the mesh decides.
    Host,
    /// Made by a creation operation, which the mesh defers: all elements are the same.
    Made,
    /// Whole on every member.
    Whole,
    /// Cut along the first dimension.
    First,
    /// Cut along the second dimension, where there is one.
    Second,
    /// Cut along the last dimension.
    Last,
    /// A sum in parts; whole where the tensor is not one of floats.
    Partial,
}

use Lay::{First, Host, Last, Made, Partial, Second, Whole};

/// How the inputs of a case lie: the first one as the first entry says, and so on, round and round.
pub(super) type Mode = &'static [Lay];

/// All modes in which each case is run. Those with what takes operations of its own to lay out,
/// [`Partial`] and [`Made`], come last.
pub(super) const MODES: &[Mode] = &[
    &[Host],
    &[Whole],
    &[First],
    &[Second],
    &[Last],
    &[First, Last],
    &[Last, First],
    &[First, Whole],
    &[Whole, First],
    &[Host, Whole],
    &[Whole, Last],
    &[Second, Host, First],
    &[Partial],
    &[Partial, Whole],
    &[Whole, Partial],
    &[Partial, First],
    &[Last, Partial],
    &[Partial, Host],
    &[Made],
    &[Made, First],
    &[First, Made],
    &[Partial, Made],
    &[Made, Whole],
];

/// Whether laying inputs out in this mode takes operations.
pub(super) fn takes_operations(mode: Mode) -> bool {
    mode.iter().any(|lay| matches!(lay, Partial | Made))
}

/// The values of an input.
#[derive(Clone, Debug)]
pub(super) enum Values {
    /// One for each element, of any type: they are converted to that of the tensor.
    Each(TensorData),
    /// The same for all.
    All(f64, Shape),
}

/// What gives the inputs of a case: the same ones whatever backend they are for.
#[derive(Debug)]
pub(super) struct Inputs {
    mode: Mode,
    dtype: DType,
    next: Cell<usize>,
}

impl Inputs {
    /// Inputs that lie so, with floats of this type.
    pub(super) fn new(mode: Mode, dtype: DType) -> Self {
        Self {
            mode,
            dtype,
            next: Cell::new(0),
        }
    }

    /// The type of the floats.
    pub(super) fn dtype(&self) -> DType {
        self.dtype
    }

    fn lay(&self) -> (usize, Lay) {
        let index = self.next.replace(self.next.get() + 1);
        (index, self.mode[index % self.mode.len()])
    }

    /// Values from a range, in steps that sum up without rounding.
    fn values(&self, range: RangeInclusive<f64>, step: f64, shape: Shape) -> (Values, Lay) {
        let (index, lay) = self.lay();
        let (low, high) = range.into_inner();
        let steps = ((high - low) / step) as u64 + 1;
        let value = |element: usize| low + (mix(index, element) % steps) as f64 * step;
        let values = if lay == Made {
            Values::All(value(1), shape)
        } else {
            let values: Vec<f64> = (0..shape.num_elements()).map(value).collect();
            Values::Each(TensorData::new(values, shape))
        };
        (values, lay)
    }
}

/// A number that looks random (splitmix64).
pub(super) fn mix(stream: usize, index: usize) -> u64 {
    let mut z = (((stream as u64) << 32 | index as u64) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// What a case takes its inputs from.
pub(super) trait Place<B: Backend> {
    /// Counts the inputs and makes their values.
    fn inputs(&self) -> &Inputs;

    /// Where the case runs.
    fn device(&self) -> B::Device;

    /// Another device, for moves.
    fn other_device(&self) -> B::Device;

    /// A tensor of floats that lies so.
    fn lay_float<const D: usize>(&self, values: Values, lay: Lay) -> Tensor<B, D>;

    /// A tensor of integers that lies so.
    fn lay_int<const D: usize>(&self, values: Values, lay: Lay) -> Tensor<B, D, Int>;

    /// A tensor of bools that lies so.
    fn lay_bool<const D: usize>(&self, values: Values, lay: Lay) -> Tensor<B, D, Bool>;

    /// The type of the floats.
    fn dtype(&self) -> DType {
        self.inputs().dtype()
    }

    /// Floats between -2 and 2.
    fn float<const D: usize>(&self, dims: [usize; D]) -> Tensor<B, D> {
        self.float_in(-2.0..=2.0, dims)
    }

    /// Floats from a range.
    fn float_in<const D: usize>(
        &self,
        range: RangeInclusive<f64>,
        dims: [usize; D],
    ) -> Tensor<B, D> {
        let (values, lay) = self.inputs().values(range, 1.0 / 64.0, dims.into());
        self.lay_float(values, lay)
    }

    /// These floats.
    fn floats<const D: usize>(&self, values: &[f64], dims: [usize; D]) -> Tensor<B, D> {
        let (_, lay) = self.inputs().lay();
        let data = TensorData::new(values.to_vec(), dims);
        self.lay_float(Values::Each(data), lay)
    }

    /// Integers from a range.
    fn int<const D: usize>(
        &self,
        range: RangeInclusive<i64>,
        dims: [usize; D],
    ) -> Tensor<B, D, Int> {
        let range = *range.start() as f64..=*range.end() as f64;
        let (values, lay) = self.inputs().values(range, 1.0, dims.into());
        self.lay_int(values, lay)
    }

    /// These integers.
    fn ints<const D: usize>(&self, values: &[i64], dims: [usize; D]) -> Tensor<B, D, Int> {
        let (_, lay) = self.inputs().lay();
        let data = TensorData::new(values.to_vec(), dims);
        self.lay_int(Values::Each(data), lay)
    }

    /// Bools.
    fn bool<const D: usize>(&self, dims: [usize; D]) -> Tensor<B, D, Bool> {
        let (values, lay) = self.inputs().values(0.0..=1.0, 1.0, dims.into());
        self.lay_bool(values, lay)
    }
}
