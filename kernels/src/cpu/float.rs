//! The element types on the CPU.

use core::ops::{Add, Mul};

use half::{bf16, f16};

use super::bits::{decode_bf16, decode_f16, encode_bf16, encode_f16};
use crate::FloatDtype;

/// An element type: `f64`, `f32`, [`half::f16`] or [`half::bf16`].
pub trait Float: Copy + Default + Send + Sync + 'static {
    /// The type in which sums are taken: `f64` for `f64`, else `f32`.
    type Acc: Float<Acc = Self::Acc> + Add<Output = Self::Acc> + Mul<Output = Self::Acc>;

    /// The same type as a value.
    const DTYPE: FloatDtype;

    /// Widens to the accumulator's type, exactly.
    fn to_acc(self) -> Self::Acc;
    /// Rounds from the accumulator's type, to nearest, ties to even.
    fn from_acc(acc: Self::Acc) -> Self;
    /// Converts to `f32`, rounding an `f64`.
    fn to_f32(self) -> f32;
    /// Rounds from `f32`.
    fn from_f32(value: f32) -> Self;
    /// Widens to `f64`, exactly.
    fn to_f64(self) -> f64;
    /// Rounds from `f64`; to 16 bits by way of `f32`, as the kernels do.
    fn from_f64(value: f64) -> Self;
}

impl Float for f64 {
    type Acc = f64;
    const DTYPE: FloatDtype = FloatDtype::F64;

    #[inline(always)]
    fn to_acc(self) -> f64 {
        self
    }
    #[inline(always)]
    fn from_acc(acc: f64) -> Self {
        acc
    }
    #[inline(always)]
    fn to_f32(self) -> f32 {
        self as f32
    }
    #[inline(always)]
    fn from_f32(value: f32) -> Self {
        value as f64
    }
    #[inline(always)]
    fn to_f64(self) -> f64 {
        self
    }
    #[inline(always)]
    fn from_f64(value: f64) -> Self {
        value
    }
}

impl Float for f32 {
    type Acc = f32;
    const DTYPE: FloatDtype = FloatDtype::F32;

    #[inline(always)]
    fn to_acc(self) -> f32 {
        self
    }
    #[inline(always)]
    fn from_acc(acc: f32) -> Self {
        acc
    }
    #[inline(always)]
    fn to_f32(self) -> f32 {
        self
    }
    #[inline(always)]
    fn from_f32(value: f32) -> Self {
        value
    }
    #[inline(always)]
    fn to_f64(self) -> f64 {
        self as f64
    }
    #[inline(always)]
    fn from_f64(value: f64) -> Self {
        value as f32
    }
}

macro_rules! impl_half {
    ($half:ty, $dtype:ident, $encode:ident, $decode:ident) => {
        impl Float for $half {
            type Acc = f32;
            const DTYPE: FloatDtype = FloatDtype::$dtype;

            #[inline(always)]
            fn to_acc(self) -> f32 {
                Float::to_f32(self)
            }
            #[inline(always)]
            fn from_acc(acc: f32) -> Self {
                <Self as Float>::from_f32(acc)
            }
            #[inline(always)]
            fn to_f32(self) -> f32 {
                f32::from_bits($decode(self.to_bits()))
            }
            #[inline(always)]
            fn from_f32(value: f32) -> Self {
                Self::from_bits($encode(value.to_bits()))
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                Float::to_f32(self) as f64
            }
            #[inline(always)]
            fn from_f64(value: f64) -> Self {
                <Self as Float>::from_f32(value as f32)
            }
        }
    };
}

impl_half!(f16, F16, encode_f16, decode_f16);
impl_half!(bf16, BF16, encode_bf16, decode_bf16);
