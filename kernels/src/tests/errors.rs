//! Each refusal, by each entry point that makes it.

use std::slice::from_ref;

use cubecl::prelude::*;
use cubecl::wgpu::WgpuRuntime;

use super::{announce, client, upload};
use crate::{
    FloatDtype, Half, KernelError, Region, cast, compress16, decompress16, pack, squared_norm,
    supports, unpack, weighted_sum,
};

const F32: FloatDtype = FloatDtype::F32;

fn region(len: usize) -> Region {
    upload(&client(), &vec![0f32; len], 0)
}

/// A region that says it has more elements than its buffer.
fn too_long() -> Region {
    Region::new(client().empty(40), 11)
}

const EXCEEDS: KernelError = KernelError::OutOfBounds {
    offset: 0,
    len: 11,
    capacity: 10,
};

fn length(what: &'static str, expected: usize, actual: usize) -> KernelError {
    KernelError::LengthMismatch {
        what,
        expected,
        actual,
    }
}

#[test]
fn no_inputs() {
    let sum = weighted_sum(&client(), F32, &[], &[], &region(1));
    assert_eq!(sum, Err(KernelError::NoInputs));
}

#[test]
fn another_number_of_weights() {
    let inputs = [region(1), region(1)];
    let sum = weighted_sum(&client(), F32, &inputs, &[1.0], &region(1));
    let error = KernelError::WeightCount {
        inputs: 2,
        weights: 1,
    };
    assert_eq!(error.to_string(), "1 weights for 2 inputs");
    assert_eq!(sum, Err(error));
}

#[test]
fn unequal_lengths() {
    let client = client();
    let (five, six) = (region(5), region(6));
    let inputs = [five.clone(), six.clone()];
    assert_eq!(
        weighted_sum(&client, F32, &inputs, &[1.0; 2], &five),
        Err(length("an input", 5, 6))
    );
    assert_eq!(
        cast(&client, F32, F32, &five, &six),
        Err(length("the output", 5, 6))
    );
    assert_eq!(
        pack(&client, F32, &inputs, &six),
        Err(length("the output", 11, 6))
    );
    assert_eq!(
        unpack(&client, F32, &six, &inputs),
        Err(length("the input", 11, 6))
    );
    for format in [Half::F16, Half::BF16] {
        assert_eq!(
            compress16(&client, format, &five, &six),
            Err(length("the output", 3, 6))
        );
        assert_eq!(
            decompress16(&client, format, &five, &six),
            Err(length("the input", 3, 5))
        );
    }
}

#[test]
fn past_the_end_of_the_buffer() {
    let client = client();
    let (long, eleven) = (too_long(), region(11));
    let exceeds = Err(EXCEEDS);
    let sum = |input, output| weighted_sum(&client, F32, &[input], &[1.0], output);
    assert_eq!(sum(long.clone(), &eleven), exceeds);
    assert_eq!(sum(eleven.clone(), &long), exceeds);
    assert_eq!(cast(&client, F32, F32, &long, &eleven), exceeds);
    assert_eq!(cast(&client, F32, F32, &eleven, &long), exceeds);
    assert_eq!(pack(&client, F32, from_ref(&long), &eleven), exceeds);
    assert_eq!(pack(&client, F32, from_ref(&eleven), &long), exceeds);
    assert_eq!(unpack(&client, F32, &long, from_ref(&eleven)), exceeds);
    assert_eq!(unpack(&client, F32, &eleven, from_ref(&long)), exceeds);
    assert_eq!(squared_norm(&client, F32, &long).unwrap_err(), EXCEEDS);
    assert_eq!(compress16(&client, Half::F16, &long, &region(6)), exceeds);
    assert_eq!(decompress16(&client, Half::F16, &region(6), &long), exceeds);
}

#[test]
fn an_offset_that_overflows() {
    let region = Region {
        offset: usize::MAX,
        ..region(1)
    };
    let norm = squared_norm(&client(), F32, &region);
    assert!(matches!(norm, Err(KernelError::OutOfBounds { .. })));
}

#[test]
fn an_element_type_that_the_device_lacks() {
    // WGSL has no bfloat16, on any device.
    let client = client();
    let dtype = FloatDtype::BF16;
    if supports(&client, dtype) {
        return announce("NOT RUN HERE: the refusal of an element type that the device lacks");
    }
    let error = KernelError::UnsupportedDtype {
        dtype,
        runtime: WgpuRuntime::name(&client),
    };
    let region = region(1);
    let inputs = [region.clone()];
    let refused = Err(error.clone());
    assert_eq!(
        weighted_sum(&client, dtype, &inputs, &[1.0], &region),
        refused
    );
    assert_eq!(cast(&client, dtype, F32, &region, &region), refused);
    assert_eq!(cast(&client, F32, dtype, &region, &region), refused);
    assert_eq!(pack(&client, dtype, &inputs, &region), refused);
    assert_eq!(unpack(&client, dtype, &region, &inputs), refused);
    assert_eq!(squared_norm(&client, dtype, &region).unwrap_err(), error);
}
