//! `weighted_sum`.

use proptest::prelude::*;

use super::{
    AWKWARD, Element, Random, blank, bytes, client, download, for_each_dtype, rounding, upload,
};
use crate::sum::weighted_sum_in_groups;
use crate::{cpu, weighted_sum};

/// Sums random inputs at the given offsets, twice, and compares with the CPU.
fn check<T: Element>(len: usize, offsets: &[usize], out_offset: usize, group: Option<usize>) {
    let client = client();
    let mut random = Random(len as u64 ^ (offsets.len() as u64) << 32);
    let inputs: Vec<Vec<T>> = offsets.iter().map(|_| random.values(len)).collect();
    let weights: Vec<f64> = offsets.iter().map(|_| 2.0 * random.value()).collect();
    let regions: Vec<_> = inputs
        .iter()
        .zip(offsets)
        .map(|(input, &offset)| upload(&client, input, offset))
        .collect();

    let sum = || {
        let out = blank::<T>(&client, len, out_offset);
        match group {
            None => weighted_sum(&client, T::DTYPE, &regions, &weights, &out),
            Some(group) => {
                weighted_sum_in_groups(&client, T::DTYPE, &regions, &weights, &out, group)
            }
        }
        .unwrap();
        download::<T>(&client, &out)
    };
    let actual = sum();
    assert!(bytes(&actual) == bytes(&sum()), "the same launch twice");

    let slices: Vec<&[T]> = inputs.iter().map(Vec::as_slice).collect();
    let mut expected = vec![T::default(); len];
    cpu::weighted_sum(&slices, &weights, &mut expected);
    // Where the device contracts to FMA it skips one rounding per input; the sum may then fall on
    // the other side of the last rounding.
    let steps = offsets.len() as f64 * rounding(T::DTYPE.accumulator()) + 2.0 * rounding(T::DTYPE);
    for (i, (actual, expected)) in actual.iter().zip(&expected).enumerate() {
        let terms = weights.iter().zip(&inputs);
        let scale: f64 = terms.map(|(w, x)| (w * x[i].to_f64()).abs()).sum();
        let error = (actual.to_f64() - expected.to_f64()).abs();
        assert!(
            error <= scale * steps,
            "{} {len} x {}, element {i}: {actual:?} for {expected:?}",
            T::DTYPE,
            offsets.len()
        );
    }
}

#[test]
fn awkward_lengths() {
    for len in AWKWARD {
        for_each_dtype!(check(len, &[0, 0], 0, None));
        for_each_dtype!(check(len, &[4, 8, 0], 12, None));
        if len < 1_000_000 {
            for_each_dtype!(check(len, &[1, 0, 2], 0, None));
            for_each_dtype!(check(len, &[0], 3, None));
        }
    }
}

#[test]
fn as_many_inputs_as_one_could_want() {
    for inputs in [1, 2, 3, 5, 6, 7, 31, 32, 33, 64] {
        for_each_dtype!(check(1023, &vec![0; inputs], 0, None));
    }
}

#[test]
fn chained_groups_are_one_sum() {
    for group in [1, 2, 5, 6] {
        for_each_dtype!(check(1003, &[0, 4, 8, 0, 0, 4, 4], 4, Some(group)));
        for_each_dtype!(check(1003, &[0, 1, 2, 3, 4, 5, 6], 7, Some(group)));
    }
}

#[test]
fn more_cubes_than_one_dimension_holds() {
    // Offset by one, so that each unit takes one element: 65535 cubes of 256 units do not suffice.
    check::<f32>(65_535 * 256 + 257, &[1], 0, None);
}

#[test]
fn the_cpu_rounds_halves_once() {
    use half::bf16;
    // 1 + 1/256 + 1/256 is a bf16, but a partial sum rounded to bf16 would lose both additions.
    let (one, small) = ([bf16::from_f32(1.0)], [bf16::from_f32(1.0 / 256.0)]);
    let mut out = [bf16::ZERO];
    cpu::weighted_sum(&[&one, &small, &small], &[1.0; 3], &mut out);
    assert_eq!(out[0].to_f32(), 1.0 + 1.0 / 128.0);
}

proptest! {
    #![proptest_config(super::cases(48))]

    #[test]
    fn any_length_offsets_and_inputs(
        len in 0usize..5000,
        offsets in prop::collection::vec(0usize..9, 1..24),
        out_offset in 0usize..9,
        group in prop::option::of(1usize..8),
    ) {
        for_each_dtype!(check(len, &offsets, out_offset, group));
    }
}
