//! `compress16` and `decompress16`: on the device and the CPU, against `half`.

use half::{bf16, f16};
use proptest::prelude::*;

use super::{AWKWARD, Random, blank, client, download, upload};
use crate::{Half, compress16, cpu, decompress16};

const FORMATS: [Half; 2] = [Half::F16, Half::BF16];

fn encode(format: Half, value: f32) -> u16 {
    match format {
        Half::F16 => f16::from_f32(value).to_bits(),
        Half::BF16 => bf16::from_f32(value).to_bits(),
    }
}

fn decode(format: Half, bits: u16) -> f32 {
    match format {
        Half::F16 => f16::from_bits(bits).to_f32(),
        Half::BF16 => bf16::from_bits(bits).to_f32(),
    }
}

fn words(halves: &[u16]) -> Vec<u32> {
    halves
        .chunks(2)
        .map(|pair| pair[0] as u32 | (*pair.get(1).unwrap_or(&0) as u32) << 16)
        .collect()
}

fn assert_bits(what: &str, format: Half, actual: &[u32], expected: &[u32]) {
    assert_eq!(actual.len(), expected.len());
    for (i, (actual, expected)) in actual.iter().zip(expected).enumerate() {
        assert!(
            actual == expected,
            "{what} {format:?}, word {i}: {actual:#x} for {expected:#x}"
        );
    }
}

/// Compresses values of the given bits.
fn check_compress(bits: &[u32], offset: usize, out_offset: usize) {
    let client = client();
    let values: Vec<f32> = bits.iter().map(|&bits| f32::from_bits(bits)).collect();
    let input = upload(&client, bits, offset);
    for format in FORMATS {
        let halves: Vec<u16> = values.iter().map(|&value| encode(format, value)).collect();
        let expected = words(&halves);

        let mut actual = vec![0; expected.len()];
        cpu::compress16(format, &values, &mut actual);
        assert_bits("cpu", format, &actual, &expected);

        let output = blank::<u32>(&client, expected.len(), out_offset);
        compress16(&client, format, &input, &output).unwrap();
        let actual = download::<u32>(&client, &output);
        assert_bits("device", format, &actual, &expected);
    }
}

/// Decompresses the given halves.
fn check_decompress(halves: &[u16], offset: usize, out_offset: usize) {
    let client = client();
    let words = words(halves);
    let input = upload(&client, &words, offset);
    for format in FORMATS {
        let bits = |half: &u16| decode(format, *half).to_bits();
        let expected: Vec<u32> = halves.iter().map(bits).collect();

        let mut actual = vec![0.0; halves.len()];
        cpu::decompress16(format, &words, &mut actual);
        let actual: Vec<u32> = actual.iter().map(|value| value.to_bits()).collect();
        assert_bits("cpu", format, &actual, &expected);

        let output = blank::<f32>(&client, halves.len(), out_offset);
        decompress16(&client, format, &input, &output).unwrap();
        let actual = download::<u32>(&client, &output);
        assert_bits("device", format, &actual, &expected);
    }
}

#[test]
fn every_half_decodes() {
    let halves: Vec<u16> = (0..=u16::MAX).collect();
    check_decompress(&halves, 0, 0);
}

#[test]
fn every_half_survives_the_round_trip() {
    for format in FORMATS {
        let bits: Vec<u32> = (0..=u16::MAX)
            .map(|half| decode(format, half).to_bits())
            .collect();
        check_compress(&bits, 0, 0);
    }
}

#[test]
fn every_exponent_and_every_tie_encodes() {
    let lows = [0, 1, 0x0fff, 0x1000, 0x1001, 0x7fff, 0x8000, 0x8001, 0xffff];
    let bits: Vec<u32> = (0..=u16::MAX)
        .flat_map(|high| lows.map(|low| (high as u32) << 16 | low))
        .collect();
    check_compress(&bits, 0, 0);
}

#[test]
fn a_million_random_patterns_encode() {
    let mut random = Random(3);
    let bits: Vec<u32> = (0..1_000_001).map(|_| random.next() as u32).collect();
    check_compress(&bits, 1, 2);
}

#[test]
fn awkward_lengths() {
    let mut random = Random(4);
    for len in AWKWARD {
        let bits: Vec<u32> = (0..len).map(|_| random.next() as u32).collect();
        check_compress(&bits, 0, 0);
        let halves: Vec<u16> = (0..len).map(|_| random.next() as u16).collect();
        check_decompress(&halves, 0, 0);
    }
}

proptest! {
    #![proptest_config(super::cases(48))]

    #[test]
    fn any_bits_and_offsets(
        bits in prop::collection::vec(any::<u32>(), 0..2000),
        offset in 0usize..9,
        out_offset in 0usize..9,
    ) {
        check_compress(&bits, offset, out_offset);
        let halves: Vec<u16> = bits.iter().map(|&bits| bits as u16).collect();
        check_decompress(&halves, offset, out_offset);
    }
}
