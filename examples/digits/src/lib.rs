//! Handwritten digits on the host: files in the IDX format, in which MNIST comes.
//!
//! A crate of its own, so that a notebook reads digits without compiling the program `multigpu`. The
//! bundled digits (8,000 to train on, 2,000 to test on) and the full MNIST files are read by the same
//! code.
//!
//! ```
//! use burn_multigpu_digits::{DataSet, bundled_dir};
//!
//! let digits = DataSet::read(&bundled_dir(), Some(100))?;
//! assert_eq!(digits.train.len(), 100);
//! assert_eq!(digits.test.image(0).len(), 28 * 28);
//! # Ok::<(), burn_multigpu_digits::DataError>(())
//! ```

mod digits;
mod error;
mod idx;

pub use digits::{CLASSES, DataSet, Digits, SIDE, bundled_dir};
pub use error::DataError;
pub use idx::{IdxFile, read_images, read_labels};
