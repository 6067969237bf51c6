//! How batches are cut, moved and joined.

use crate::collective::Transfer;
use burn::tensor::backend::Backend;
use burn::tensor::{BasicOps, Tensor, TensorKind};

/// A batch that can be cut into parts, one for each member of a mesh.
///
/// Tensors are cut along their first dimension; pairs, triples and quadruples part by part; a
/// `Vec<T>` of host items is cut as it is and uploads nothing, so that the step's closure builds its
/// tensors on its own device, each part once.
///
/// ```
/// use burn::backend::Flex;
/// use burn::tensor::{Tensor, backend::Backend};
/// use burn_multigpu::Batch;
/// use burn_multigpu::collective::Transfer;
///
/// /// Sentences of different lengths, padded, whose loss is a mean over words.
/// struct Sentences<B: Backend> {
///     words: Tensor<B, 2>,
///     lengths: Vec<usize>,
/// }
///
/// impl<B: Backend> Batch<B> for Sentences<B> {
///     fn items(&self) -> usize {
///         self.lengths.len()
///     }
///     fn weight(&self) -> f64 {
///         self.lengths.iter().sum::<usize>() as f64
///     }
///     fn split(self, sizes: &[usize]) -> Vec<Self> {
///         let words = Batch::<B>::split(self.words, sizes);
///         let lengths = Batch::<B>::split(self.lengths, sizes);
///         let parts = words.into_iter().zip(lengths);
///         parts.map(|(words, lengths)| Self { words, lengths }).collect()
///     }
///     fn to_device(self, device: &B::Device, transfer: Transfer) -> Self {
///         let words = Batch::<B>::to_device(self.words, device, transfer);
///         Self { words, ..self }
///     }
/// }
///
/// let words = Tensor::<Flex, 2>::zeros([3, 9], &Default::default());
/// let parts = Sentences { words, lengths: vec![4, 9, 2] }.split(&[2, 1]);
/// assert_eq!((parts[0].items(), parts[0].weight()), (2, 13.0));
/// ```
pub trait Batch<B: Backend>: Send + Sized + 'static {
    /// Number of items, which the parts' weights in the mean come from.
    fn items(&self) -> usize;

    /// The numbers of items of all that the batch consists of, which must be equal.
    fn lengths(&self) -> Vec<usize> {
        vec![self.items()]
    }

    /// How much the batch counts in a mean over several: its items, unless the loss is a mean over
    /// something else, such as tokens.
    fn weight(&self) -> f64 {
        self.items() as f64
    }

    /// Cuts the batch into consecutive parts. The sizes are above zero and add up to
    /// [`items`](Batch::items).
    fn split(self, sizes: &[usize]) -> Vec<Self>;

    /// Takes a part to a member's device. [`DataParallel`](super::DataParallel) does it on that
    /// member's thread, and the training strategy ahead of the step, on the thread that loads.
    fn to_device(self, device: &B::Device, transfer: Transfer) -> Self;
}

/// The output of a forward pass, whose parts are joined in the order of the members.
///
/// A struct of tensors gets it by [`impl_gather!`](crate::impl_gather).
///
/// ```
/// use burn::backend::Flex;
/// use burn::tensor::Tensor;
/// use burn_multigpu::Gather;
///
/// // Tensors are put one after the other, and so are the elements of tuples.
/// let device = Default::default();
/// let part = |rows| (Tensor::<Flex, 2>::zeros([rows, 3], &device), vec![rows]);
/// let (scores, rows) = Gather::<Flex>::join(vec![part(2), part(1)], &[2.0, 1.0]);
/// assert_eq!((scores.dims(), rows), ([3, 3], vec![2, 1]));
/// ```
pub trait Gather<B: Backend>: Send + Sized + 'static {
    /// Takes a part to the device where the parts are joined.
    fn to_device(self, device: &B::Device, transfer: Transfer) -> Self;

    /// Joins the parts, of which there is at least one.
    ///
    /// `weights` says how much each part counts in a mean over all ([`Batch::weight`]); means are
    /// joined by [`join_means`].
    fn join(parts: Vec<Self>, weights: &[f64]) -> Self;
}

