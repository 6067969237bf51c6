//! Batches that stay on the host until their parts are known.

use crate::collective::Transfer;
use crate::data_parallel::Batch;
use burn::data::dataloader::batcher::Batcher;
use burn::tensor::backend::Backend;
use std::fmt;
use std::sync::Arc;

/// A batch of host items that becomes tensors part by part, each on the device of its member.
///
/// A batch of tensors is uploaded to the first member and its parts are copied from there, which goes
/// through host memory where devices cannot reach each other. With this as the input of a model,
/// every item is uploaded once, to where it is needed, ahead of the step:
///
/// ```
/// # use burn::data::dataloader::{DataLoaderBuilder, batcher::Batcher};
/// # use burn::data::dataset::InMemDataset;
/// # use burn::backend::Flex;
/// # use burn::tensor::{Tensor, TensorData, backend::Backend};
/// # use burn_multigpu::train::{HostBatch, HostBatcher};
/// #[derive(Clone)]
/// struct Stack; // an ordinary batcher
/// impl<B: Backend> Batcher<B, f32, Tensor<B, 1>> for Stack {
///     fn batch(&self, items: Vec<f32>, device: &B::Device) -> Tensor<B, 1> {
///         let count = items.len();
///         Tensor::from_data(TensorData::new(items, [count]), device)
///     }
/// }
///
/// let loader = DataLoaderBuilder::<Flex, f32, HostBatch<Flex, f32, Tensor<Flex, 1>>>::new(
///     HostBatcher::new(Stack), // was: Stack
/// )
/// .batch_size(2)
/// .build(InMemDataset::new(vec![1.0, 2.0, 3.0]));
/// // In the model's step, whose `Input` is the `HostBatch`:
/// let batch = loader.iter().next().unwrap();
/// let tensor = batch.into_batch(&Default::default());
/// assert_eq!(tensor.dims(), [2]);
/// ```
pub struct HostBatch<B: Backend, I, O> {
    len: usize,
    state: State<B, I, O>,
}

enum State<B: Backend, I, O> {
    Items(Vec<I>, Arc<dyn Batcher<B, I, O>>),
    Batch(O),
}

impl<B: Backend, I, O> HostBatch<B, I, O> {
    /// The batch on a device: the member's, if it is made already, and else on this one.
    pub fn into_batch(self, device: &B::Device) -> O {
        match self.state {
            State::Items(items, batcher) => batcher.batch(items, device),
            State::Batch(batch) => batch,
        }
    }
}

impl<B: Backend, I: Clone, O: Clone> Clone for HostBatch<B, I, O> {
    fn clone(&self) -> Self {
        let state = match &self.state {
            State::Items(items, batcher) => State::Items(items.clone(), batcher.clone()),
            State::Batch(batch) => State::Batch(batch.clone()),
        };
        Self {
            len: self.len,
            state,
        }
    }
}

impl<B: Backend, I, O> fmt::Debug for HostBatch<B, I, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HostBatch({} items)", self.len)
    }
}

impl<B, I, O> Batch<B> for HostBatch<B, I, O>
where
    B: Backend,
    I: Send + 'static,
    O: Send + 'static,
{
    fn items(&self) -> usize {
        self.len
    }

    /// # Panics
    ///
    /// After the batch was taken to a device, which the mesh does with parts alone.
    fn split(self, sizes: &[usize]) -> Vec<Self> {
        let State::Items(items, batcher) = self.state else {
            panic!("a batch that is on a device already cannot be split on the host");
        };
        Batch::<B>::split(items, sizes)
            .into_iter()
            .map(|items| Self {
                len: items.len(),
                state: State::Items(items, batcher.clone()),
            })
            .collect()
    }

    fn to_device(self, device: &B::Device, _: Transfer) -> Self {
        Self {
            len: self.len,
            state: State::Batch(self.into_batch(device)),
        }
    }
}

/// Leaves the work of another batcher to the devices that the parts go to; see [`HostBatch`].
///
/// ```
/// # use burn::data::dataloader::batcher::Batcher;
/// # use burn::backend::Flex;
/// # use burn::tensor::{Tensor, TensorData, backend::Backend};
/// use burn_multigpu::Batch;
/// use burn_multigpu::train::{HostBatch, HostBatcher};
///
/// # #[derive(Clone)]
/// # struct Stack;
/// # impl<B: Backend> Batcher<B, f32, Tensor<B, 1>> for Stack {
/// #     fn batch(&self, items: Vec<f32>, device: &B::Device) -> Tensor<B, 1> {
/// #         let count = items.len();
/// #         Tensor::from_data(TensorData::new(items, [count]), device)
/// #     }
/// # }
/// let batcher = HostBatcher::<Flex, f32, Tensor<Flex, 1>>::new(Stack);
/// let batch: HostBatch<_, _, _> = batcher.batch(vec![1.0, 2.0, 3.0], &Default::default());
/// let parts = batch.split(&[2, 1]); // numbers still
/// assert_eq!(parts[1].items(), 1);
/// ```
pub struct HostBatcher<B: Backend, I, O>(Arc<dyn Batcher<B, I, O>>);

impl<B: Backend, I, O> HostBatcher<B, I, O> {
    /// Around the batcher that makes the tensors.
    pub fn new(batcher: impl Batcher<B, I, O> + 'static) -> Self {
        Self(Arc::new(batcher))
    }
}

impl<B: Backend, I, O> Clone for HostBatcher<B, I, O> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<B: Backend, I, O> fmt::Debug for HostBatcher<B, I, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HostBatcher")
    }
}

impl<B: Backend, I, O> Batcher<B, I, HostBatch<B, I, O>> for HostBatcher<B, I, O> {
    fn batch(&self, items: Vec<I>, _: &B::Device) -> HostBatch<B, I, O> {
        HostBatch {
            len: items.len(),
            state: State::Items(items, self.0.clone()),
        }
    }
}
