//! The sum of squares, for gradient norms.

use cubecl::prelude::*;
use cubecl::server::Handle;

use crate::blocks::{BLOCK_LANES, LANES, UNITS, block_len};
use crate::region::{address_type, check_dtype};
use crate::{FloatDtype, KernelError, Region};

/// Sums one block of values per cube, or of their squares, in the order that `blocks` describes.
#[cube(launch_unchecked, address_type = "dynamic")]
fn block_sum_kernel<E: Float, A: Float, N: Size>(
    input: &Array<Vector<E, N>>,
    input_offset: usize,
    len: usize,
    block: usize,
    sums: &mut Array<A>,
    #[comptime] square: bool,
    #[define(E, A)] _dtypes: [StorageType; 2],
) {
    let unit = UNIT_POS as usize;
    let start = CUBE_POS * block;
    let end = min(start + block, len);

    let mut lanes = Array::<A>::new(LANES);
    #[unroll]
    for lane in 0..LANES {
        lanes[lane] = A::new(0.0);
    }

    // Vectors are used where they divide the length, so that none straddles the end.
    let width = N::value();
    let mut pos = start + unit * LANES;
    while pos < end {
        #[unroll]
        for i in 0..comptime!(LANES / width) {
            let at = pos + comptime!(i * width);
            if at < end {
                let values = Vector::<A, N>::cast_from(input[input_offset + at / width]);
                #[unroll]
                for j in 0..width {
                    let mut term = values[j];
                    if comptime!(square) {
                        term *= values[j];
                    }
                    lanes[comptime!(i * width + j)] += term;
                }
            }
        }
        pos += BLOCK_LANES;
    }

    let mut shared = SharedMemory::<A>::new(UNITS);
    shared[unit] = (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
    sync_cube();

    #[unroll]
    for step in 1..comptime!(UNITS.ilog2() as usize + 1) {
        let half = comptime!(UNITS >> step);
        if unit < half {
            let other = shared[unit + half];
            shared[unit] += other;
        }
        sync_cube();
    }

    if unit == 0 {
        sums[CUBE_POS] = shared[0];
    }
}

/// The sum of the squares of `input` as a buffer of one `f32` (one `f64` for `F64`).
///
/// The order of the sum is fixed by the length, so equal inputs give equal bits on one device.
///
/// # Errors
///
/// [`KernelError`] for a region past the end of its buffer and an element type that the device
/// lacks.
pub fn squared_norm<R: Runtime>(
    client: &ComputeClient<R>,
    dtype: FloatDtype,
    input: &Region,
) -> Result<Handle, KernelError> {
    check_dtype(client, dtype)?;
    input.check(dtype.size())?;
    let acc = dtype.accumulator();
    if input.len == 0 {
        return Ok(client.create_from_slice(&[0; 8][..acc.size()]));
    }

    let sums = block_sums(client, dtype, input, true);
    if sums.len == 1 {
        return Ok(sums.handle);
    }
    Ok(block_sums(client, acc, &sums, false).handle)
}

/// Launches one stage and returns its block sums. The caller has validated the region.
#[allow(unsafe_code)]
fn block_sums<R: Runtime>(
    client: &ComputeClient<R>,
    dtype: FloatDtype,
    input: &Region,
    square: bool,
) -> Region {
    let (size, acc) = (dtype.size(), dtype.accumulator());
    let block = block_len(input.len);
    let blocks = input.len.div_ceil(block);
    let sums = Region::new(client.empty(blocks * acc.size()), blocks);

    let fits = |vector: &VectorSize| {
        *vector <= LANES
            && input.offset.is_multiple_of(*vector)
            && input.len.is_multiple_of(*vector)
    };
    let vector = client
        .io_optimized_vector_sizes(size)
        .find(fits)
        .unwrap_or(1);

    // SAFETY: a unit reads only below `len`, within the region and so within its buffer, and each
    // of the `blocks` cubes writes one sum.
    unsafe {
        block_sum_kernel::launch_unchecked::<R>(
            client,
            CubeCount::new_1d(blocks as u32),
            CubeDim::new_1d(UNITS as u32),
            address_type([input.capacity(size), sums.len].into_iter()),
            vector,
            input.arg(size),
            input.offset / vector,
            input.len,
            block,
            sums.arg(acc.size()),
            square,
            [dtype.into(), acc.into()],
        );
    }
    sums
}
