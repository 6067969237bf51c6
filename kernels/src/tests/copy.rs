//! `pack` and `unpack`.

use proptest::prelude::*;

use super::{Element, Random, blank, bytes, client, download, for_each_dtype, upload};
use crate::{cpu, pack, unpack};

/// Packs tensors of random bits and unpacks them again; each tensor is a length and an offset.
fn check<T: Element>(tensors: &[(usize, usize)], flat_offset: usize) {
    let client = client();
    let mut random = Random(tensors.len() as u64);
    let values: Vec<Vec<T>> = tensors.iter().map(|&(len, _)| random.bits(len)).collect();
    let inputs: Vec<_> = values
        .iter()
        .zip(tensors)
        .map(|(values, &(_, offset))| upload(&client, values, offset))
        .collect();

    let total = tensors.iter().map(|&(len, _)| len).sum();
    let flat = blank::<T>(&client, total, flat_offset);
    pack(&client, T::DTYPE, &inputs, &flat).unwrap();

    let slices: Vec<&[T]> = values.iter().map(Vec::as_slice).collect();
    let mut expected = vec![T::default(); total];
    cpu::pack(&slices, &mut expected);
    let packed = download::<T>(&client, &flat);
    assert!(
        bytes(&packed) == bytes(&expected),
        "pack {} {tensors:?}",
        T::DTYPE
    );

    let outputs: Vec<_> = tensors
        .iter()
        .map(|&(len, offset)| blank::<T>(&client, len, offset))
        .collect();
    unpack(&client, T::DTYPE, &flat, &outputs).unwrap();
    for (i, (output, values)) in outputs.iter().zip(&values).enumerate() {
        let actual = download::<T>(&client, output);
        assert!(
            bytes(&actual) == bytes(values),
            "unpack {} {i} {tensors:?}",
            T::DTYPE
        );
    }

    let mut parts: Vec<Vec<T>> = tensors
        .iter()
        .map(|&(len, _)| vec![T::default(); len])
        .collect();
    let mut slices: Vec<&mut [T]> = parts.iter_mut().map(Vec::as_mut_slice).collect();
    cpu::unpack(&expected, &mut slices);
    for (part, values) in parts.iter().zip(&values) {
        assert!(bytes(part) == bytes(values));
    }
}

#[test]
fn awkward_tensors() {
    for_each_dtype!(check(&[], 0));
    for_each_dtype!(check(&[(0, 0)], 0));
    for_each_dtype!(check(&[(0, 3), (1, 0), (0, 0)], 1));
    for_each_dtype!(check(&[(3, 0), (4, 0), (5, 0), (1023, 0)], 0));
    for_each_dtype!(check(&[(4, 0), (8, 4), (4, 0), (1024, 8), (6, 4)], 4));
    for_each_dtype!(check(&[(3_000_000, 0), (100_003, 4), (1, 0)], 0));
}

#[test]
fn the_tensors_of_a_network() {
    // Matrices of all sizes, each with a bias, and scalars between: 200 in all.
    let mut random = Random(7);
    let tensors: Vec<_> = (0..200)
        .map(|i| match i % 4 {
            0 => (1 << (4 + random.below(14)), 0),
            1 => (1 + random.below(300), 0),
            2 => (random.below(50_000), random.below(5)),
            _ => (1, 0),
        })
        .collect();
    for_each_dtype!(check(&tensors, 0));
}

#[test]
fn doubles_move_without_a_double_type() {
    // They travel as words, so this runs on every device.
    check::<f64>(&[(5, 1), (1000, 0), (7, 3)], 2);
}

proptest! {
    #![proptest_config(super::cases(48))]

    #[test]
    fn any_tensors(
        tensors in prop::collection::vec((0usize..3000, 0usize..9), 0..40),
        flat_offset in 0usize..9,
    ) {
        for_each_dtype!(check(&tensors, flat_offset));
    }
}
