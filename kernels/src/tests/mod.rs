//! Every kernel against its CPU reference, on the machine's default wgpu device.
//!
//! This file holds the device, the buffers and the data; the tests of the operations lie beside it.

#![allow(clippy::unwrap_used)]

mod compress;
mod convert;
mod copy;
mod errors;
mod norm;
mod sum;

use std::fmt::Debug;
use std::io::Write as _;
use std::sync::{LazyLock, Mutex};

use cubecl::prelude::*;
use cubecl::wgpu::{AutoGraphicsApi, RuntimeOptions, WgpuDevice, WgpuRuntime, init_setup};
use half::{bf16, f16};
use proptest::test_runner::Config as ProptestConfig;

use crate::cpu::Float;
use crate::{FloatDtype, Region, supports};

type Client = ComputeClient<WgpuRuntime>;

/// Lengths around nothing, the vector widths, cubes and blocks.
const AWKWARD: [usize; 12] = [0, 1, 2, 3, 4, 5, 7, 9, 1023, 8193, 100_003, 3_000_000];

/// The adapter behind [`client`]: its name and driver.
static ADAPTER: LazyLock<String> = LazyLock::new(|| {
    let setup = init_setup::<AutoGraphicsApi>(&WgpuDevice::default(), RuntimeOptions::default());
    let info = setup.adapter.get_info();
    format!("{} ({:?})", info.name, info.backend)
});

fn client() -> Client {
    LazyLock::force(&ADAPTER);
    WgpuRuntime::client(&WgpuDevice::default())
}

/// Writes past the test harness, which would keep it back while the test passes.
fn announce(text: &str) {
    let line = format!("{text}\n");
    std::io::stderr().write_all(line.as_bytes()).unwrap();
}

/// Whether the device has `dtype`; says so loudly, once, where it does not.
fn runnable(dtype: FloatDtype) -> bool {
    static ANNOUNCED: Mutex<Vec<FloatDtype>> = Mutex::new(vec![]);
    let runs = supports(&client(), dtype);
    let mut announced = ANNOUNCED.lock().unwrap();
    if !runs && !announced.contains(&dtype) {
        announced.push(dtype);
        announce(&format!(
            "NOT RUN HERE: every test of {dtype}, on {}",
            *ADAPTER
        ));
    }
    runs
}

/// Calls a check for each element type that the device has, and returns those.
macro_rules! for_each_dtype {
    ($check:ident($($arg:expr),*)) => {{
        use crate::tests::runnable;
        use crate::FloatDtype::{BF16, F16, F32, F64};
        let mut ran = vec![];
        if runnable(F64) {
            $check::<f64>($($arg),*);
            ran.push(F64);
        }
        if runnable(F32) {
            $check::<f32>($($arg),*);
            ran.push(F32);
        }
        if runnable(F16) {
            $check::<half::f16>($($arg),*);
            ran.push(F16);
        }
        if runnable(BF16) {
            $check::<half::bf16>($($arg),*);
            ran.push(BF16);
        }
        ran
    }};
}
use for_each_dtype;

/// An element type with what the tests need of it.
trait Element: Float + bytemuck::Pod + Debug + PartialEq {}
impl Element for f64 {}
impl Element for f32 {}
impl Element for f16 {}
impl Element for bf16 {}

/// The relative error of one rounding to `dtype`.
fn rounding(dtype: FloatDtype) -> f64 {
    match dtype {
        FloatDtype::F64 => 2f64.powi(-53),
        FloatDtype::F32 => 2f64.powi(-24),
        FloatDtype::F16 => 2f64.powi(-11),
        FloatDtype::BF16 => 2f64.powi(-8),
    }
}

/// So many cases, and no file for those that fail: the shrunken case is printed.
fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// Uniform in -1 to 1.
    fn value(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }

    fn values<T: Float>(&mut self, len: usize) -> Vec<T> {
        (0..len).map(|_| T::from_f64(self.value())).collect()
    }

    /// Elements of any bits, NaNs of all kinds among them.
    fn bits<T: Element>(&mut self, len: usize) -> Vec<T> {
        let words = (0..len * size_of::<T>().div_ceil(2))
            .map(|_| self.next())
            .collect::<Vec<_>>();
        bytemuck::cast_slice(&words)[..len].to_vec()
    }
}

/// The bits of slices, to compare them with NaNs and signs of zero.
fn bytes<T: Element>(values: &[T]) -> &[u8] {
    bytemuck::cast_slice(values)
}

/// What stands before and after a region in its buffer, to see whether a kernel leaves it alone.
const BORDER: u8 = 0xa5;

/// A region with the given values, `offset` elements into a buffer that goes on after it.
fn upload<T: bytemuck::Pod>(client: &Client, values: &[T], offset: usize) -> Region {
    let mut data = vec![BORDER; (offset + values.len() + 3) * size_of::<T>()];
    let start = offset * size_of::<T>();
    let bytes = bytemuck::cast_slice(values);
    data[start..start + bytes.len()].copy_from_slice(bytes);
    Region {
        handle: client.create_from_slice(&data),
        offset,
        len: values.len(),
    }
}

/// A region to be written, full of the border's bytes.
fn blank<T: bytemuck::Pod>(client: &Client, len: usize, offset: usize) -> Region {
    let values: Vec<T> = vec![bytemuck::pod_read_unaligned(&[BORDER; 8][..size_of::<T>()]); len];
    upload(client, &values, offset)
}

/// The region's values. The rest of its buffer must be as [`upload`] left it.
fn download<T: bytemuck::Pod>(client: &Client, region: &Region) -> Vec<T> {
    let data = client.read_one(region.handle.clone()).unwrap();
    let start = region.offset * size_of::<T>();
    let end = start + region.len * size_of::<T>();
    for border in [&data[..start], &data[end..]] {
        assert!(
            border.iter().all(|&byte| byte == BORDER),
            "the border was written to"
        );
    }
    bytemuck::pod_collect_to_vec(&data[start..end])
}

#[test]
fn these_dtypes_ran_here() {
    fn check<T: Element>() {
        let client = client();
        let values: Vec<T> = Random(1).values(1000);
        let region = upload(&client, &values, 0);
        let out = blank::<T>(&client, 1000, 0);
        crate::weighted_sum(&client, T::DTYPE, &[region], &[1.0], &out).unwrap();
        assert_eq!(download::<T>(&client, &out), values);
    }
    let ran = for_each_dtype!(check());
    let compiler = WgpuRuntime::name(&client());
    announce(&format!("ran on {} by {compiler}: {ran:?}", *ADAPTER));
    if ADAPTER.contains("llvmpipe") && compiler.contains("wgsl") {
        assert_eq!(ran, [FloatDtype::F64, FloatDtype::F32, FloatDtype::F16]);
    } else {
        assert!(ran.contains(&FloatDtype::F32));
    }
}
