//! Handwritten digits: the order in which an epoch goes through them, and batches as tensors. The
//! files are read by [`burn_multigpu_digits`].

mod batch;

pub use batch::{DigitBatch, DigitItems, batches, epoch_order};
pub use burn_multigpu_digits::{CLASSES, DataError, DataSet, Digits, SIDE, bundled_dir};
