//! What can be wrong with a data file. Every message names the file, says what was expected and
//! what was found, and what to do.

use std::path::PathBuf;

use thiserror::Error;

/// Why digits could not be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DataError {
    /// None of the names under which a file is known is in the folder.
    #[error(
        "no {what} in {dir}: looked for {names}. Put the MNIST files there (gzip or not), or pass another folder with --data"
    )]
    Missing {
        /// What the file holds, in words.
        what: &'static str,
        /// The folder that was searched.
        dir: PathBuf,
        /// The file names that would have been taken.
        names: String,
    },
    /// The operating system refused to read the file.
    #[error("cannot read {path}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The refusal.
        source: std::io::Error,
    },
    /// The file begins as gzip does, and does not decompress.
    #[error("{path} is damaged: it is gzip-compressed and does not decompress. Download it again")]
    Gzip {
        /// The file.
        path: PathBuf,
        /// What the decompressor found.
        source: std::io::Error,
    },
    /// The first four bytes are not those of the expected kind of IDX file.
    #[error(
        "{path} does not hold {what}: expected an IDX file that begins with {expected:#010x}, found {found}. Check that images and labels are not mixed up and that the file is not a web page"
    )]
    WrongMagic {
        /// The file.
        path: PathBuf,
        /// What it should hold, in words.
        what: &'static str,
        /// The magic number of such a file.
        expected: u32,
        /// The first bytes of this one, in words.
        found: String,
    },
    /// The file ends before what its header announces.
    #[error(
        "{path} is truncated: its header announces {expected} bytes after it, found {found}. Download it again"
    )]
    Truncated {
        /// The file.
        path: PathBuf,
        /// Bytes that the header announces.
        expected: u64,
        /// Bytes that there are.
        found: u64,
    },
    /// The file goes on after what its header announces.
    #[error(
        "{path} has {extra} bytes too many: its header announces {expected} bytes after it. Download it again"
    )]
    TrailingBytes {
        /// The file.
        path: PathBuf,
        /// Bytes that the header announces.
        expected: u64,
        /// Bytes beyond them.
        extra: u64,
    },
    /// The file is well formed and holds nothing.
    #[error("{path} holds no items: there is nothing to train on or to test with")]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// The images are not of the size that the models take.
    #[error("{path} holds images of {rows}x{cols} pixels, the models take 28x28")]
    WrongSize {
        /// The file.
        path: PathBuf,
        /// Height of its images.
        rows: usize,
        /// Width of its images.
        cols: usize,
    },
    /// There are not as many labels as images.
    #[error(
        "{images} holds {image_count} images and {labels} holds {label_count} labels: the two files do not belong together"
    )]
    CountMismatch {
        /// The file of images.
        images: PathBuf,
        /// How many it holds.
        image_count: usize,
        /// The file of labels.
        labels: PathBuf,
        /// How many it holds.
        label_count: usize,
    },
    /// A label that is no digit.
    #[error("{path} has the label {label} at item {index}: labels are digits, 0 to 9")]
    LabelOutOfRange {
        /// The file.
        path: PathBuf,
        /// Position of the label.
        index: usize,
        /// The label.
        label: u8,
    },
}
