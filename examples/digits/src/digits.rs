//! Images of digits with their labels, as a folder of IDX files holds them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::{DataError, read_images, read_labels};

/// Height and width of an image.
pub const SIDE: usize = 28;
/// How many digits there are to tell apart.
pub const CLASSES: usize = 10;

/// Digits in memory: bytes, as in the files. Batches turn them into floats when they are used.
#[derive(Clone, PartialEq, Eq)]
pub struct Digits {
    /// The pixels, `rows * cols` of an item after those of another.
    pub images: Vec<u8>,
    /// The digit of each item.
    pub labels: Vec<u8>,
    /// Height of an image.
    pub rows: usize,
    /// Width of an image.
    pub cols: usize,
}

impl std::fmt::Debug for Digits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Digits({} of {}x{})", self.len(), self.rows, self.cols)
    }
}

impl Digits {
    /// Reads one file of images and the file of their labels.
    ///
    /// # Errors
    ///
    /// [`DataError`] when a file cannot be read, is malformed, or does not fit the other.
    pub fn read(images: &Path, labels: &Path) -> Result<Self, DataError> {
        let image_file = read_images(images)?;
        let label_file = read_labels(labels)?;
        let (count, rows, cols) = (image_file.dims[0], image_file.dims[1], image_file.dims[2]);
        if count != label_file.dims[0] {
            return Err(DataError::CountMismatch {
                images: images.to_owned(),
                image_count: count,
                labels: labels.to_owned(),
                label_count: label_file.dims[0],
            });
        }
        if count == 0 {
            return Err(DataError::Empty {
                path: images.to_owned(),
            });
        }
        if (rows, cols) != (SIDE, SIDE) {
            return Err(DataError::WrongSize {
                path: images.to_owned(),
                rows,
                cols,
            });
        }
        let labels_read = label_file.elements;
        if let Some(index) = labels_read
            .iter()
            .position(|&label| usize::from(label) >= CLASSES)
        {
            return Err(DataError::LabelOutOfRange {
                path: labels.to_owned(),
                index,
                label: labels_read[index],
            });
        }
        Ok(Self {
            images: image_file.elements,
            labels: labels_read,
            rows,
            cols,
        })
    }

    /// How many items there are.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// The pixels of an item.
    ///
    /// # Panics
    ///
    /// When there is no such item.
    pub fn image(&self, index: usize) -> &[u8] {
        let pixels = self.rows * self.cols;
        &self.images[index * pixels..(index + 1) * pixels]
    }

    /// Keeps the first `limit` items.
    pub fn truncate(&mut self, limit: usize) {
        self.labels.truncate(limit);
        self.images.truncate(limit * self.rows * self.cols);
    }
}

/// The digits to train on and those to test with.
#[derive(Debug, Clone)]
pub struct DataSet {
    /// The digits to train on.
    pub train: Arc<Digits>,
    /// The digits to test with, which training never sees.
    pub test: Arc<Digits>,
}

impl DataSet {
    /// Reads the four files of a folder, under either of the names in use (`train-images-idx3-ubyte`
    /// and `train-images.idx3-ubyte`), with or without `.gz`. With a limit, the first `limit` items
    /// of each part are kept.
    ///
    /// # Errors
    ///
    /// [`DataError`] naming the file that is missing or malformed.
    pub fn read(dir: &Path, limit: Option<usize>) -> Result<Self, DataError> {
        let part = |part: &str, images: &'static str, labels: &'static str| {
            let mut digits = Digits::read(
                &find(dir, images, &format!("{part}-images"), "idx3-ubyte")?,
                &find(dir, labels, &format!("{part}-labels"), "idx1-ubyte")?,
            )?;
            if let Some(limit) = limit {
                digits.truncate(limit);
            }
            Ok(Arc::new(digits))
        };
        Ok(Self {
            train: part("train", "training images", "training labels")?,
            test: part("t10k", "test images", "test labels")?,
        })
    }

    /// A number that tells data sets apart (FNV-1a over all bytes): a resumed run must see the data
    /// that it began with.
    pub fn fingerprint(&self) -> u64 {
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for digits in [&self.train, &self.test] {
            for &byte in digits.images.iter().chain(&digits.labels) {
                hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            }
        }
        hash
    }
}

