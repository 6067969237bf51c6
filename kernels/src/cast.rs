//! Conversion between element types.

use cubecl::prelude::*;

use crate::region::{address_type, body_and_tail, check_dtype, grid, vector_size};
use crate::{FloatDtype, KernelError, Region};

/// Converts by way of the type `M`.
#[cube(launch_unchecked, address_type = "dynamic")]
fn cast_kernel<E: Float, M: Float, O: Float, N: Size>(
    input: &Array<Vector<E, N>>,
    input_offset: usize,
    output: &mut Array<Vector<O, N>>,
    output_offset: usize,
    len: usize,
    #[define(E, M, O)] _dtypes: [StorageType; 3],
) {
    let pos = ABSOLUTE_POS;
    if pos >= len {
        terminate!();
    }
    let value = Vector::<M, N>::cast_from(input[input_offset + pos]);
    output[output_offset + pos] = Vector::cast_from(value);
}

/// Converts `input`, of type `from`, into `output`, of type `to`.
///
/// The rounding is the device's. An `F64` reaches 16 bits by way of `F32`, as devices that round to
/// nearest step by step need not do so across both (llvmpipe does not).
///
/// `output` must not overlap `input`.
///
/// # Errors
///
/// [`KernelError`] for unequal lengths, a region past the end of its buffer, and an element type
/// that the device lacks.
pub fn cast<R: Runtime>(
    client: &ComputeClient<R>,
    from: FloatDtype,
    to: FloatDtype,
    input: &Region,
    output: &Region,
) -> Result<(), KernelError> {
    check_dtype(client, from)?;
    check_dtype(client, to)?;
    output.check_len("the output", input.len)?;
    input.check(from.size())?;
    output.check(to.size())?;
    launch(client, from, to, input, output);
    Ok(())
}

/// Launches the conversion. The caller has validated both regions.
#[allow(unsafe_code)]
pub(crate) fn launch<R: Runtime>(
    client: &ComputeClient<R>,
    from: FloatDtype,
    to: FloatDtype,
    input: &Region,
    output: &Region,
) {
    let by = match (from, to.size()) {
        (FloatDtype::F64, 2) => FloatDtype::F32,
        _ => from,
    };
    let sizes = [from.size(), to.size()];
    let address = address_type([input.capacity(sizes[0]), output.capacity(sizes[1])].into_iter());
    let widest = vector_size(
        client,
        sizes[0].max(sizes[1]),
        [input.offset, output.offset].into_iter(),
    );

    for (start, len, vector) in body_and_tail(input.len, widest) {
        let units = len / vector;
        let (count, dim) = grid(client, units);
        // SAFETY: a unit past `units` stops at once, and the others stay within the regions, which
        // lie within their buffers.
        unsafe {
            cast_kernel::launch_unchecked::<R>(
                client,
                count,
                dim,
                address,
                vector,
                input.arg(sizes[0]),
                (input.offset + start) / vector,
                output.arg(sizes[1]),
                (output.offset + start) / vector,
                units,
                [from.into(), by.into(), to.into()],
            );
        }
    }
}
