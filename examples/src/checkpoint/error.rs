//! What can go wrong with a checkpoint. Every message names the file or folder.

use std::io;
use std::path::PathBuf;

use burn::record::RecorderError;
use thiserror::Error;

use super::state::VERSION;

/// Why a checkpoint could not be written or gone on from.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// The operating system refused.
    #[error("cannot {action} {path}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The refusal.
        source: io::Error,
    },
    /// Burn could not write or read a record.
    #[error("cannot {action} the record {path}")]
    Record {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// What Burn says.
        source: RecorderError,
    },
    /// `state.json` is not one of ours.
    #[error("{path} does not hold the state of a training run")]
    State {
        /// The file.
        path: PathBuf,
        /// What the parser says.
        source: serde_json::Error,
    },
    /// Written by another version of this program.
    #[error("{path} is of version {found} and this program reads version {VERSION}")]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
    },
    /// There is nothing to go on from.
    #[error("{dir} holds no training run to resume: it has no state.json")]
    Nothing {
        /// The folder.
        dir: PathBuf,
    },
    /// The run on disk is another one.
    #[error(
        "cannot resume the run in {dir}: its {what} is {saved}, this run's is {asked}. Ask for the saved one, or write to another folder with --out"
    )]
    Differs {
        /// The folder.
        dir: PathBuf,
        /// What differs.
        what: &'static str,
        /// As it was saved.
        saved: String,
        /// As it was asked for.
        asked: String,
    },
}
