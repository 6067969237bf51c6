//! How fast a training step is: on one device with plain Burn, and on the first 1 to N members of a
//! mesh.

use std::sync::Arc;
use std::time::Instant;

use anyhow::ensure;
use burn::optim::{GradientsParams, Optimizer};
use burn_multigpu::{DataParallel, Mesh, Step};
use serde::Serialize;

use crate::backend::TrainBackend;
use crate::config::FloatKind;
use crate::data::{DigitItems, Digits, epoch_order};
use crate::models::{Classifier, ModelKind};
use crate::numeric::numbers;
use crate::optimizer::OptimizerKind;
use crate::training::{check_dtype, items_loss};

/// What to measure.
#[derive(Debug, Clone)]
pub struct BenchOptions {
    /// The network.
    pub model: ModelKind,
    /// The optimizer.
    pub optimizer: OptimizerKind,
    /// Items of a step: over all members together, or of each member (see `per_member`).
    pub batch_size: usize,
    /// Whether the batch grows with the mesh, and each member has as much to do as one device alone.
    pub per_member: bool,
    /// Steps of a timed block.
    pub steps: usize,
    /// Timed blocks.
    pub blocks: usize,
    /// Steps before the first block, in which kernels are compiled and tuned.
    pub warmup: usize,
    /// Element type.
    pub dtype: FloatKind,
    /// The digits to train on.
    pub digits: Arc<Digits>,
}

/// The speed of one configuration.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Speed {
    /// Items of a step.
    pub batch_size: usize,
    /// The median over the blocks.
    pub items_per_second: f64,
    /// Each block.
    pub blocks: Vec<f64>,
}

/// The speed of a mesh.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MeshSpeed {
    /// How many members.
    pub members: usize,
    /// How fast.
    #[serde(flatten)]
    pub speed: Speed,
    /// Times as fast as one device with plain Burn.
    pub scaling: f64,
    /// The scaling per member; 1 is all that could be.
    pub efficiency: f64,
}

/// All that was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BenchReport {
    /// The version of this program.
    pub version: &'static str,
    /// The backend of the mesh.
    pub backend: String,
    /// The members of the mesh.
    pub devices: Vec<String>,
    /// Their names.
    pub names: Vec<String>,
    /// The network.
    pub model: ModelKind,
    /// The optimizer.
    pub optimizer: OptimizerKind,
    /// Element type.
    pub dtype: FloatKind,
    /// `global`: the batch is shared among the members; `per-member`: it grows with them.
    pub batch: &'static str,
    /// Steps of a block.
    pub steps_per_block: usize,
    /// One device with plain Burn.
    pub plain: Speed,
    /// 1 to N members.
    pub mesh: Vec<MeshSpeed>,
}

/// Measures one device and every mesh of the first 1 to N members, telling `observe` what comes next.
///
/// Blocks end with reading the loss, which waits for the devices, and include making the tensors of
/// the batch.
///
/// # Errors
///
/// When the backend lacks the element type or a device fails.
pub fn run<B: TrainBackend>(
    mesh: &Mesh<B::InnerBackend>,
    options: &BenchOptions,
    mut observe: impl FnMut(&str),
) -> anyhow::Result<BenchReport> {
    ensure!(
        options.steps >= 1 && options.blocks >= 1,
        "nothing to measure"
    );
    ensure!(options.batch_size >= 1, "a batch has at least one item");
    ensure!(
        !options.digits.is_empty(),
        "there are no digits to train on"
    );
    check_dtype::<B>(options.dtype, &mesh.devices()[0])?;

    observe("one device, plain Burn");
    let plain = plain::<B>(mesh, options)?;
    let mut meshes = Vec::with_capacity(mesh.len());
    for members in 1..=mesh.len() {
        observe(&format!("mesh of {members}"));
        let speed = over_mesh::<B>(&mesh.take(members)?, options)?;
        let scaling = speed.items_per_second / plain.items_per_second;
        meshes.push(MeshSpeed {
            members,
            speed,
            scaling,
            efficiency: scaling / members as f64,
        });
    }
    let members = mesh.members();
    Ok(BenchReport {
        version: env!("CARGO_PKG_VERSION"),
        backend: members[0].backend.clone(),
        devices: members.iter().map(|member| member.label.clone()).collect(),
        names: members.iter().map(|member| member.name.clone()).collect(),
        model: options.model,
        optimizer: options.optimizer,
        dtype: options.dtype,
        batch: if options.per_member {
            "per-member"
        } else {
            "global"
        },
        steps_per_block: options.steps,
        plain,
        mesh: meshes,
    })
}

