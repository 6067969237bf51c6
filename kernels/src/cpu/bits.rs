//! 16-bit floats to and from the bits of an `f32`.
//!
//! `half` does the same; these have no branch and no look-up of CPU features per element, so that
//! loops over them vectorise.

/// The bf16 nearest to an `f32`, ties to even.
#[inline(always)]
pub(super) fn encode_bf16(bits: u32) -> u16 {
    let nan = (bits >> 16) | 0x40;
    let rounded = bits.wrapping_add(0x7fff + ((bits >> 16) & 1)) >> 16;
    let is_nan = bits & 0x7fff_ffff > 0x7f80_0000;
    (if is_nan { nan } else { rounded }) as u16
}

/// The f16 nearest to an `f32`, ties to even.
#[inline(always)]
pub(super) fn encode_f16(bits: u32) -> u16 {
    /// Adding this lines the mantissa of a result up with f16's subnormal unit, and the addition
    /// does the rounding.
    const ALIGN: f32 = 0.5;
    let sign = (bits >> 16) & 0x8000;
    let magnitude = bits & 0x7fff_ffff;

    let odd = (magnitude >> 13) & 1;
    let normal = magnitude
        .wrapping_sub(0x3800_0000)
        .wrapping_add(0xfff + odd)
        >> 13;
    let aligned = f32::from_bits(magnitude) + ALIGN;
    let subnormal = aligned.to_bits().wrapping_sub(ALIGN.to_bits());
    let nan = 0x7e00 | ((magnitude >> 13) & 0x3ff);

    let special = if magnitude > 0x7f80_0000 { nan } else { 0x7c00 };
    let small = magnitude < 0x3880_0000;
    let finite = if small { subnormal } else { normal };
    let large = magnitude >= 0x4780_0000;
    (sign | if large { special } else { finite }) as u16
}

/// The bits of the `f32` equal to a bf16. A signalling NaN comes out quiet.
#[inline(always)]
pub(super) fn decode_bf16(half: u16) -> u32 {
    let half = half as u32;
    let quiet = if half & 0x7fff > 0x7f80 { 0x40 } else { 0 };
    (half | quiet) << 16
}

/// The bits of the `f32` equal to an f16. A signalling NaN comes out quiet.
#[inline(always)]
pub(super) fn decode_f16(half: u16) -> u32 {
    /// The bits of 2^-14, f16's smallest normal number.
    const SMALLEST: u32 = 113 << 23;
    let half = half as u32;
    let sign = (half & 0x8000) << 16;
    let magnitude = (half & 0x7fff) << 13;
    let mantissa = half & 0x3ff;

    let normal = magnitude + (112 << 23);
    let quiet = if mantissa == 0 { 0 } else { 0x40_0000 };
    let special = 0x7f80_0000 | quiet | (mantissa << 13);
    // 2^-14 + m * 2^-24 - 2^-14, exactly.
    let subnormal = f32::from_bits(SMALLEST | (mantissa << 13)) - f32::from_bits(SMALLEST);

    let exponent = half & 0x7c00;
    let finite = if exponent == 0 {
        subnormal.to_bits()
    } else {
        normal
    };
    sign | if exponent == 0x7c00 { special } else { finite }
}

#[cfg(test)]
mod tests {
    use half::{bf16, f16};

    use super::*;

    fn check_encode(bits: u32) {
        let value = f32::from_bits(bits);
        assert_eq!(
            encode_bf16(bits),
            bf16::from_f32(value).to_bits(),
            "{bits:#x}"
        );
        assert_eq!(
            encode_f16(bits),
            f16::from_f32(value).to_bits(),
            "{bits:#x}"
        );
    }

    #[test]
    fn decoding_agrees_with_half_on_every_value() {
        for bits in 0..=u16::MAX {
            assert_eq!(
                decode_bf16(bits),
                bf16::from_bits(bits).to_f32().to_bits(),
                "{bits:#x}"
            );
            assert_eq!(
                decode_f16(bits),
                f16::from_bits(bits).to_f32().to_bits(),
                "{bits:#x}"
            );
        }
    }

    #[test]
    fn encoding_agrees_with_half_at_every_exponent_and_around_every_tie() {
        // All exponents and signs, with every upper half of the mantissa, and low halves that lie
        // on, before and after the ties of both formats.
        for high in 0..=u16::MAX {
            for low in [0, 1, 0x0fff, 0x1000, 0x1001, 0x7fff, 0x8000, 0x8001, 0xffff] {
                check_encode((high as u32) << 16 | low);
            }
        }
    }

    #[test]
    fn encoding_agrees_with_half_on_a_stride_through_all_bits() {
        let mut bits = 0u32;
        for _ in 0..2_000_000 {
            check_encode(bits);
            bits = bits.wrapping_add(0x9e37_79b1);
        }
    }
}
