//! How batches are cut, moved and joined.

use crate::collective::Transfer;
use burn::tensor::backend::Backend;
use burn::tensor::{BasicOps, Tensor, TensorKind};

/// A batch that can be cut into parts, one for each member of a mesh.
///
/// Tensors are cut along their first dimension; pairs, triples and quadruples part by part; a
/// `Vec<T>` of host items is cut as it is and uploads nothing, so that the step's closure builds its
/// tensors on its own device, each part once.
pub trait Batch<B: Backend>: Send + Sized + 'static {
    /// Number of items, which the parts' weights in the mean come from.
    fn items(&self) -> usize;

    /// The numbers of items of all that the batch consists of, which must be equal.
    fn lengths(&self) -> Vec<usize> {
        vec![self.items()]
    }

    /// Cuts the batch into consecutive parts. The sizes are above zero and add up to
    /// [`items`](Batch::items).
    fn split(self, sizes: &[usize]) -> Vec<Self>;

    /// Takes a part to a member's device; runs on that member's thread.
    fn to_device(self, device: &B::Device, transfer: Transfer) -> Self;
}

/// The output of a forward pass, whose parts are joined in the order of the members.
pub trait Gather<B: Backend>: Send + Sized + 'static {
    /// Takes a part to the device where the parts are joined.
    fn to_device(self, device: &B::Device, transfer: Transfer) -> Self;

    /// Joins the parts, of which there is at least one.
    fn join(parts: Vec<Self>) -> Self;
}

impl<B: Backend, const D: usize, K> Batch<B> for Tensor<B, D, K>
where
    K: BasicOps<B> + 'static,
    <K as TensorKind<B>>::Primitive: Send + 'static,
{
    fn items(&self) -> usize {
        self.dims()[0]
    }

    fn split(self, sizes: &[usize]) -> Vec<Self> {
        crate::shard::ranges(sizes)
            .into_iter()
            .map(|range| self.clone().slice_dim(0, range))
            .collect()
    }

    fn to_device(self, device: &B::Device, transfer: Transfer) -> Self {
        transfer.tensor(self, device)
    }
}

impl<B: Backend, const D: usize, K> Gather<B> for Tensor<B, D, K>
where
    K: BasicOps<B> + 'static,
    <K as TensorKind<B>>::Primitive: Send + 'static,
{
    fn to_device(self, device: &B::Device, transfer: Transfer) -> Self {
        transfer.tensor(self, device)
    }

    fn join(parts: Vec<Self>) -> Self {
        Tensor::cat(parts, 0)
    }
}

impl<B: Backend, T: Send + 'static> Batch<B> for Vec<T> {
    fn items(&self) -> usize {
        self.len()
    }

    fn split(self, sizes: &[usize]) -> Vec<Self> {
        let mut items = self.into_iter();
        sizes
            .iter()
            .map(|size| items.by_ref().take(*size).collect())
            .collect()
    }

    fn to_device(self, _device: &B::Device, _transfer: Transfer) -> Self {
        self
    }
}

impl<B: Backend, T: Send + 'static> Gather<B> for Vec<T> {
    fn to_device(self, _device: &B::Device, _transfer: Transfer) -> Self {
        self
    }

    fn join(parts: Vec<Self>) -> Self {
        parts.into_iter().flatten().collect()
    }
}

macro_rules! for_tuples {
    ($($name:ident $index:tt $parts:ident),+) => {
        impl<BK: Backend, $($name: Batch<BK>),+> Batch<BK> for ($($name,)+) {
            /// Of the first element; the others have as many.
            fn items(&self) -> usize {
                self.0.items()
            }

            fn lengths(&self) -> Vec<usize> {
                let mut lengths = Vec::new();
                $(lengths.extend(self.$index.lengths());)+
                lengths
            }

            fn split(self, sizes: &[usize]) -> Vec<Self> {
                $(let mut $parts = self.$index.split(sizes).into_iter();)+
                std::iter::from_fn(|| Some(($($parts.next()?,)+))).collect()
            }

            fn to_device(self, device: &BK::Device, transfer: Transfer) -> Self {
                ($(self.$index.to_device(device, transfer),)+)
            }
        }

        impl<BK: Backend, $($name: Gather<BK>),+> Gather<BK> for ($($name,)+) {
            fn to_device(self, device: &BK::Device, transfer: Transfer) -> Self {
                ($(self.$index.to_device(device, transfer),)+)
            }

            fn join(parts: Vec<Self>) -> Self {
                $(let mut $parts = Vec::with_capacity(parts.len());)+
                for part in parts {
                    $($parts.push(part.$index);)+
                }
                ($($name::join($parts),)+)
            }
        }
    };
}

for_tuples!(P 0 first, Q 1 second);
for_tuples!(P 0 first, Q 1 second, R 2 third);
for_tuples!(P 0 first, Q 1 second, R 2 third, S 3 fourth);