fn find(dir: &Path, what: &'static str, stem: &str, kind: &str) -> Result<PathBuf, DataError> {
    let names = [
        format!("{stem}-{kind}"),
        format!("{stem}.{kind}"),
        format!("{stem}-{kind}.gz"),
        format!("{stem}.{kind}.gz"),
    ];
    names
        .iter()
        .map(|name| dir.join(name))
        .find(|path| path.is_file())
        .ok_or_else(|| DataError::Missing {
            what,
            dir: dir.to_owned(),
            names: names.join(", "),
        })
}

/// The folder of the bundled digits: next to the working directory (an installed program that is run
/// in a checkout), or where this crate was compiled.
pub fn bundled_dir() -> PathBuf {
    let compiled = Path::new(env!("CARGO_MANIFEST_DIR")).join("../data/mnist");
    ["data/mnist", "examples/data/mnist"]
        .into_iter()
        .map(PathBuf::from)
        .find(|dir| dir.is_dir())
        .unwrap_or(compiled)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn idx(dims: &[u32], elements: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0, 0, 8, dims.len() as u8];
        for dim in dims {
            bytes.extend(dim.to_be_bytes());
        }
        bytes.extend(elements);
        bytes
    }

    #[test]
    fn bundled_digits_are_complete() {
        let data = DataSet::read(&bundled_dir(), None).expect("the bundled digits");
        assert_eq!((data.train.len(), data.test.len()), (8000, 2000));
        // Ten digits, none of them rare.
        for digits in [&data.train, &data.test] {
            for class in 0..CLASSES as u8 {
                let count = digits
                    .labels
                    .iter()
                    .filter(|&&label| label == class)
                    .count();
                assert!(count * 20 > digits.len(), "{class}: {count}");
            }
        }
    }

    #[test]
    fn a_limit_changes_the_fingerprint() {
        let all = DataSet::read(&bundled_dir(), None).expect("the bundled digits");
        let some = DataSet::read(&bundled_dir(), Some(100)).expect("the bundled digits");
        assert_eq!((some.train.len(), some.test.len()), (100, 100));
        assert_eq!(some.train.images.len(), 100 * SIDE * SIDE);
        assert_ne!(all.fingerprint(), some.fingerprint());
    }

    #[test]
    fn refuses_files_that_do_not_fit() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let (images, labels) = (dir.path().join("images"), dir.path().join("labels"));
        let check = |image_bytes: Vec<u8>, label_bytes: Vec<u8>| {
            fs::write(&images, image_bytes).expect("writing");
            fs::write(&labels, label_bytes).expect("writing");
            Digits::read(&images, &labels).map_err(|error| error.to_string())
        };
        let pixels = vec![0; 2 * 784];
        let digits = check(idx(&[2, 28, 28], &pixels), idx(&[2], &[3, 9])).expect("good files");
        assert_eq!(digits.len(), 2);

        for (image_bytes, label_bytes, expected) in [
            (
                idx(&[2, 28, 28], &pixels),
                idx(&[3], &[0, 1, 2]),
                "2 images and",
            ),
            (
                idx(&[2, 28, 28], &pixels),
                idx(&[2], &[3, 10]),
                "the label 10 at item 1",
            ),
            (
                idx(&[2, 14, 56], &pixels),
                idx(&[2], &[3, 9]),
                "14x56 pixels",
            ),
            (idx(&[0, 28, 28], &[]), idx(&[0], &[]), "holds no items"),
        ] {
            let message = check(image_bytes, label_bytes).expect_err("files that do not fit");
            assert!(message.contains(expected), "{message}");
        }
    }

    #[test]
    fn finds_either_name_and_says_what_is_missing() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let message = DataSet::read(dir.path(), None)
            .expect_err("an empty folder")
            .to_string();
        assert!(message.contains("no training images in"), "{message}");
        assert!(message.contains("train-images.idx3-ubyte.gz"), "{message}");

        for (name, bytes) in [
            ("train-images.idx3-ubyte", idx(&[1, 28, 28], &[7; 784])),
            ("train-labels-idx1-ubyte", idx(&[1], &[4])),
            ("t10k-images-idx3-ubyte", idx(&[1, 28, 28], &[7; 784])),
            // Not compressed, in spite of its name.
            ("t10k-labels.idx1-ubyte.gz", idx(&[1], &[4])),
        ] {
            fs::write(dir.path().join(name), bytes).expect("writing");
        }
        let data = DataSet::read(dir.path(), None).expect("a complete folder");
        assert_eq!(data.train.labels, [4]);
        assert_eq!(data.test.image(0), [7; 784]);
    }
}