/// Joins what is a mean over the items of each part, such as a loss of shape `[1]`, to the mean over
/// all items. Parts of another length hold a value for each item, and are put one after the other.
///
/// ```
/// use burn::backend::Flex;
/// use burn::tensor::Tensor;
/// use burn_multigpu::join_means;
///
/// let device = Default::default();
/// let losses = [3.0, 0.0].map(|loss| Tensor::<Flex, 1>::from_floats([loss], &device));
/// assert_eq!(join_means(losses.to_vec(), &[2.0, 1.0]).into_scalar(), 2.0);
/// ```
pub fn join_means<B: Backend>(parts: Vec<Tensor<B, 1>>, weights: &[f64]) -> Tensor<B, 1> {
    if parts.len() == 1 || parts.iter().any(|part| part.dims()[0] != 1) {
        return Tensor::cat(parts, 0);
    }
    let total: f64 = weights.iter().sum();
    // A part that counts for nothing may be NaN, as a mean over no token is.
    let counted = parts.iter().zip(weights).filter(|(_, w)| **w != 0.0);
    counted
        .map(|(part, weight)| part.clone() * (weight / total))
        .reduce(|sum, part| sum + part)
        .unwrap_or_else(|| parts[0].clone())
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

    fn join(parts: Vec<Self>, _weights: &[f64]) -> Self {
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

    fn join(parts: Vec<Self>, _weights: &[f64]) -> Self {
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

            /// Of the first element.
            fn weight(&self) -> f64 {
                self.0.weight()
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

            fn join(parts: Vec<Self>, weights: &[f64]) -> Self {
                $(let mut $parts = Vec::with_capacity(parts.len());)+
                for part in parts {
                    $($parts.push(part.$index);)+
                }
                ($($name::join($parts, weights),)+)
            }
        }
    };
}

for_tuples!(P 0 first, Q 1 second);
for_tuples!(P 0 first, Q 1 second, R 2 third);
for_tuples!(P 0 first, Q 1 second, R 2 third, S 3 fourth);

/// Implements [`Batch`] for a struct of tensors (or of whatever else is a batch) that is generic over
/// its backend alone. The first field says how many items there are.
///
/// ```
/// use burn::tensor::{Int, Tensor, backend::Backend};
///
/// #[derive(Clone, Debug)]
/// struct DigitBatch<B: Backend> {
///     images: Tensor<B, 3>,
///     targets: Tensor<B, 1, Int>,
/// }
/// burn_multigpu::impl_batch!(DigitBatch { images, targets });
/// ```
#[macro_export]
macro_rules! impl_batch {
    ($name:ident { $first:ident $(, $field:ident)* $(,)? }) => {
        impl<B: $crate::__private::Backend> $crate::Batch<B> for $name<B> {
            fn items(&self) -> usize {
                $crate::Batch::<B>::items(&self.$first)
            }

            fn lengths(&self) -> ::std::vec::Vec<usize> {
                let mut lengths = $crate::Batch::<B>::lengths(&self.$first);
                $(lengths.extend($crate::Batch::<B>::lengths(&self.$field));)*
                lengths
            }

            fn split(self, sizes: &[usize]) -> ::std::vec::Vec<Self> {
                let mut $first = $crate::Batch::<B>::split(self.$first, sizes).into_iter();
                $(let mut $field = $crate::Batch::<B>::split(self.$field, sizes).into_iter();)*
                ::std::iter::from_fn(|| {
                    ::std::option::Option::Some(Self {
                        $first: $first.next()?,
                        $($field: $field.next()?,)*
                    })
                })
                .collect()
            }

            fn to_device(
                self,
                device: &B::Device,
                transfer: $crate::collective::Transfer,
            ) -> Self {
                Self {
                    $first: $crate::Batch::<B>::to_device(self.$first, device, transfer),
                    $($field: $crate::Batch::<B>::to_device(self.$field, device, transfer),)*
                }
            }
        }
    };
}

/// Implements [`Gather`] for a struct of outputs that is generic over its backend alone. The fields
/// after `mean` are means over the items, of shape `[1]`, and are joined by [`join_means`].
///
/// ```
/// use burn::tensor::{Tensor, backend::Backend};
///
/// struct Scored<B: Backend> {
///     loss: Tensor<B, 1>,
///     scores: Tensor<B, 2>,
/// }
/// burn_multigpu::impl_gather!(Scored { scores; mean loss });
/// ```
#[macro_export]
macro_rules! impl_gather {
    ($name:ident { $($field:ident),* $(,)? $(; mean $($mean:ident),+ $(,)?)? }) => {
        impl<B: $crate::__private::Backend> $crate::Gather<B> for $name<B> {
            fn to_device(
                self,
                device: &B::Device,
                transfer: $crate::collective::Transfer,
            ) -> Self {
                Self {
                    $($field: $crate::Gather::<B>::to_device(self.$field, device, transfer),)*
                    $($($mean: $crate::Gather::<B>::to_device(self.$mean, device, transfer),)+)?
                }
            }

            fn join(parts: ::std::vec::Vec<Self>, weights: &[f64]) -> Self {
                $(let mut $field = ::std::vec::Vec::with_capacity(parts.len());)*
                $($(let mut $mean = ::std::vec::Vec::with_capacity(parts.len());)+)?
                for part in parts {
                    $($field.push(part.$field);)*
                    $($($mean.push(part.$mean);)+)?
                }
                Self {
                    $($field: $crate::Gather::<B>::join($field, weights),)*
                    $($($mean: $crate::join_means::<B>($mean, weights),)+)?
                }
            }
        }
    };
}
