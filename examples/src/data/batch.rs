//! From digits to tensors: the order of an epoch, its batches, and their tensors on a device.

use std::sync::Arc;

use burn::prelude::Backend;
use burn::tensor::{DType, Int, Tensor, TensorData};
use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;

use burn_multigpu::Batch;
use burn_multigpu::collective::Transfer;

use super::Digits;

/// Mean and standard deviation of the pixels of MNIST's training images, as everybody uses them.
const MEAN: f32 = 0.1307;
const DEVIATION: f32 = 0.3081;

/// The order in which an epoch goes through `len` items.
///
/// It depends on the seed and the epoch alone and not on what was drawn before, so that a resumed run
/// goes on in the order that the interrupted one was in.
pub fn epoch_order(len: usize, seed: u64, epoch: usize) -> Vec<u32> {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    key[8..16].copy_from_slice(&(epoch as u64).to_le_bytes());
    let mut order: Vec<u32> = (0..len as u32).collect();
    order.shuffle(&mut StdRng::from_seed(key));
    order
}

/// The batches of an epoch, in order. The last one holds what is left and is trained on as well.
pub fn batches(
    digits: &Arc<Digits>,
    order: &[u32],
    batch_size: usize,
) -> impl ExactSizeIterator<Item = DigitItems> {
    order
        .chunks(batch_size)
        .map(|indices| DigitItems::new(Arc::clone(digits), indices.to_vec()))
}

/// Some of the digits, still on the host: what the mesh splits.
///
/// Splitting it splits a list of indices, and each replica turns its own part into tensors on its
/// own device, so that every pixel is sent once, to where it is needed.
#[derive(Debug, Clone)]
pub struct DigitItems {
    digits: Arc<Digits>,
    indices: Vec<u32>,
}

impl DigitItems {
    /// The items with these indices.
    pub fn new(digits: Arc<Digits>, indices: Vec<u32>) -> Self {
        Self { digits, indices }
    }

    /// How many items there are.
    pub fn len(&self) -> usize {
        self.indices.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.indices.is_empty()
    }

    /// The same items in another order, which depends on the key alone.
    pub fn permuted(mut self, key: u64) -> Self {
        self.indices.shuffle(&mut StdRng::seed_from_u64(key));
        self
    }

    /// Every item twice. Means over the items are the same, and so is what a batch norm sees.
    pub fn twice(mut self) -> Self {
        self.indices.extend_from_within(..);
        self
    }

    /// The digits of the items.
    pub fn labels(&self) -> impl Iterator<Item = u8> {
        self.indices
            .iter()
            .map(|&index| self.digits.labels[index as usize])
    }

    /// The items as tensors.
    pub fn to_batch<B: Backend>(&self, device: &B::Device, dtype: DType) -> DigitBatch<B> {
        let labels: Vec<i32> = self.labels().map(i32::from).collect();
        DigitBatch {
            images: self.to_images(device, dtype),
            targets: Tensor::from_data(TensorData::new(labels, [self.len()]), device),
        }
    }

    /// The images alone, `[items, rows, columns]`, normalised.
    pub fn to_images<B: Backend>(&self, device: &B::Device, dtype: DType) -> Tensor<B, 3> {
        let pixels: Vec<f32> = self
            .indices
            .iter()
            .flat_map(|&index| self.digits.image(index as usize))
            .map(|&pixel| (f32::from(pixel) / 255.0 - MEAN) / DEVIATION)
            .collect();
        let shape = [self.len(), self.digits.rows, self.digits.cols];
        Tensor::from_data(TensorData::new(pixels, shape), (device, dtype))
    }
}

impl<B: Backend> Batch<B> for DigitItems {
    fn items(&self) -> usize {
        self.len()
    }

    fn split(self, sizes: &[usize]) -> Vec<Self> {
        let mut rest = self.indices.as_slice();
        sizes
            .iter()
            .map(|&size| {
                let (part, after) = rest.split_at(size);
                rest = after;
                Self::new(Arc::clone(&self.digits), part.to_vec())
            })
            .collect()
    }

    /// Nothing moves: the step makes its tensors on its own device.
    fn to_device(self, _device: &B::Device, _transfer: Transfer) -> Self {
        self
    }
}

/// A batch on a device.
#[derive(Debug, Clone)]
pub struct DigitBatch<B: Backend> {
    /// The images, `[items, rows, columns]`, normalised.
    pub images: Tensor<B, 3>,
    /// The digits that they show.
    pub targets: Tensor<B, 1, Int>,
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::*;
    use burn::backend::Flex;

    fn digits(count: usize) -> Arc<Digits> {
        Arc::new(Digits {
            images: (0..count).flat_map(|i| [i as u8; 784]).collect(),
            labels: (0..count).map(|i| (i % 10) as u8).collect(),
            rows: 28,
            cols: 28,
        })
    }

    #[test]
    fn an_order_is_a_permutation_that_the_seed_and_the_epoch_decide() {
        let order = epoch_order(1000, 42, 3);
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..1000).collect::<Vec<_>>());
        assert_eq!(order, epoch_order(1000, 42, 3));
        assert_ne!(order, epoch_order(1000, 42, 4));
        assert_ne!(order, epoch_order(1000, 43, 3));
        assert_ne!(epoch_order(1000, 1, 2), epoch_order(1000, 2, 1));
    }

    #[test]
    fn every_item_is_in_one_batch() {
        let digits = digits(23);
        let order = epoch_order(23, 1, 0);
        let sizes: Vec<usize> = batches(&digits, &order, 5)
            .map(|batch| batch.len())
            .collect();
        assert_eq!(sizes, [5, 5, 5, 5, 3]);
        let seen: Vec<u32> = batches(&digits, &order, 5)
            .flat_map(|batch| batch.indices)
            .collect();
        assert_eq!(seen, order);
    }

    #[test]
    fn parts_keep_the_order_and_may_be_empty() {
        let items = DigitItems::new(digits(10), vec![7, 3, 9, 1]);
        let parts = Batch::<Flex>::split(items, &[2, 0, 1, 1]);
        let indices: Vec<Vec<u32>> = parts.into_iter().map(|part| part.indices).collect();
        assert_eq!(indices, [vec![7, 3], vec![], vec![9], vec![1]]);
    }

    #[test]
    fn a_permutation_keeps_the_items() {
        let items = DigitItems::new(digits(50), (0..50).collect());
        let mut permuted = items.clone().permuted(9).indices;
        assert_ne!(permuted, items.indices);
        permuted.sort_unstable();
        assert_eq!(permuted, items.indices);
    }

    #[test]
    fn twice_is_every_item_two_times() {
        let items = DigitItems::new(digits(3), vec![2, 0, 1]);
        assert_eq!(items.twice().indices, [2, 0, 1, 2, 0, 1]);
    }

    #[test]
    fn pixels_are_normalised_in_the_dtype_asked_for() {
        let device = Default::default();
        let items = DigitItems::new(digits(10), vec![4, 2]);
        for dtype in [DType::F32, DType::F64] {
            let batch: DigitBatch<Flex> = items.to_batch(&device, dtype);
            assert_eq!(batch.images.dtype(), dtype);
            assert_eq!(batch.images.dims(), [2, 28, 28]);
            let pixels = batch.images.into_data().convert::<f32>();
            let pixels = pixels.as_slice::<f32>().expect("converted");
            assert_eq!(pixels[784], (2.0 / 255.0 - MEAN) / DEVIATION);
            let targets: Vec<i64> = batch.targets.into_data().iter().collect();
            assert_eq!(targets, [4, 2]);
        }
    }
}
