//! What an operation costs on the decorator, beside what the operation itself takes: a chain of
//! operations so small that next to nothing is computed.

use std::time::Instant;

use anyhow::anyhow;
use burn::prelude::Backend;
use burn::tensor::{Tensor, TensorData};
use burn_multigpu::backend::InnerBackend;
use burn_multigpu::{Mesh, MultiGpu};
use serde::Serialize;

use super::median;

/// Elements of the tensor.
const ELEMENTS: usize = 16;
/// Operations of a chain, each on the result of the one before.
const OPERATIONS: usize = 1000;
/// Chains of each kind.
const ROUNDS: usize = 20;
/// Chains of each kind before them, in which kernels are compiled.
const WARMUP: usize = 3;

/// What an operation costs, in microseconds: the median of chains that took turns. A chain ends with
/// reading its result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OperationCosts {
    /// Elements of the tensor.
    pub elements: usize,
    /// Operations of a chain.
    pub operations: usize,
    /// On one device with plain Burn.
    pub plain_microseconds: f64,
    /// On a mesh of one and, where there are so many members, of two.
    pub mesh: Vec<MeshCost>,
}

/// What an operation costs on a mesh.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MeshCost {
    /// How many members.
    pub members: usize,
    /// Microseconds.
    pub microseconds: f64,
    /// Times what it costs with plain Burn: the median over the rounds.
    pub ratio: f64,
}

/// Seconds of a chain.
type Chain = Box<dyn Fn() -> anyhow::Result<f64>>;

pub(super) fn costs<B: InnerBackend>(mesh: &Mesh<B>) -> anyhow::Result<OperationCosts> {
    let device = mesh.devices()[0].clone();
    let mut chains: Vec<Chain> = vec![Box::new(move || chain::<B>(&device))];
    for members in 1..=mesh.len().min(2) {
        let device = mesh.take(members)?.try_device()?;
        chains.push(Box::new(move || chain::<MultiGpu<B>>(&device)));
    }
    measure(&chains)
}

fn measure(chains: &[Chain]) -> anyhow::Result<OperationCosts> {
    let mut microseconds = vec![Vec::with_capacity(ROUNDS); chains.len()];
    for round in 0..WARMUP + ROUNDS {
        for (chain, microseconds) in chains.iter().zip(&mut microseconds) {
            let seconds = chain()?;
            if round >= WARMUP {
                microseconds.push(seconds * 1e6 / OPERATIONS as f64);
            }
        }
    }
    let (plain, meshes) = microseconds.split_at(1);
    let mesh = meshes.iter().zip(1..).map(|(mesh, members)| {
        let rounds = mesh.iter().zip(&plain[0]);
        MeshCost {
            members,
            microseconds: median(mesh),
            ratio: median(&rounds.map(|(mesh, plain)| mesh / plain).collect::<Vec<_>>()),
        }
    });
    Ok(OperationCosts {
        elements: ELEMENTS,
        operations: OPERATIONS,
        plain_microseconds: median(&plain[0]),
        mesh: mesh.collect(),
    })
}

fn chain<B: Backend>(device: &B::Device) -> anyhow::Result<f64> {
    let data = TensorData::new(vec![1.0_f32; ELEMENTS], [ELEMENTS]);
    let begin = Instant::now();
    let mut x = Tensor::<B, 1>::from_data(data, device);
    for _ in 0..OPERATIONS / 2 {
        // Stays where it is, however long the chain.
        x = (x + 1.0) * 0.5;
    }
    x.try_into_data().map_err(|error| anyhow!("{error}"))?;
    Ok(begin.elapsed().as_secs_f64())
}
