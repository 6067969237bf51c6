//! The IDX format of the MNIST files: a magic number (0, 0, element type, number of dimensions), one
//! big-endian `u32` per dimension, then the elements.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;

use crate::DataError;

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
/// Unsigned bytes (0x08) in three dimensions: items, rows, columns.
const IMAGES_MAGIC: u32 = 0x0000_0803;
/// Unsigned bytes in one dimension: items.
const LABELS_MAGIC: u32 = 0x0000_0801;

/// The contents of an IDX file of unsigned bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdxFile {
    /// The sizes of the dimensions, the number of items first.
    pub dims: Vec<usize>,
    /// The elements, the last dimension varying fastest.
    pub elements: Vec<u8>,
}

/// Reads a file of images: dimensions `[items, rows, columns]`.
///
/// # Errors
///
/// [`DataError`] when the file cannot be read, or is not what its header says.
pub fn read_images(path: &Path) -> Result<IdxFile, DataError> {
    read(path, "images", IMAGES_MAGIC)
}

/// Reads a file of labels: dimensions `[items]`.
///
/// # Errors
///
/// [`DataError`] when the file cannot be read, or is not what its header says.
pub fn read_labels(path: &Path) -> Result<IdxFile, DataError> {
    read(path, "labels", LABELS_MAGIC)
}

fn read(path: &Path, what: &'static str, magic: u32) -> Result<IdxFile, DataError> {
    let bytes = fs::read(path).map_err(|source| DataError::Read {
        path: path.to_owned(),
        source,
    })?;
    parse(path, what, magic, decompress(path, bytes)?)
}

/// Whether a file is compressed is told by its first bytes, since names lie: browsers and download
/// tools decompress a file and keep its `.gz`.
fn decompress(path: &Path, bytes: Vec<u8>) -> Result<Vec<u8>, DataError> {
    if !bytes.starts_with(&GZIP_MAGIC) {
        return Ok(bytes);
    }
    let mut plain = Vec::new();
    // The multi-member decoder goes on to the end of the file, so that bytes after the stream are
    // noticed.
    MultiGzDecoder::new(bytes.as_slice())
        .read_to_end(&mut plain)
        .map_err(|source| DataError::Gzip {
            path: path.to_owned(),
            source,
        })?;
    Ok(plain)
}

fn parse(
    path: &Path,
    what: &'static str,
    magic: u32,
    mut bytes: Vec<u8>,
) -> Result<IdxFile, DataError> {
    let path = || -> PathBuf { path.to_owned() };
    if word(&bytes, 0) != Some(magic) {
        return Err(DataError::WrongMagic {
            path: path(),
            what,
            expected: magic,
            found: first_bytes(&bytes),
        });
    }
    // The number of dimensions is the last byte of the magic number.
    let rank = (magic & 0xff) as usize;
    let header = 4 + 4 * rank;
    let Some(dims) = (1..=rank)
        .map(|i| word(&bytes, 4 * i).map(|dim| dim as usize))
        .collect::<Option<Vec<_>>>()
    else {
        return Err(DataError::Truncated {
            path: path(),
            expected: (header - 4) as u64,
            found: (bytes.len() - 4) as u64,
        });
    };
    // A damaged header can announce more than any address space holds.
    let expected = dims
        .iter()
        .fold(1u64, |product, &dim| product.saturating_mul(dim as u64));
    let found = (bytes.len() - header) as u64;
    if found < expected {
        return Err(DataError::Truncated {
            path: path(),
            expected,
            found,
        });
    }
    if found > expected {
        return Err(DataError::TrailingBytes {
            path: path(),
            expected,
            extra: found - expected,
        });
    }
    bytes.drain(..header);
    Ok(IdxFile {
        dims,
        elements: bytes,
    })
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let word = bytes.get(at..at + 4)?;
    Some(u32::from_be_bytes([word[0], word[1], word[2], word[3]]))
}

fn first_bytes(bytes: &[u8]) -> String {
    match word(bytes, 0) {
        Some(word) => format!("{word:#010x}"),
        None => format!("a file of {} bytes", bytes.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn images(items: u32, payload: usize) -> Vec<u8> {
        let mut bytes = IMAGES_MAGIC.to_be_bytes().to_vec();
        for dim in [items, 2, 3] {
            bytes.extend(dim.to_be_bytes());
        }
        bytes.extend((0..payload).map(|i| i as u8));
        bytes
    }

    fn check(bytes: Vec<u8>) -> Result<IdxFile, String> {
        let path = Path::new("some/file");
        decompress(path, bytes)
            .and_then(|bytes| parse(path, "images", IMAGES_MAGIC, bytes))
            .map_err(|error| error.to_string())
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        use std::io::Write;
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).expect("writing to memory");
        encoder.finish().expect("writing to memory")
    }

    #[test]
    fn reads_plain_and_compressed() {
        for bytes in [images(4, 24), gzip(&images(4, 24))] {
            let file = check(bytes).expect("a good file");
            assert_eq!(file.dims, [4, 2, 3]);
            assert_eq!(file.elements, (0..24).collect::<Vec<u8>>());
        }
    }

    #[test]
    fn says_what_is_wrong() {
        let with_garbage = [gzip(&images(4, 24)), vec![1, 2, 3]].concat();
        let cut_gzip = {
            let bytes = gzip(&images(4, 24));
            bytes[..bytes.len() - 10].to_vec()
        };
        for (bytes, expected) in [
            (
                images(4, 23),
                "truncated: its header announces 24 bytes after it, found 23",
            ),
            (images(4, 26), "2 bytes too many"),
            (
                images(4, 0)[..9].to_vec(),
                "truncated: its header announces 12 bytes after it, found 5",
            ),
            (images(u32::MAX, 24), "truncated"),
            (Vec::new(), "found a file of 0 bytes"),
            (b"<!DOCTYPE html>".to_vec(), "found 0x3c21444f"),
            (
                LABELS_MAGIC.to_be_bytes().to_vec(),
                "begins with 0x00000803, found 0x00000801",
            ),
            (with_garbage, "does not decompress"),
            (cut_gzip, "does not decompress"),
        ] {
            let message = check(bytes).expect_err("a bad file");
            assert!(message.contains(expected), "{message}");
            assert!(message.contains("some/file"), "{message}");
        }
    }
}
