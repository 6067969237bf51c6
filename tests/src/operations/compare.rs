//! Whether two results are the same.

use burn::tensor::{DType, TensorData};

/// What is different, if anything is.
pub(super) fn difference(want: &TensorData, got: &TensorData) -> Option<String> {
    if want.shape != got.shape || want.dtype != got.dtype {
        return Some(format!(
            "{:?} of {:?} for {:?} of {:?}",
            got.shape, got.dtype, want.shape, want.dtype
        ));
    }
    let same = match tolerance(want.dtype) {
        Some(tolerance) => close(want, got, tolerance),
        None => want.as_bytes() == got.as_bytes(),
    };
    (!same).then(|| format!("{got} for {want}"))
}

/// How far floats may differ, as a part of the largest one; `None` for what must be equal.
fn tolerance(dtype: DType) -> Option<f64> {
    match dtype {
        DType::F64 => Some(1e-12),
        DType::F32 | DType::Flex32 => Some(1e-5),
        DType::F16 | DType::BF16 => Some(1e-2),
        _ => None,
    }
}

fn close(want: &TensorData, got: &TensorData, tolerance: f64) -> bool {
    let finite = want.iter::<f64>().filter(|value| value.is_finite());
    let allowed = tolerance * finite.fold(0.0, |largest: f64, value| largest.max(value.abs()));
    want.iter::<f64>()
        .zip(got.iter::<f64>())
        .all(|(want, got)| {
            let equal = want == got || want.is_nan() && got.is_nan();
            equal || (want - got).abs() <= allowed
        })
}
