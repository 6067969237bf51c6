//! The weighted sum of any number of inputs: the arithmetic of an all-reduce.

use cubecl::prelude::*;

use crate::region::{
    address_type, body_and_tail, buffers_per_launch, check_dtype, grid, vector_size,
};
use crate::{FloatDtype, KernelError, Region, cast};

/// `output = [output +] w0 * x0 + w1 * x1 + ...` in that order, in the type `A`.
#[cube(launch_unchecked, address_type = "dynamic")]
fn weighted_sum_kernel<E: Float, A: Float, O: Float, N: Size>(
    inputs: &Sequence<Array<Vector<E, N>>>,
    offsets: &Sequence<usize>,
    weights: &Sequence<InputScalar>,
    output: &mut Array<Vector<O, N>>,
    output_offset: usize,
    len: usize,
    #[comptime] accumulate: bool,
    #[define(E, A, O)] _dtypes: [StorageType; 3],
) {
    let pos = ABSOLUTE_POS;
    if pos >= len {
        terminate!();
    }

    let weight = Vector::<A, N>::new(weights[0].get::<A>());
    let first = Vector::<A, N>::cast_from(inputs[0][offsets[0] + pos]) * weight;
    let mut acc = first;
    if comptime![accumulate] {
        acc = Vector::<A, N>::cast_from(output[output_offset + pos]) + first;
    }
    #[unroll]
    for i in 1..inputs.len() {
        let weight = Vector::<A, N>::new(weights[i].get::<A>());
        acc += Vector::<A, N>::cast_from(inputs[i][offsets[i] + pos]) * weight;
    }
    output[output_offset + pos] = Vector::cast_from(acc);
}

/// Writes `sum_i weights[i] * inputs[i]` to `output`, element by element.
///
/// Products are added in the order of the inputs, in `f32` (`f64` for `F64`), and rounded to
/// `dtype` once at the end. Where one launch cannot bind all inputs, groups of them are chained
/// through an accumulator, and the order and the result stay the same.
///
/// `output` must not overlap an input. This is not checked: a handle does not tell which memory it
/// owns.
///
/// # Errors
///
/// [`KernelError`] for no inputs, another number of weights, unequal lengths, a region past the end
/// of its buffer, and an element type that the device lacks.
pub fn weighted_sum<R: Runtime>(
    client: &ComputeClient<R>,
    dtype: FloatDtype,
    inputs: &[Region],
    weights: &[f64],
    output: &Region,
) -> Result<(), KernelError> {
    let group = buffers_per_launch(client, 1);
    weighted_sum_in_groups(client, dtype, inputs, weights, output, group)
}

/// [`weighted_sum`] with at most `group` inputs to a launch.
pub(crate) fn weighted_sum_in_groups<R: Runtime>(
    client: &ComputeClient<R>,
    dtype: FloatDtype,
    inputs: &[Region],
    weights: &[f64],
    output: &Region,
    group: usize,
) -> Result<(), KernelError> {
    if inputs.is_empty() {
        return Err(KernelError::NoInputs);
    }
    if inputs.len() != weights.len() {
        return Err(KernelError::WeightCount {
            inputs: inputs.len(),
            weights: weights.len(),
        });
    }
    check_dtype(client, dtype)?;
    output.check(dtype.size())?;
    for input in inputs {
        input.check_len("an input", output.len)?;
        input.check(dtype.size())?;
    }
    if output.len == 0 {
        return Ok(());
    }

    if inputs.len() <= group {
        launch(client, dtype, inputs, weights, output, dtype, false);
        return Ok(());
    }

    // Several launches: the sum so far waits in the accumulator's type, in `output` itself where
    // that is its type.
    let wide = dtype.accumulator();
    let sum = if wide == dtype {
        output.clone()
    } else {
        Region::new(client.empty(output.len * wide.size()), output.len)
    };
    for (i, (inputs, weights)) in inputs.chunks(group).zip(weights.chunks(group)).enumerate() {
        launch(client, dtype, inputs, weights, &sum, wide, i > 0);
    }
    if wide != dtype {
        cast::launch(client, wide, dtype, &sum, output);
    }
    Ok(())
}

/// Launches one group. The caller has validated all regions.
#[allow(unsafe_code)]
fn launch<R: Runtime>(
    client: &ComputeClient<R>,
    dtype: FloatDtype,
    inputs: &[Region],
    weights: &[f64],
    output: &Region,
    output_dtype: FloatDtype,
    accumulate: bool,
) {
    let regions = || inputs.iter().chain([output]);
    let (size, out_size) = (dtype.size(), output_dtype.size());
    let address = address_type(regions().map(|region| region.capacity(size.min(out_size))));
    let widest = vector_size(
        client,
        size.max(out_size),
        regions().map(|region| region.offset),
    );
    let acc: StorageType = dtype.accumulator().into();

    for (start, len, vector) in body_and_tail(output.len, widest) {
        let units = len / vector;
        let (count, dim) = grid(client, units);
        // SAFETY: a unit past `units` stops at once, and the others stay within the regions, which
        // lie within their buffers.
        unsafe {
            weighted_sum_kernel::launch_unchecked::<R>(
                client,
                count,
                dim,
                address,
                vector,
                inputs.iter().map(|input| input.arg(size)).collect(),
                inputs
                    .iter()
                    .map(|input| (input.offset + start) / vector)
                    .collect(),
                weights
                    .iter()
                    .map(|&weight| InputScalar::new(weight, acc))
                    .collect(),
                output.arg(out_size),
                (output.offset + start) / vector,
                units,
                accumulate,
                [dtype.into(), acc, output_dtype.into()],
            );
        }
    }
}
