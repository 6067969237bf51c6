//! How fast a training step is: on one device with plain Burn, and by both engines on the first 1 to N
//! members of a mesh. And what the decorator costs, by operation.

mod operation;
mod upload;

use std::sync::Arc;
use std::time::Instant;

use anyhow::ensure;
use burn_multigpu::Mesh;
use serde::Serialize;

pub use operation::{MeshCost, OperationCosts};
pub use upload::UploadRates;

use crate::backend::TrainBackend;
use crate::config::FloatKind;
use crate::data::{DigitItems, Digits, epoch_order};
use crate::engine::{Engine, EngineKind, Setup, on_device, over_mesh};
use crate::models::ModelKind;
use crate::optimizer::OptimizerKind;

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
    /// How it is used.
    pub engine: EngineKind,
    /// How many members.
    pub members: usize,
    /// How fast.
    #[serde(flatten)]
    pub speed: Speed,
    /// Times as fast as one device with plain Burn: the median over the rounds of blocks.
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
    /// Both engines, each on 1 to N members.
    pub mesh: Vec<MeshSpeed>,
    /// What an operation costs on the decorator.
    pub operations: OperationCosts,
    /// How fast a batch gets to the members.
    pub upload: UploadRates,
}

/// Measures one device and, with both engines, every mesh of the first 1 to N members, telling
/// `observe` what comes next.
///
/// All of them take turns, block by block: what else the machine does meanwhile slows all of them.
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
    let setup = Setup {
        model: options.model,
        optimizer: options.optimizer,
        dropout: 0.0,
        seed: 42,
        dtype: options.dtype,
        resume: None,
    };
    let plain = on_device::<B>(&mesh.devices()[0], &setup)?;
    let mut meshes = Vec::with_capacity(2 * mesh.len());
    for engine in EngineKind::ALL {
        for members in 1..=mesh.len() {
            let subject = over_mesh::<B>(engine, &mesh.take(members)?, &setup)?;
            meshes.push((engine, members, subject));
        }
    }
    let (plain, meshes) = speeds(plain, meshes, options, &mut observe)?;
    observe("single operations");
    let operations = operation::costs(mesh)?;
    observe("uploads");
    let upload = upload::rates(mesh)?;

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
        operations,
        upload,
    })
}

/// One device, and meshes of so many members.
fn speeds(
    plain: Box<dyn Engine>,
    meshes: Vec<(EngineKind, usize, Box<dyn Engine>)>,
    options: &BenchOptions,
    observe: &mut dyn FnMut(&str),
) -> anyhow::Result<(Speed, Vec<MeshSpeed>)> {
    let mut kinds = Vec::with_capacity(meshes.len());
    let mut subjects = vec![Subject::new(plain, options.batch_size, options)];
    for (engine, members, subject) in meshes {
        let batch_size = match options.per_member {
            true => options.batch_size * members,
            false => options.batch_size,
        };
        kinds.push((engine, members));
        subjects.push(Subject::new(subject, batch_size, options));
    }

    observe("warm-up");
    for subject in &mut subjects {
        subject.block(options.warmup)?;
    }
    for block in 1..=options.blocks {
        observe(&format!("block {block} of {}", options.blocks));
        for subject in &mut subjects {
            subject.timed_block(options.steps)?;
        }
    }

    let mut speeds = subjects.into_iter().map(Subject::speed);
    let plain = speeds.next().expect("one device is always measured");
    let meshes = speeds.zip(kinds).map(|(speed, (engine, members))| {
        let rounds = speed.blocks.iter().zip(&plain.blocks);
        let scaling = median(&rounds.map(|(mesh, plain)| mesh / plain).collect::<Vec<_>>());
        MeshSpeed {
            engine,
            members,
            speed,
            scaling,
            efficiency: scaling / members as f64,
        }
    });
    let meshes = meshes.collect();
    Ok((plain, meshes))
}

/// What is measured, and what came of it.
struct Subject {
    engine: Box<dyn Engine>,
    lr: f64,
    batch_size: usize,
    digits: Arc<Digits>,
    order: Vec<u32>,
    /// Where in the order the next batch begins.
    next: usize,
    /// Items per second.
    blocks: Vec<f64>,
}

impl Subject {
    fn new(engine: Box<dyn Engine>, batch_size: usize, options: &BenchOptions) -> Self {
        Self {
            engine,
            lr: options.optimizer.default_lr(),
            batch_size,
            digits: Arc::clone(&options.digits),
            order: epoch_order(options.digits.len(), 42, 0),
            next: 0,
            blocks: Vec::with_capacity(options.blocks),
        }
    }

    fn batch(&mut self) -> DigitItems {
        // Large batches go round the digits more than once.
        let indices = (self.next..self.next + self.batch_size)
            .map(|place| self.order[place % self.order.len()])
            .collect();
        self.next = (self.next + self.batch_size) % self.order.len();
        DigitItems::new(Arc::clone(&self.digits), indices)
    }

    /// Some steps, of which the loss of the last is read.
    fn block(&mut self, steps: usize) -> anyhow::Result<()> {
        let mut last = None;
        for _ in 0..steps {
            let items = self.batch();
            last = Some(self.engine.train_step(self.lr, items)?);
        }
        if let Some(loss) = last {
            loss()?;
        }
        Ok(())
    }

    fn timed_block(&mut self, steps: usize) -> anyhow::Result<()> {
        let begin = Instant::now();
        self.block(steps)?;
        let items = (steps * self.batch_size) as f64;
        self.blocks.push(items / begin.elapsed().as_secs_f64());
        Ok(())
    }

    fn speed(self) -> Speed {
        Speed {
            batch_size: self.batch_size,
            items_per_second: median(&self.blocks),
            blocks: self.blocks,
        }
    }
}

/// Of at least one value.
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
