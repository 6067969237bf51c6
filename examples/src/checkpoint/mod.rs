//! A training run on disk: `model.mpk`, `optimizer.mpk` and `state.json` in one folder.
//!
//! The model is a plain Burn record of one device's model, so that a program that knows nothing of
//! a mesh loads it, and a run goes on over another number of devices than it began on.
//!
//! # Interrupted saves
//!
//! The three files belong together, and a program can be killed between any two of them. So they
//! are written under names of their own first; then `state-new.json` appears, by one rename, which
//! says that all of them are complete; then each is renamed to its final name. [`Checkpoint::open`]
//! finishes the renames of a save that came as far as `state-new.json` and drops what an earlier
//! end left, so that the folder always holds the old run or the new one.

mod error;
mod snapshot;
mod state;
#[cfg(all(test, feature = "flex"))]
mod tests;

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use burn::prelude::Backend;
use serde::Deserialize;

pub use error::CheckpointError;
pub use snapshot::Snapshot;
pub use state::{EpochRecord, Identity, State};

use crate::models::{Classifier, ModelKind};
use snapshot::Encoded;
use state::VERSION;

/// A file of a checkpoint: its name, and its name while it is being written.
type Names = (&'static str, &'static str);
const MODEL: Names = ("model.mpk", "model-new.mpk");
const OPTIMIZER: Names = ("optimizer.mpk", "optimizer-new.mpk");
const STATE: Names = ("state.json", "state-new.json");
/// In the order in which they take their names. The state is last: while it has its temporary name,
/// the save can be finished.
const FILES: [Names; 3] = [MODEL, OPTIMIZER, STATE];

/// The folder of a run.
#[derive(Debug, Clone)]
pub struct Checkpoint {
    dir: PathBuf,
}

impl Checkpoint {
    /// Opens a folder, making it when it is not there, and finishes or drops an interrupted save.
    ///
    /// # Errors
    ///
    /// [`CheckpointError::Io`] when the folder cannot be made or written to.
    pub fn open(dir: impl Into<PathBuf>) -> Result<Self, CheckpointError> {
        let dir = dir.into();
        fs::create_dir_all(&dir).map_err(io_error("create the folder", &dir))?;
        let checkpoint = Self { dir };
        if checkpoint.path(STATE.1).exists() {
            checkpoint.commit()?;
        } else {
            for (_, temporary) in FILES {
                remove(&checkpoint.path(temporary))?;
            }
        }
        Ok(checkpoint)
    }

    /// The folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The file of the model.
    pub fn model_path(&self) -> PathBuf {
        self.path(MODEL.0)
    }

    /// Whether there is a run in the folder.
    pub fn holds_a_run(&self) -> bool {
        self.path(STATE.0).exists()
    }

    /// The first file in the folder that a save would replace, be it of a run or not.
    pub fn occupied(&self) -> Option<PathBuf> {
        let mut paths = FILES.iter().map(|(name, _)| self.path(name));
        paths.find(|path| path.exists())
    }

    /// Writes all of a run, replacing the one before only when everything is on disk.
    ///
    /// # Errors
    ///
    /// [`CheckpointError::Io`] naming the file; the run before is still there then.
    pub fn save(&self, snapshot: &Snapshot, state: &State) -> Result<(), CheckpointError> {
        write(&self.path(MODEL.1), &snapshot.model.bytes)?;
        write(&self.path(OPTIMIZER.1), &snapshot.optimizer.bytes)?;

        let path = self.path(STATE.1);
        let draft = self.path("state-new.json.draft");
        let text = serde_json::to_vec_pretty(state).map_err(|source| CheckpointError::State {
            path: path.clone(),
            source,
        })?;
        write(&draft, &text)?;
        rename(&draft, &path)?;
        self.commit()
    }

    /// Reads how far the run has come, and makes sure that it is the one asked for.
    ///
    /// # Errors
    ///
    /// [`CheckpointError`] when there is none, it cannot be read, or it is another one.
    pub fn load_state(&self, run: &Identity) -> Result<State, CheckpointError> {
        let path = self.path(STATE.0);
        if !path.exists() {
            return Err(CheckpointError::Nothing {
                dir: self.dir.clone(),
            });
        }
        let text = fs::read(&path).map_err(io_error("read", &path))?;
        // The version first: the rest may look different in another one.
        #[derive(Deserialize)]
        struct Version {
            version: u32,
        }
        let malformed = |source| CheckpointError::State {
            path: path.clone(),
            source,
        };
        let Version { version: found } = serde_json::from_slice(&text).map_err(malformed)?;
        if found != VERSION {
            return Err(CheckpointError::Version { path, found });
        }
        let state: State = serde_json::from_slice(&text).map_err(malformed)?;
        if let Some((what, saved, asked)) = state.run.difference(run) {
            return Err(CheckpointError::Differs {
                dir: self.dir.clone(),
                what,
                saved,
                asked,
            });
        }
        Ok(state)
    }

    /// Reads the parameters and the state of the optimizer.
    ///
    /// # Errors
    ///
    /// [`CheckpointError::Io`] when a file cannot be read.
    pub fn load(&self) -> Result<Snapshot, CheckpointError> {
        Ok(Snapshot {
            model: self.read(MODEL)?,
            optimizer: self.read(OPTIMIZER)?,
        })
    }

    /// Reads the parameters alone, in a model of the same kind.
    ///
    /// # Errors
    ///
    /// [`CheckpointError`] when the file cannot be read or is of another model.
    pub fn load_model<B: Backend>(
        &self,
        kind: ModelKind,
        dropout: f64,
        device: &B::Device,
    ) -> Result<Classifier<B>, CheckpointError> {
        self.read(MODEL)?.model(kind, dropout, device)
    }

    fn read(&self, (name, _): Names) -> Result<Encoded, CheckpointError> {
        let path = self.path(name);
        let bytes = fs::read(&path).map_err(io_error("read", &path))?;
        Ok(Encoded { bytes, path })
    }

    fn commit(&self) -> Result<(), CheckpointError> {
        for (name, temporary) in FILES {
            let temporary = self.path(temporary);
            // When an interrupted save is finished, some are already where they belong.
            if temporary.exists() {
                rename(&temporary, &self.path(name))?;
            }
        }
        // Renames are in the folder, which has to reach the disk as well. Not every system lets a
        // folder be opened, and then there is nothing to do.
        if let Ok(folder) = File::open(&self.dir) {
            folder.sync_all().ok();
        }
        Ok(())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }
}

/// Writes a file, so that it is on disk and not on its way there.
fn write(path: &Path, bytes: &[u8]) -> Result<(), CheckpointError> {
    let written = File::create(path).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    written.map_err(io_error("write", path))
}

fn rename(from: &Path, to: &Path) -> Result<(), CheckpointError> {
    fs::rename(from, to).map_err(io_error("replace", to))
}

fn remove(path: &Path) -> Result<(), CheckpointError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(io_error("remove", path)(error))
        }
        _ => Ok(()),
    }
}

fn io_error(
    action: &'static str,
    path: &Path,
) -> impl FnOnce(io::Error) -> CheckpointError + use<> {
    let path = path.to_owned();
    move |source| CheckpointError::Io {
        action,
        path,
        source,
    }
}
