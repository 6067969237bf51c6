//! A run's records as bytes. They are of no backend: what one engine made, the other loads.

use std::path::{Path, PathBuf};

use burn::module::Module;
use burn::prelude::Backend;
use burn::record::{FullPrecisionSettings, NamedMpkBytesRecorder, Record, Recorder};
use burn::tensor::DType;
use burn::tensor::backend::AutodiffBackend;

use super::CheckpointError;
use crate::models::{Classifier, ModelKind};

/// Its bytes are those of a file of `NamedMpkFileRecorder`, which any Burn program loads.
type BytesRecorder = NamedMpkBytesRecorder<FullPrecisionSettings>;

/// The parameters of a model and the state of its optimizer, in `f32`.
#[derive(Clone)]
pub struct Snapshot {
    pub(super) model: Encoded,
    pub(super) optimizer: Encoded,
}

/// A record, and the file that errors name.
#[derive(Clone)]
pub(super) struct Encoded {
    pub(super) bytes: Vec<u8>,
    pub(super) path: PathBuf,
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Snapshot")
            .field("model_bytes", &self.model.bytes.len())
            .field("optimizer_bytes", &self.optimizer.bytes.len())
            .finish()
    }
}

impl Snapshot {
    /// Of a model, and of the record of an optimizer of the backend `B`.
    ///
    /// # Errors
    ///
    /// [`CheckpointError::Record`] with what Burn says.
    pub fn new<B, R>(
        model: Classifier<B::InnerBackend>,
        optimizer: R,
    ) -> Result<Self, CheckpointError>
    where
        B: AutodiffBackend,
        R: Record<B>,
    {
        type Inner<B> = <B as AutodiffBackend>::InnerBackend;
        let path = Path::new(super::MODEL.0);
        let model = match model {
            Classifier::Mlp(model) => encode::<Inner<B>, _>(model.into_record(), path),
            Classifier::Cnn(model) => encode::<Inner<B>, _>(model.into_record(), path),
            Classifier::Transformer(model) => encode::<Inner<B>, _>(model.into_record(), path),
        }?;
        Ok(Self {
            model,
            optimizer: encode::<B, _>(optimizer, Path::new(super::OPTIMIZER.0))?,
        })
    }

    /// The parameters, in a model of the same kind; they take the ids that they had, by which the
    /// optimizer's state is found.
    ///
    /// # Errors
    ///
    /// [`CheckpointError::Record`] when the record is of another model.
    pub fn model<B: Backend>(
        &self,
        kind: ModelKind,
        dropout: f64,
        device: &B::Device,
    ) -> Result<Classifier<B>, CheckpointError> {
        self.model.model(kind, dropout, device)
    }

    /// The record of the optimizer.
    ///
    /// # Errors
    ///
    /// [`CheckpointError::Record`] when it is of another optimizer.
    pub fn optimizer<B: Backend, R: Record<B>>(
        &self,
        device: &B::Device,
    ) -> Result<R, CheckpointError> {
        self.optimizer.decode::<B, _>(device)
    }
}

impl Encoded {
    pub(super) fn model<B: Backend>(
        &self,
        kind: ModelKind,
        dropout: f64,
        device: &B::Device,
    ) -> Result<Classifier<B>, CheckpointError> {
        // The initial parameters do not matter.
        Ok(
            match Classifier::seeded(kind, dropout, 0, device, DType::F32) {
                Classifier::Mlp(model) => {
                    Classifier::Mlp(model.load_record(self.decode::<B, _>(device)?))
                }
                Classifier::Cnn(model) => {
                    Classifier::Cnn(model.load_record(self.decode::<B, _>(device)?))
                }
                Classifier::Transformer(model) => {
                    Classifier::Transformer(model.load_record(self.decode::<B, _>(device)?))
                }
            },
        )
    }

    fn decode<B: Backend, R: Record<B>>(&self, device: &B::Device) -> Result<R, CheckpointError> {
        let bytes = self.bytes.clone();
        Recorder::<B>::load(&BytesRecorder::new(), bytes, device).map_err(|source| {
            CheckpointError::Record {
                action: "read",
                path: self.path.clone(),
                source,
            }
        })
    }
}

fn encode<B: Backend, R: Record<B>>(record: R, path: &Path) -> Result<Encoded, CheckpointError> {
    let bytes = Recorder::<B>::record(&BytesRecorder::new(), record, ());
    bytes
        .map(|bytes| Encoded {
            bytes,
            path: path.to_owned(),
        })
        .map_err(|source| CheckpointError::Record {
            action: "write",
            path: path.to_owned(),
            source,
        })
}
