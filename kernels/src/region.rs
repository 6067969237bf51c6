//! Where kernels read and write, and how a launch is sized.

use cubecl::prelude::*;
use cubecl::server::Handle;
use cubecl::{calculate_cube_count_elemwise, features::TypeUsage};

use crate::{FloatDtype, KernelError};

/// A contiguous run of `len` elements starting `offset` elements into a device buffer.
///
/// Kernels bind the handle as it is and add `offset` themselves, so no offset has to satisfy an
/// alignment of the runtime's. The element type is the one that the operation is called with.
#[derive(Clone, Debug)]
pub struct Region {
    /// The buffer, on the device of the client that the operation is called with.
    pub handle: Handle,
    /// The first element, counted from the handle's start.
    pub offset: usize,
    /// The number of elements.
    pub len: usize,
}

impl Region {
    /// The first `len` elements of a buffer.
    pub fn new(handle: Handle, len: usize) -> Self {
        Self {
            handle,
            offset: 0,
            len,
        }
    }

    /// Whole elements in the buffer.
    pub(crate) fn capacity(&self, elem_size: usize) -> usize {
        self.handle.size_in_used() as usize / elem_size
    }

    /// Refuses a region that reaches past its buffer.
    pub(crate) fn check(&self, elem_size: usize) -> Result<(), KernelError> {
        let capacity = self.capacity(elem_size);
        match self.offset.checked_add(self.len) {
            Some(end) if end <= capacity => Ok(()),
            _ => Err(KernelError::OutOfBounds {
                offset: self.offset,
                len: self.len,
                capacity,
            }),
        }
    }

    /// Refuses a region of another length than `expected`, naming it `what`.
    pub(crate) fn check_len(&self, what: &'static str, expected: usize) -> Result<(), KernelError> {
        if self.len == expected {
            return Ok(());
        }
        Err(KernelError::LengthMismatch {
            what,
            expected,
            actual: self.len,
        })
    }

    /// The whole buffer as a kernel argument.
    #[allow(unsafe_code)]
    pub(crate) fn arg<R: Runtime>(&self, elem_size: usize) -> ArrayArg<R> {
        // SAFETY: the length is the number of whole elements in the buffer.
        unsafe { ArrayArg::from_raw_parts(self.handle.clone(), self.capacity(elem_size)) }
    }
}

/// Whether the runtime can load, store, convert and (for `F64`, which is summed as it is) compute
/// with `dtype` on this client's device.
pub fn supports<R: Runtime>(client: &ComputeClient<R>, dtype: FloatDtype) -> bool {
    let usage = client.properties().type_usage(dtype.into());
    let mut needed = TypeUsage::Conversion | TypeUsage::Buffer;
    if dtype.accumulator() == dtype {
        needed |= TypeUsage::Arithmetic;
    }
    usage.is_superset(needed)
}

/// Refuses an element type that [`supports`] denies.
pub(crate) fn check_dtype<R: Runtime>(
    client: &ComputeClient<R>,
    dtype: FloatDtype,
) -> Result<(), KernelError> {
    if supports(client, dtype) {
        return Ok(());
    }
    Err(KernelError::UnsupportedDtype {
        dtype,
        runtime: R::name(client),
    })
}

/// How many buffers one launch may bind beside `others` that it always binds.
///
/// CubeCL passes offsets and lengths in a buffer of its own, which counts as well. The upper limit
/// keeps generated kernels short on runtimes that allow hundreds of bindings.
pub(crate) fn buffers_per_launch<R: Runtime>(client: &ComputeClient<R>, others: usize) -> usize {
    const INFO: usize = 1;
    const MOST: usize = 32;
    let limit = client.properties().hardware.max_bindings as usize;
    limit.saturating_sub(others + INFO).clamp(1, MOST)
}

/// The widest vector that the device loads at once for elements of `elem_size` bytes and that
/// divides every offset in `offsets`.
pub(crate) fn vector_size<R: Runtime>(
    client: &ComputeClient<R>,
    elem_size: usize,
    offsets: impl Iterator<Item = usize> + Clone,
) -> VectorSize {
    client
        .io_optimized_vector_sizes(elem_size)
        .find(|&size| offsets.clone().all(|offset| offset.is_multiple_of(size)))
        .unwrap_or(1)
}

/// Cuts `len` elements into vectors of `size` and the few elements left over: pairs of a start and
/// a length with the vector size for it. Parts without elements are left out.
pub(crate) fn body_and_tail(
    len: usize,
    size: VectorSize,
) -> impl Iterator<Item = (usize, usize, VectorSize)> {
    let body = len - len % size;
    [(0, body, size), (body, len - body, 1)]
        .into_iter()
        .filter(|&(_, len, _)| len > 0)
}

/// Cubes for one unit per working item.
pub(crate) fn grid<R: Runtime>(client: &ComputeClient<R>, units: usize) -> (CubeCount, CubeDim) {
    let dim = CubeDim::new(client, units);
    (calculate_cube_count_elemwise(client, units, dim), dim)
}

/// The index type that reaches the end of the largest buffer, `longest` elements.
pub(crate) fn address_type(longest: impl Iterator<Item = usize>) -> AddressType {
    AddressType::from_len(longest.max().unwrap_or(0))
}