fn plain<B: TrainBackend>(
    mesh: &Mesh<B::InnerBackend>,
    options: &BenchOptions,
) -> anyhow::Result<Speed> {
    let mut model = Some(model::<B>(mesh, options));
    let mut optimizer = options.optimizer.init::<B, Classifier<B>>();
    let lr = options.optimizer.default_lr();
    measure(options, options.batch_size, |items| {
        let current = model.take().expect("every step puts the model back");
        let loss = items_loss(&current, &items);
        let grads = GradientsParams::from_grads(loss.clone().backward(), &current);
        model = Some(optimizer.step(lr, current, grads));
        Ok(move || Ok(numbers(loss.inner())[0]))
    })
}

fn over_mesh<B: TrainBackend>(
    mesh: &Mesh<B::InnerBackend>,
    options: &BenchOptions,
) -> anyhow::Result<Speed> {
    let optimizer = options.optimizer.init::<B, Classifier<B>>();
    let mut engine = DataParallel::new(model::<B>(mesh, options), mesh)?.with_optimizer(optimizer);
    let lr = options.optimizer.default_lr();
    let batch_size = match options.per_member {
        true => options.batch_size * mesh.len(),
        false => options.batch_size,
    };
    measure(options, batch_size, |items| {
        let output = engine.train_step(lr, items, |model: &Classifier<B>, items| {
            Step::new(items_loss(model, &items))
        })?;
        Ok(move || Ok(output.loss()?))
    })
}

fn model<B: TrainBackend>(mesh: &Mesh<B::InnerBackend>, options: &BenchOptions) -> Classifier<B> {
    let device = &mesh.devices()[0];
    Classifier::seeded(options.model, 0.0, 42, device, options.dtype.dtype())
}

/// Times blocks of steps. A step answers with what reads its loss; only the last one of a block is read.
fn measure<Read>(
    options: &BenchOptions,
    batch_size: usize,
    mut step: impl FnMut(DigitItems) -> anyhow::Result<Read>,
) -> anyhow::Result<Speed>
where
    Read: FnOnce() -> anyhow::Result<f64>,
{
    let order = epoch_order(options.digits.len(), 42, 0);
    // Large batches go round the digits more than once.
    let mut indices = order.iter().copied().cycle();
    let mut block = |steps: usize| -> anyhow::Result<()> {
        let mut read = None;
        for _ in 0..steps {
            let batch = indices.by_ref().take(batch_size).collect();
            read = Some(step(DigitItems::new(Arc::clone(&options.digits), batch))?);
        }
        read.map_or(Ok(0.0), |read| read())?;
        Ok(())
    };
    block(options.warmup)?;
    let blocks = (0..options.blocks)
        .map(|_| {
            let begin = Instant::now();
            block(options.steps)?;
            Ok((options.steps * batch_size) as f64 / begin.elapsed().as_secs_f64())
        })
        .collect::<anyhow::Result<Vec<f64>>>()?;
    Ok(Speed {
        batch_size,
        items_per_second: median(&blocks),
        blocks,
    })
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() % 2 {
        0 => (sorted[middle - 1] + sorted[middle]) / 2.0,
        _ => sorted[middle],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median(&[3.0]), 3.0);
        assert_eq!(median(&[9.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 9.0]), 3.0);
    }
}
