//! Handwritten digits: files in the IDX format, the order in which an epoch goes through them, and
//! batches as tensors.
//!
//! The bundled digits (8,000 to train on, 2,000 to test on) and the full MNIST files are read by
//! the same code.

mod batch;
mod digits;
mod error;
mod idx;

pub use batch::{DigitBatch, DigitItems, batches, epoch_order};
pub use digits::{CLASSES, DataSet, Digits, SIDE, bundled_dir};
pub use error::DataError;
pub use idx::{IdxFile, read_images, read_labels};
