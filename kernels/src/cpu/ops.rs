//! The operations on slices.

use super::Float;
use super::bits::{decode_bf16, decode_f16, encode_bf16, encode_f16};
use crate::Half;
use crate::blocks::{BLOCK_LANES, LANES, MAX_BLOCKS, UNITS, block_len};

/// Elements summed at a time; their accumulators stay in the first-level cache.
const CHUNK: usize = 1024;

/// Writes `sum_i weights[i] * inputs[i]` to `out`, element by element.
///
/// Products are added in the order of the inputs, in `T::Acc`, and rounded to `T` once at the end.
///
/// # Panics
///
/// If there are no inputs, another number of weights, or slices of unequal lengths.
pub fn weighted_sum<T: Float>(inputs: &[&[T]], weights: &[f64], out: &mut [T]) {
    assert_eq!(inputs.len(), weights.len(), "one weight per input");
    for input in inputs {
        assert_eq!(input.len(), out.len(), "inputs as long as the output");
    }
    let ([first, rest @ ..], [first_weight, rest_weights @ ..]) = (inputs, weights) else {
        panic!("there are no inputs to sum");
    };

    let mut buffer = [T::Acc::default(); CHUNK];
    let mut start = 0;
    for out in out.chunks_mut(CHUNK) {
        let range = start..start + out.len();
        let acc = &mut buffer[..out.len()];
        let weight = T::Acc::from_f64(*first_weight);
        for (acc, x) in acc.iter_mut().zip(&first[range.clone()]) {
            *acc = weight * x.to_acc();
        }
        for (input, weight) in rest.iter().zip(rest_weights) {
            let weight = T::Acc::from_f64(*weight);
            for (acc, x) in acc.iter_mut().zip(&input[range.clone()]) {
                *acc = *acc + weight * x.to_acc();
            }
        }
        for (out, acc) in out.iter_mut().zip(acc) {
            *out = T::from_acc(*acc);
        }
        start = range.end;
    }
}

/// Concatenates `inputs`, in order, into `out`.
///
/// # Panics
///
/// If `out` is not as long as the inputs together.
pub fn pack<T: Copy>(inputs: &[&[T]], out: &mut [T]) {
    let total = inputs.iter().map(|input| input.len()).sum::<usize>();
    assert_eq!(total, out.len(), "an output as long as the inputs together");
    let mut rest = out;
    for input in inputs {
        let (part, tail) = rest.split_at_mut(input.len());
        part.copy_from_slice(input);
        rest = tail;
    }
}

/// Cuts `input` into `outputs`, in order: the inverse of [`pack`].
///
/// # Panics
///
/// If `input` is not as long as the outputs together.
pub fn unpack<T: Copy>(input: &[T], outputs: &mut [&mut [T]]) {
    let total = outputs.iter().map(|output| output.len()).sum::<usize>();
    assert_eq!(
        total,
        input.len(),
        "an input as long as the outputs together"
    );
    let mut rest = input;
    for output in outputs {
        let (part, tail) = rest.split_at(output.len());
        output.copy_from_slice(part);
        rest = tail;
    }
}

/// The sum of the squares of `input`, in an order that its length fixes.
pub fn squared_norm<T: Float>(input: &[T]) -> T::Acc {
    if input.is_empty() {
        return T::Acc::default();
    }
    let mut sums = [T::Acc::default(); MAX_BLOCKS];
    let mut blocks = 0;
    for (sum, block) in sums.iter_mut().zip(input.chunks(block_len(input.len()))) {
        *sum = block_sum(block, |x| {
            let x = x.to_acc();
            x * x
        });
        blocks += 1;
    }
    if blocks == 1 {
        return sums[0];
    }
    block_sum(&sums[..blocks], |x| x)
}

/// The sum of one block, lane by lane and then as a tree.
fn block_sum<T: Float, A: Float<Acc = A> + core::ops::Add<Output = A>>(
    block: &[T],
    term: impl Fn(T) -> A,
) -> A {
    let mut lanes = [A::default(); BLOCK_LANES];
    for round in block.chunks(BLOCK_LANES) {
        for (lane, x) in lanes.iter_mut().zip(round) {
            *lane = *lane + term(*x);
        }
    }
    let mut units = [A::default(); UNITS];
    for (unit, lanes) in units.iter_mut().zip(lanes.chunks_exact(LANES)) {
        *unit = (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
    }
    let mut half = UNITS / 2;
    while half > 0 {
        let (low, high) = units.split_at_mut(half);
        for (low, high) in low.iter_mut().zip(high) {
            *low = *low + *high;
        }
        half /= 2;
    }
    units[0]
}

/// Converts `input` into `out`, rounding to nearest, ties to even. An `f64` reaches 16 bits by way of
/// `f32`.
///
/// # Panics
///
/// If the slices' lengths differ.
pub fn cast<T: Float, U: Float>(input: &[T], out: &mut [U]) {
    assert_eq!(input.len(), out.len(), "an output as long as the input");
    if const { T::DTYPE.size() == 8 } {
        for (out, x) in out.iter_mut().zip(input) {
            *out = U::from_f64(x.to_f64());
        }
    } else {
        for (out, x) in out.iter_mut().zip(input) {
            *out = U::from_f32(x.to_f32());
        }
    }
}

/// Rounds `input` to 16 bits and writes it two to a word; see [`Half`].
///
/// # Panics
///
/// If `out` is not of [`Half::words`] words.
pub fn compress16(format: Half, input: &[f32], out: &mut [u32]) {
    match format {
        Half::F16 => compress(input, out, encode_f16),
        Half::BF16 => compress(input, out, encode_bf16),
    }
}

/// Widens 16-bit elements, two to a word: exact, and the inverse of [`compress16`].
///
/// # Panics
///
/// If `input` is not of [`Half::words`] words for `out`.
pub fn decompress16(format: Half, input: &[u32], out: &mut [f32]) {
    match format {
        Half::F16 => decompress(input, out, decode_f16),
        Half::BF16 => decompress(input, out, decode_bf16),
    }
}

#[inline(always)]
fn compress(input: &[f32], out: &mut [u32], encode: impl Fn(u32) -> u16) {
    assert_eq!(
        out.len(),
        Half::words(input.len()),
        "two elements to a word"
    );
    let (pairs, last) = input.as_chunks::<2>();
    for (word, [low, high]) in out.iter_mut().zip(pairs) {
        *word = encode(low.to_bits()) as u32 | (encode(high.to_bits()) as u32) << 16;
    }
    if let [low] = last {
        out[pairs.len()] = encode(low.to_bits()) as u32;
    }
}

#[inline(always)]
fn decompress(input: &[u32], out: &mut [f32], decode: impl Fn(u16) -> u32) {
    assert_eq!(
        input.len(),
        Half::words(out.len()),
        "two elements to a word"
    );
    let (pairs, last) = out.as_chunks_mut::<2>();
    for ([low, high], word) in pairs.iter_mut().zip(input) {
        *low = f32::from_bits(decode(*word as u16));
        *high = f32::from_bits(decode((*word >> 16) as u16));
    }
    if let ([low], Some(word)) = (last, input.last()) {
        *low = f32::from_bits(decode(*word as u16));
    }
}
