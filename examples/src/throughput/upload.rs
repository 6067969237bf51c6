//! How fast a batch gets from the host to the members of a mesh, beside a plain copy in memory.

use std::hint::black_box;
use std::time::Instant;

use anyhow::anyhow;
use burn::prelude::Backend;
use burn::tensor::{Tensor, TensorData};
use burn_multigpu::backend::InnerBackend;
use burn_multigpu::{Mesh, MultiGpu};
use serde::Serialize;

use super::median;

/// Rows of the batch.
const ROWS: usize = 1 << 12;
/// Elements of a row.
const COLUMNS: usize = 1 << 12;
/// Copies of each kind, which take turns.
const ROUNDS: usize = 7;
/// Copies of each kind before them.
const WARMUP: usize = 2;

/// How fast data moves, in GiB a second: the median of copies that took turns.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct UploadRates {
    /// Bytes of the batch, in f32.
    pub bytes: usize,
    /// From memory to memory, on one thread.
    pub memcpy: f64,
    /// To one device with plain Burn. A backend of the CPU may take the data over as it is.
    pub plain: f64,
    /// To a mesh of 1 to N members, cut along the first dimension.
    pub mesh: Vec<f64>,
}

/// Seconds of a copy.
type Copy = Box<dyn FnMut(TensorData) -> anyhow::Result<f64>>;

pub(super) fn rates<B: InnerBackend>(mesh: &Mesh<B>) -> anyhow::Result<UploadRates> {
    let bytes = ROWS * COLUMNS * size_of::<f32>();
    let mut target = vec![0u8; bytes];
    let device = mesh.devices()[0].clone();
    let mut copies: Vec<Copy> = vec![
        Box::new(move |data| {
            let begin = Instant::now();
            target.copy_from_slice(&data.bytes);
            black_box(&mut target);
            Ok(begin.elapsed().as_secs_f64())
        }),
        Box::new(move |data| upload::<B>(data, &device, |_| ())),
    ];
    for members in 1..=mesh.len() {
        let mesh = mesh.take(members)?;
        let device = mesh.try_device()?;
        copies.push(Box::new(move |data| {
            // Data waits for its first use; this is one.
            upload::<MultiGpu<B>>(data, &device, |tensor| mesh.shard(tensor, 0))
        }));
    }
    let mut rates = vec![Vec::with_capacity(ROUNDS); copies.len()];
    for round in 0..WARMUP + ROUNDS {
        for (copy, rates) in copies.iter_mut().zip(&mut rates) {
            let data = TensorData::new(vec![1.0_f32; ROWS * COLUMNS], [ROWS, COLUMNS]);
            let seconds = copy(data)?;
            if round >= WARMUP {
                rates.push(bytes as f64 / seconds / f64::from(1 << 30));
            }
        }
    }
    Ok(UploadRates {
        bytes,
        memcpy: median(&rates[0]),
        plain: median(&rates[1]),
        mesh: rates[2..].iter().map(|rates| median(rates)).collect(),
    })
}

/// Uploads and waits until it is there.
fn upload<B: Backend>(
    data: TensorData,
    device: &B::Device,
    place: impl FnOnce(&Tensor<B, 2>),
) -> anyhow::Result<f64> {
    let begin = Instant::now();
    let tensor = Tensor::<B, 2>::from_data(data, device);
    place(&tensor);
    B::sync(device).map_err(|error| anyhow!("{error}"))?;
    let seconds = begin.elapsed().as_secs_f64();
    drop(tensor);
    Ok(seconds)
}
