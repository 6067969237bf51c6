//! `squared_norm`.

use proptest::prelude::*;

use super::{AWKWARD, Element, Random, client, for_each_dtype, rounding, upload};
use crate::cpu::Float;
use crate::{cpu, squared_norm};

/// Neumaier's sum.
fn compensated_sum(terms: impl Iterator<Item = f64>) -> f64 {
    let (mut sum, mut lost) = (0.0, 0.0);
    for term in terms {
        let next: f64 = sum + term;
        lost += if sum >= term {
            (sum - next) + term
        } else {
            (term - next) + sum
        };
        sum = next;
    }
    sum + lost
}

fn check<T: Element<Acc: Element>>(len: usize, offset: usize) {
    let client = client();
    let values: Vec<T> = Random(len as u64).values(len);
    let region = upload(&client, &values, offset);
    let norm = || {
        let handle = squared_norm(&client, T::DTYPE, &region).unwrap();
        let data = client.read_one(handle).unwrap();
        assert_eq!(data.len(), size_of::<T::Acc>());
        data
    };
    let data = norm();
    assert!(data[..] == norm()[..], "the same launch twice");

    let actual = bytemuck::pod_read_unaligned::<T::Acc>(&data).to_f64();
    let expected = cpu::squared_norm(&values).to_f64();
    let exact = compensated_sum(values.iter().map(|x| x.to_f64().powi(2)));
    // The order is the same, so the device differs from the CPU by contraction to FMA alone; the
    // true sum is as far away as the longest chain of additions allows.
    let step = rounding(T::DTYPE.accumulator()) * exact;
    let what = format!("{} {len} at {offset}: {actual} for {expected}", T::DTYPE);
    assert!((actual - expected).abs() <= 4.0 * step, "{what}");
    assert!(
        (expected - exact).abs() <= 32.0 * step.max(exact * 1e-15),
        "{what}, {exact}"
    );
}

#[test]
fn awkward_lengths() {
    for len in AWKWARD {
        for offset in [0, 1, 4] {
            for_each_dtype!(check(len, offset));
        }
    }
}

proptest! {
    #![proptest_config(super::cases(48))]

    #[test]
    fn any_length_and_offset(len in 0usize..40_000, offset in 0usize..9) {
        for_each_dtype!(check(len, offset));
    }
}
