//! The commands: each reads what it needs, calls the library part of this package and says what
//! came of it.

mod bench;
mod devices;
mod train;
mod verify;

use std::path::PathBuf;
use std::sync::Arc;

use burn_multigpu::MeshSpec;

pub use bench::bench;
pub use devices::devices;
pub use train::train;
pub use verify::verify;

use crate::backend::default_spec;
use crate::data::{DataError, DataSet, Digits, bundled_dir};

/// How a command that did not fail ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It did what was asked for.
    Done,
    /// A difference was above its bound.
    AboveBound,
    /// Ctrl-C stopped it, and it saved.
    Interrupted,
}

fn spec_or_default(spec: Option<MeshSpec>) -> anyhow::Result<MeshSpec> {
    Ok(match spec {
        Some(spec) => spec,
        None => default_spec()?,
    })
}

fn training_digits(data: Option<PathBuf>, limit: Option<usize>) -> Result<Arc<Digits>, DataError> {
    let dir = data.unwrap_or_else(bundled_dir);
    Ok(DataSet::read(&dir, limit)?.train)
}
