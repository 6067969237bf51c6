//! The element types that the collectives move and sum.

use core::fmt;

/// An element type, chosen when a kernel is launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FloatDtype {
    /// 64-bit float; sums are taken in 64 bits.
    F64,
    /// 32-bit float.
    F32,
    /// IEEE half precision; sums are taken in 32 bits.
    F16,
    /// bfloat16; sums are taken in 32 bits.
    BF16,
}

impl FloatDtype {
    /// Every element type, widest first.
    pub const ALL: [Self; 4] = [Self::F64, Self::F32, Self::F16, Self::BF16];

    /// Bytes per element.
    pub const fn size(self) -> usize {
        match self {
            Self::F64 => 8,
            Self::F32 => 4,
            Self::F16 | Self::BF16 => 2,
        }
    }

    /// The type in which values of this type are summed: `F64` for `F64`, else `F32`.
    pub const fn accumulator(self) -> Self {
        match self {
            Self::F64 => Self::F64,
            Self::F32 | Self::F16 | Self::BF16 => Self::F32,
        }
    }
}

impl fmt::Display for FloatDtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::F64 => "f64",
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::BF16 => "bf16",
        })
    }
}

#[cfg(feature = "cubecl")]
impl From<FloatDtype> for cubecl::prelude::StorageType {
    fn from(dtype: FloatDtype) -> Self {
        use cubecl::ir::FloatKind;
        match dtype {
            FloatDtype::F64 => FloatKind::F64,
            FloatDtype::F32 => FloatKind::F32,
            FloatDtype::F16 => FloatKind::F16,
            FloatDtype::BF16 => FloatKind::BF16,
        }
        .into()
    }
}

/// A 16-bit format for compressed reduction, held two to a `u32`: element `2i` in the low half of
/// word `i`, element `2i + 1` in the high half, and a zero half after an odd last element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Half {
    /// IEEE half precision: 10 bits of mantissa, largest finite value 65504.
    F16,
    /// bfloat16: 7 bits of mantissa, the range of `f32`.
    BF16,
}

impl Half {
    /// The number of `u32` words that hold `len` elements.
    pub const fn words(len: usize) -> usize {
        len.div_ceil(2)
    }
}
