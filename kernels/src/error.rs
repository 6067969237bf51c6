//! What the entry points refuse.

use crate::FloatDtype;

/// A launch that was refused before anything ran.
///
/// A launch that fails later is not reported here. CubeCL returns that from the client's next `flush`
/// or `sync`; a read on wgpu passes over it and yields what the buffer held before.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KernelError {
    /// A region that must be as long as another (or as several together) is not.
    #[error("{what} holds {actual} elements where {expected} are needed")]
    LengthMismatch {
        /// Which argument.
        what: &'static str,
        /// The length the other arguments ask for, in elements.
        expected: usize,
        /// The length it has, in elements.
        actual: usize,
    },
    /// A sum over no inputs.
    #[error("there are no inputs to sum")]
    NoInputs,
    /// Each input needs one weight.
    #[error("{weights} weights for {inputs} inputs")]
    WeightCount {
        /// The number of inputs.
        inputs: usize,
        /// The number of weights.
        weights: usize,
    },
    /// A region reaches past the end of its buffer.
    #[error(
        "a region of {len} elements from element {offset} exceeds its buffer of {capacity} elements"
    )]
    OutOfBounds {
        /// The region's first element.
        offset: usize,
        /// The region's length in elements.
        len: usize,
        /// The number of whole elements in the buffer.
        capacity: usize,
    },
    /// The runtime cannot compute with this element type on this device.
    #[error("{runtime} does not support {dtype} on this device")]
    UnsupportedDtype {
        /// The element type.
        dtype: FloatDtype,
        /// The runtime, by the name it gives itself.
        runtime: &'static str,
    },
}
