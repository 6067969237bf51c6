//! Many tensors into one flat buffer and back.
//!
//! Both directions are lists of copies between one buffer and many. Each launch carries as many of
//! them as it can bind; a unit finds the copy it belongs to from the running ends. Copies that are
//! aligned on both sides go as vectors; the rest, and what is left over at their ends, go element
//! by element in launches of their own. The order of copies does not matter, as they do not meet.

use cubecl::ir::UIntKind;
use cubecl::prelude::*;

use crate::region::{address_type, body_and_tail, buffers_per_launch, check_dtype, grid};
use crate::{FloatDtype, KernelError, Region};

/// Copies from each of `many` into `flat`.
#[cube(launch_unchecked, address_type = "dynamic")]
fn gather_kernel<E: Numeric, N: Size>(
    many: &Sequence<Array<Vector<E, N>>>,
    many_offsets: &Sequence<usize>,
    flat: &mut Array<Vector<E, N>>,
    flat_offsets: &Sequence<usize>,
    ends: &Sequence<usize>,
    #[define(E)] _dtype: StorageType,
) {
    let pos = ABSOLUTE_POS;
    let mut start = 0usize.runtime();
    #[unroll]
    for i in 0..many.len() {
        let end = ends[i];
        if pos >= start && pos < end {
            let from = many_offsets[i] + pos - start;
            let to = flat_offsets[i] + pos - start;
            flat[to] = many[i][from];
        }
        start = end;
    }
}

/// Copies from `flat` into each of `many`.
#[cube(launch_unchecked, address_type = "dynamic")]
fn scatter_kernel<E: Numeric, N: Size>(
    many: &mut Sequence<Array<Vector<E, N>>>,
    many_offsets: &Sequence<usize>,
    flat: &Array<Vector<E, N>>,
    flat_offsets: &Sequence<usize>,
    ends: &Sequence<usize>,
    #[define(E)] _dtype: StorageType,
) {
    let pos = ABSOLUTE_POS;
    let mut start = 0usize.runtime();
    #[unroll]
    for i in 0..many.len() {
        let end = ends[i];
        if pos >= start && pos < end {
            let from = flat_offsets[i] + pos - start;
            let to = many_offsets[i] + pos - start;
            let output = many.index_mut(i);
            output[to] = flat[from];
        }
        start = end;
    }
}

/// Concatenates `inputs`, in order, into `output`.
///
/// Bits are moved as they are. `F32` and `F64` travel as `u32` words and so work even where the
/// runtime has no `f64`. `output` must not overlap an input.
///
/// # Errors
///
/// [`KernelError`] if `output` is not as long as the inputs together, for a region past the end of
/// its buffer, and for a 16-bit type that the device lacks.
pub fn pack<R: Runtime>(
    client: &ComputeClient<R>,
    dtype: FloatDtype,
    inputs: &[Region],
    output: &Region,
) -> Result<(), KernelError> {
    run(client, dtype, Direction::Gather, inputs, output)
}

/// Cuts `input` into `outputs`, in order: the inverse of [`pack`].
///
/// # Errors
///
/// As for [`pack`].
pub fn unpack<R: Runtime>(
    client: &ComputeClient<R>,
    dtype: FloatDtype,
    input: &Region,
    outputs: &[Region],
) -> Result<(), KernelError> {
    run(client, dtype, Direction::Scatter, outputs, input)
}

#[derive(Clone, Copy, Debug)]
enum Direction {
    Gather,
    Scatter,
}

impl Direction {
    /// What the flat side is to the caller.
    fn flat(self) -> &'static str {
        match self {
            Self::Gather => "the output",
            Self::Scatter => "the input",
        }
    }
}

/// One run of words between a buffer of the many and the flat one, in words of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    /// Index into the many.
    buffer: usize,
    many_offset: usize,
    flat_offset: usize,
    len: usize,
}

/// The word that a copy moves, and how many of them make an element.
fn word(dtype: FloatDtype) -> (StorageType, usize, usize) {
    match dtype {
        FloatDtype::F64 => (UIntKind::U32.into(), 4, 2),
        FloatDtype::F32 => (UIntKind::U32.into(), 4, 1),
        FloatDtype::F16 | FloatDtype::BF16 => (dtype.into(), 2, 1),
    }
}

