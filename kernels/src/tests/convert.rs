//! `cast`.

use half::{bf16, f16};
use proptest::prelude::*;

use super::{AWKWARD, Element, Random, blank, client, download, rounding, runnable, upload};
use crate::{FloatDtype, cast, cpu};

fn check<T: Element, U: Element>(len: usize, offset: usize, out_offset: usize) {
    if !(runnable(T::DTYPE) && runnable(U::DTYPE)) {
        return;
    }
    let client = client();
    let values: Vec<T> = Random(len as u64).values(len);
    let out = blank::<U>(&client, len, out_offset);
    cast(
        &client,
        T::DTYPE,
        U::DTYPE,
        &upload(&client, &values, offset),
        &out,
    )
    .unwrap();

    let mut expected = vec![U::default(); len];
    cpu::cast(&values, &mut expected);
    for (actual, expected) in download::<U>(&client, &out).iter().zip(&expected) {
        // The device may round the other way on a tie.
        let error = (actual.to_f64() - expected.to_f64()).abs();
        let scale = expected.to_f64().abs().max(2f64.powi(-14));
        assert!(
            error <= 2.0 * scale * rounding(U::DTYPE),
            "{} to {}: {actual:?} for {expected:?}",
            T::DTYPE,
            U::DTYPE
        );
    }
}

fn check_pairs(len: usize, offset: usize, out_offset: usize) {
    check::<f32, f32>(len, offset, out_offset);
    check::<f32, f64>(len, offset, out_offset);
    check::<f64, f32>(len, offset, out_offset);
    check::<f32, f16>(len, offset, out_offset);
    check::<f16, f32>(len, offset, out_offset);
    check::<f32, bf16>(len, offset, out_offset);
    check::<bf16, f32>(len, offset, out_offset);
    check::<f16, bf16>(len, offset, out_offset);
    check::<f64, f16>(len, offset, out_offset);
    check::<f16, f64>(len, offset, out_offset);
    check::<f64, f64>(len, offset, out_offset);
    check::<f16, f16>(len, offset, out_offset);
}

#[test]
fn awkward_lengths() {
    for len in AWKWARD {
        check_pairs(len, 0, 4);
    }
    check_pairs(1023, 1, 0);
}

#[test]
fn doubles_reach_halves_by_way_of_f32() {
    // Just above the tie between 1 and the next f16, where f32 falls back onto the tie.
    let values = [1.0 + 2f64.powi(-11) + 2f64.powi(-40)];
    let mut out = [f16::ZERO];
    cpu::cast(&values, &mut out);
    assert_eq!(out, [f16::ONE]);
    if runnable(FloatDtype::F64) && runnable(FloatDtype::F16) {
        let client = client();
        let output = blank::<f16>(&client, 1, 0);
        let input = upload(&client, &values, 0);
        cast(&client, FloatDtype::F64, FloatDtype::F16, &input, &output).unwrap();
        assert_eq!(download::<f16>(&client, &output), out);
    }
}

proptest! {
    #![proptest_config(super::cases(24))]

    #[test]
    fn any_length_and_offsets(len in 0usize..5000, offset in 0usize..9, out_offset in 0usize..9) {
        check_pairs(len, offset, out_offset);
    }
}
