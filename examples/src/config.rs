//! What a training run is made of: defaults, a TOML file over them, flags over that.

use std::fs;
use std::path::{Path, PathBuf};

use burn::tensor::DType;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::engine::EngineKind;
use crate::models::ModelKind;
use crate::optimizer::OptimizerKind;

/// The element type of parameters and images.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, clap::ValueEnum, Default,
)]
#[serde(rename_all = "lowercase")]
pub enum FloatKind {
    /// 32 bits, which every backend has.
    #[default]
    F32,
    /// 64 bits, where the backend has them (Flex).
    F64,
}

impl FloatKind {
    /// The type as Burn names it.
    pub fn dtype(self) -> DType {
        match self {
            Self::F32 => DType::F32,
            Self::F64 => DType::F64,
        }
    }
}

impl std::fmt::Display for FloatKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::F32 => "f32",
            Self::F64 => "f64",
        })
    }
}

/// Why a configuration was refused.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file could not be read.
    #[error("cannot read the configuration {path}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The refusal of the operating system.
        source: std::io::Error,
    },
    /// The file is not TOML, has a key that is none of ours, or a value of the wrong type.
    #[error("{path} is not a configuration of a training run\n{message}")]
    Parse {
        /// The file.
        path: PathBuf,
        /// What the parser says: line, key and what it could have been.
        message: String,
    },
    /// A value that makes no sense.
    #[error("{key} must be {expected}, not {found}")]
    Value {
        /// The key, which is also the name of the flag.
        key: &'static str,
        /// What would do.
        expected: &'static str,
        /// What was given.
        found: String,
    },
}

/// A training run. Every key can stand in the file of `--config`; keys are the names of the flags, with `_` for `-`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TrainConfig {
    /// The mesh, as in `--devices`.
    pub devices: Option<String>,
    /// How the mesh is used. It is no part of what the run is, and a resumed run may take the other.
    pub engine: EngineKind,
    /// The network.
    pub model: ModelKind,
    /// Items of a step, over all devices together.
    pub batch_size: usize,
    /// How often the digits are gone through.
    pub epochs: usize,
    /// The learning rate; without one, that which suits the optimizer.
    pub lr: Option<f64>,
    /// The optimizer.
    pub optimizer: OptimizerKind,
    /// Decides the initial parameters, the order of the items and what dropout drops.
    pub seed: u64,
    /// Probability with which a hidden activation is dropped.
    pub dropout: f64,
    /// Element type.
    pub dtype: FloatKind,
    /// A folder of MNIST files; without one, the bundled digits.
    pub data: Option<PathBuf>,
    /// The folder that the model and the checkpoint are written to.
    pub out: PathBuf,
    /// Take only so many digits to train on and to test with.
    pub limit: Option<usize>,
}

impl Default for TrainConfig {
    fn default() -> Self {
        Self {
            devices: None,
            engine: EngineKind::default(),
            model: ModelKind::default(),
            batch_size: 64,
            epochs: 6,
            lr: None,
            optimizer: OptimizerKind::default(),
            seed: 42,
            dropout: 0.25,
            dtype: FloatKind::default(),
            data: None,
            out: PathBuf::from("multigpu-run"),
            limit: None,
        }
    }
}

impl TrainConfig {
    /// Reads a file; keys that it does not have keep their defaults.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] naming the file, and the key or the line.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let text = fs::read_to_string(path).map_err(|source| ConfigError::Read {
            path: path.to_owned(),
            source,
        })?;
        toml::from_str(&text).map_err(|error| ConfigError::Parse {
            path: path.to_owned(),
            message: error.to_string(),
        })
    }

    /// The learning rate of the run.
    pub fn learning_rate(&self) -> f64 {
        self.lr.unwrap_or_else(|| self.optimizer.default_lr())
    }

    /// Refuses what makes no sense.
    ///
    /// # Errors
    ///
    /// [`ConfigError::Value`] for the first such value.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let at_least_one = |key, value: usize| check(key, "at least 1", value >= 1, value);
        at_least_one("batch-size", self.batch_size)?;
        at_least_one("epochs", self.epochs)?;
        at_least_one("limit", self.limit.unwrap_or(1))?;
        check_lr(self.learning_rate())?;
        check(
            "dropout",
            "at least 0 and below 1",
            (0.0..1.0).contains(&self.dropout),
            self.dropout,
        )
    }
}

/// Refuses a learning rate with which nothing is learnt.
///
/// # Errors
///
/// [`ConfigError::Value`] when it is not a finite number above 0.
pub fn check_lr(lr: f64) -> Result<(), ConfigError> {
    let holds = lr.is_finite() && lr > 0.0;
    check("lr", "a finite number above 0", holds, lr)
}

fn check(
    key: &'static str,
    expected: &'static str,
    holds: bool,
    found: impl ToString,
) -> Result<(), ConfigError> {
    if holds {
        return Ok(());
    }
    Err(ConfigError::Value {
        key,
        expected,
        found: found.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<TrainConfig, String> {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let path = dir.path().join("run.toml");
        fs::write(&path, text).expect("writing");
        TrainConfig::read(&path).map_err(|error| {
            let message = error.to_string();
            assert!(message.contains("run.toml"), "{message}");
            message
        })
    }

    #[test]
    fn a_file_overrides_defaults() {
        let config = read("model = \"mlp\"\nbatch_size = 50\nlr = 0.5\n").expect("a good file");
        let expected = TrainConfig {
            model: ModelKind::Mlp,
            batch_size: 50,
            lr: Some(0.5),
            ..TrainConfig::default()
        };
        assert_eq!(config, expected);
        assert_eq!(read("").expect("an empty file"), TrainConfig::default());
        TrainConfig::default()
            .validate()
            .expect("defaults make sense");
    }

    #[test]
    fn refuses_what_it_does_not_know() {
        for (text, expected) in [
            ("batchsize = 3", "`batchsize`"),
            ("model = \"rnn\"", "`rnn`"),
            ("epochs = -1", "epochs = -1"),
            ("epochs = ", "epochs ="),
        ] {
            let message = read(text).expect_err("a bad file");
            assert!(message.contains(expected), "{message}");
        }
        let missing = TrainConfig::read(Path::new("no/such.toml")).expect_err("no file");
        assert!(missing.to_string().contains("no/such.toml"));
    }

    #[test]
    fn refuses_values_that_make_no_sense() {
        let check = |change: fn(&mut TrainConfig), expected: &str| {
            let mut config = TrainConfig::default();
            change(&mut config);
            let message = config.validate().expect_err("a bad value").to_string();
            assert_eq!(message, expected);
        };
        check(|c| c.batch_size = 0, "batch-size must be at least 1, not 0");
        check(|c| c.epochs = 0, "epochs must be at least 1, not 0");
        check(|c| c.limit = Some(0), "limit must be at least 1, not 0");
        check(
            |c| c.lr = Some(0.0),
            "lr must be a finite number above 0, not 0",
        );
        check(
            |c| c.lr = Some(f64::NAN),
            "lr must be a finite number above 0, not NaN",
        );
        check(
            |c| c.dropout = 1.0,
            "dropout must be at least 0 and below 1, not 1",
        );
    }
}