fn run<R: Runtime>(
    client: &ComputeClient<R>,
    dtype: FloatDtype,
    direction: Direction,
    many: &[Region],
    flat: &Region,
) -> Result<(), KernelError> {
    if dtype.size() == 2 {
        check_dtype(client, dtype)?;
    }
    flat.check_len(direction.flat(), many.iter().map(|region| region.len).sum())?;
    flat.check(dtype.size())?;
    for region in many {
        region.check(dtype.size())?;
    }

    let (word, word_size, words) = word(dtype);
    let widest = client
        .io_optimized_vector_sizes(word_size)
        .next()
        .unwrap_or(1);
    let (vectors, scalars) = plan(many, flat.offset, words, widest);
    let most = buffers_per_launch(client, 1);
    for (runs, vector) in [(vectors, widest), (scalars, 1)] {
        for group in runs.chunks(most) {
            launch(
                client, word, word_size, direction, many, flat, group, vector, most,
            );
        }
    }
    Ok(())
}

/// The copies that go as vectors of `vector` words, and those that go word by word. Elements are
/// of `words` words. Offsets and lengths come in words; those of vectors are multiples of `vector`.
fn plan(
    many: &[Region],
    flat_offset: usize,
    words: usize,
    vector: VectorSize,
) -> (Vec<Run>, Vec<Run>) {
    let (mut vectors, mut scalars) = (Vec::new(), Vec::new());
    let mut flat_offset = flat_offset * words;
    for (buffer, region) in many.iter().enumerate() {
        let (many_offset, len) = (region.offset * words, region.len * words);
        let aligned = many_offset.is_multiple_of(vector) && flat_offset.is_multiple_of(vector);
        let size = if aligned { vector } else { 1 };
        for (start, len, size) in body_and_tail(len, size) {
            let runs = if size > 1 { &mut vectors } else { &mut scalars };
            runs.push(Run {
                buffer,
                many_offset: many_offset + start,
                flat_offset: flat_offset + start,
                len,
            });
        }
        flat_offset += len;
    }
    (vectors, scalars)
}

/// Launches one group of runs. The caller has validated all regions.
#[allow(unsafe_code, clippy::too_many_arguments)]
fn launch<R: Runtime>(
    client: &ComputeClient<R>,
    word: StorageType,
    word_size: usize,
    direction: Direction,
    many: &[Region],
    flat: &Region,
    group: &[Run],
    vector: VectorSize,
    most: usize,
) {
    // A kernel is compiled per number of runs. Rounding it up with empty runs keeps them few.
    let empty = Run { len: 0, ..group[0] };
    let padded = group.len().next_power_of_two().min(most).max(group.len());
    let group = || {
        let padding = std::iter::repeat_n(empty, padded - group.len());
        group.iter().copied().chain(padding)
    };

    let buffers = || group().map(|run| &many[run.buffer]);
    let address = address_type(
        buffers()
            .chain([flat])
            .map(|region| region.capacity(word_size)),
    );
    let mut units = 0;
    let ends = group()
        .map(|run| {
            units += run.len / vector;
            units
        })
        .collect();
    let (count, dim) = grid(client, units);
    let many_offsets = group().map(|run| run.many_offset / vector).collect();
    let flat_arg = flat.arg(word_size);
    let flat_offsets = group().map(|run| run.flat_offset / vector).collect();

    // SAFETY: a unit copies only between a run's start and its end, which lie within a region on
    // either side, and so within the buffers; a unit past the last end copies nothing.
    unsafe {
        match direction {
            Direction::Gather => gather_kernel::launch_unchecked::<R>(
                client,
                count,
                dim,
                address,
                vector,
                buffers().map(|region| region.arg(word_size)).collect(),
                many_offsets,
                flat_arg,
                flat_offsets,
                ends,
                word,
            ),
            Direction::Scatter => scatter_kernel::launch_unchecked::<R>(
                client,
                count,
                dim,
                address,
                vector,
                buffers().map(|region| region.arg(word_size)).collect(),
                many_offsets,
                flat_arg,
                flat_offsets,
                ends,
                word,
            ),
        }
    }
}
