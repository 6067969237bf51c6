//! `f32` to and from 16 bits by integer operations, for runtimes that have no 16-bit type.

use cubecl::prelude::*;

use crate::region::{address_type, grid};
use crate::{Half, KernelError, Region};

/// Bytes of a word and of an `f32`, which the kernels see as its bits.
const WORD: usize = 4;

/// The bits of the bf16 nearest to an `f32`, ties to even.
#[cube]
fn encode_bf16(bits: u32) -> u32 {
    let nan = (bits >> 16u32) | 0x40u32;
    let rounded = (bits + 0x7fffu32 + ((bits >> 16u32) & 1u32)) >> 16u32;
    select((bits & 0x7fff_ffffu32) > 0x7f80_0000u32, nan, rounded)
}

/// The bits of the f16 nearest to an `f32`, ties to even.
#[cube]
fn encode_f16(bits: u32) -> u32 {
    let sign = (bits >> 16u32) & 0x8000u32;
    let magnitude = bits & 0x7fff_ffffu32;
    let exponent = magnitude >> 23u32;

    // A normal result: move the exponent's bias from 127 to 15 and round 13 bits away. A mantissa
    // that rounds up runs over into the exponent, as it should.
    let odd = (magnitude >> 13u32) & 1u32;
    let normal = (magnitude - 0x3800_0000u32 + 0xfffu32 + odd) >> 13u32;

    // A subnormal result counts units of 2^-24; below half of one all is zero.
    let mantissa = (magnitude & 0x7f_ffffu32) | 0x80_0000u32;
    let shift = min(126u32 - min(exponent, 112u32), 25u32);
    let odd = (mantissa >> shift) & 1u32;
    let subnormal = (mantissa + (1u32 << (shift - 1u32)) - 1u32 + odd) >> shift;

    let nan = 0x7e00u32 | ((magnitude >> 13u32) & 0x3ffu32);
    let special = select(magnitude > 0x7f80_0000u32, nan, 0x7c00u32);
    let finite = select(exponent < 113u32, subnormal, normal);
    sign | select(magnitude >= 0x4780_0000u32, special, finite)
}

/// The bits of the `f32` equal to a bf16. A signalling NaN comes out quiet.
#[cube]
fn decode_bf16(half: u32) -> u32 {
    let quiet = select((half & 0x7fffu32) > 0x7f80u32, 0x40u32, 0u32);
    (half | quiet) << 16u32
}

/// The bits of the `f32` equal to an f16. A signalling NaN comes out quiet.
#[cube]
fn decode_f16(half: u32) -> u32 {
    let sign = (half & 0x8000u32) << 16u32;
    let exponent = (half >> 10u32) & 0x1fu32;
    let mantissa = half & 0x3ffu32;

    let normal = ((exponent + 112u32) << 23u32) | (mantissa << 13u32);
    let quiet = select(mantissa == 0u32, 0u32, 0x40_0000u32);
    let special = 0x7f80_0000u32 | quiet | (mantissa << 13u32);

    // A subnormal: bring the leading bit to where a normal number has its implicit one.
    let shift = mantissa.leading_zeros() - 21u32;
    let shifted = ((113u32 - shift) << 23u32) | (((mantissa << shift) & 0x3ffu32) << 13u32);
    let subnormal = select(mantissa == 0u32, 0u32, shifted);

    let finite = select(exponent == 0u32, subnormal, normal);
    sign | select(exponent == 31u32, special, finite)
}

#[cube]
fn encode(bits: u32, #[comptime] format: Half) -> u32 {
    match comptime![format] {
        Half::F16 => encode_f16(bits),
        Half::BF16 => encode_bf16(bits),
    }
}

#[cube]
fn decode(half: u32, #[comptime] format: Half) -> u32 {
    match comptime![format] {
        Half::F16 => decode_f16(half),
        Half::BF16 => decode_bf16(half),
    }
}

/// One unit per word.
#[cube(launch_unchecked, address_type = "dynamic")]
fn compress_kernel(
    input: &Array<u32>,
    input_offset: usize,
    output: &mut Array<u32>,
    output_offset: usize,
    len: usize,
    #[comptime] format: Half,
) {
    let first = ABSOLUTE_POS * 2;
    if first >= len {
        terminate!();
    }
    let mut word = encode(input[input_offset + first], format);
    if first + 1 < len {
        word |= encode(input[input_offset + first + 1], format) << 16u32;
    }
    output[output_offset + ABSOLUTE_POS] = word;
}

/// One unit per word.
#[cube(launch_unchecked, address_type = "dynamic")]
fn decompress_kernel(
    input: &Array<u32>,
    input_offset: usize,
    output: &mut Array<u32>,
    output_offset: usize,
    len: usize,
    #[comptime] format: Half,
) {
    let first = ABSOLUTE_POS * 2;
    if first >= len {
        terminate!();
    }
    let word = input[input_offset + ABSOLUTE_POS];
    output[output_offset + first] = decode(word & 0xffffu32, format);
    if first + 1 < len {
        output[output_offset + first + 1] = decode(word >> 16u32, format);
    }
}

/// Rounds the `f32`s of `input` to 16 bits and writes them two to a word; see [`Half`].
///
/// `output` is a region of `u32` words, [`Half::words`] of the input's length. Rounding is to
/// nearest, ties to even; NaNs stay NaNs (quiet), infinities stay, and values beyond the format's
/// range become infinite.
///
/// # Errors
///
/// [`KernelError`] for another length of `output` and for a region past the end of its buffer.
pub fn compress16<R: Runtime>(
    client: &ComputeClient<R>,
    format: Half,
    input: &Region,
    output: &Region,
) -> Result<(), KernelError> {
    output.check_len("the output", Half::words(input.len))?;
    launch(client, format, input, output, input.len, Kernel::Compress)
}

/// Widens 16-bit elements, two to a word, to the `f32`s of `output`: exact, and the inverse of
/// [`compress16`].
///
/// # Errors
///
/// As for [`compress16`].
pub fn decompress16<R: Runtime>(
    client: &ComputeClient<R>,
    format: Half,
    input: &Region,
    output: &Region,
) -> Result<(), KernelError> {
    input.check_len("the input", Half::words(output.len))?;
    launch(
        client,
        format,
        input,
        output,
        output.len,
        Kernel::Decompress,
    )
}

#[derive(Clone, Copy, Debug)]
enum Kernel {
    Compress,
    Decompress,
}

#[allow(unsafe_code)]
fn launch<R: Runtime>(
    client: &ComputeClient<R>,
    format: Half,
    input: &Region,
    output: &Region,
    len: usize,
    kernel: Kernel,
) -> Result<(), KernelError> {
    input.check(WORD)?;
    output.check(WORD)?;
    if len == 0 {
        return Ok(());
    }
    let (count, dim) = grid(client, Half::words(len));
    let address = address_type([input.capacity(WORD), output.capacity(WORD)].into_iter());
    let (from, to) = (input.arg(WORD), output.arg(WORD));
    // SAFETY: a unit past the last word stops at once, and the others stay within the regions,
    // which lie within their buffers.
    unsafe {
        match kernel {
            Kernel::Compress => compress_kernel::launch_unchecked::<R>(
                client,
                count,
                dim,
                address,
                from,
                input.offset,
                to,
                output.offset,
                len,
                format,
            ),
            Kernel::Decompress => decompress_kernel::launch_unchecked::<R>(
                client,
                count,
                dim,
                address,
                from,
                input.offset,
                to,
                output.offset,
                len,
                format,
            ),
        }
    }
    Ok(())
}
