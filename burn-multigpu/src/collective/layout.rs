//! Which elements travel together: buckets, chunks and pieces, as pure arithmetic.
//!
//! Tensors of one dtype are laid end to end in *buckets* of a bounded size. Every bucket is cut into
//! as many *chunks* as there are members, and member `j` reduces chunk `j`. A *piece* is the part of
//! one tensor that lies in one chunk.

use crate::shard::shard_ranges;
use burn::tensor::DType;
use std::ops::Range;

/// A run of elements of one tensor; in a chunk, the pieces follow each other without gaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Position of the tensor in its bucket.
    pub(crate) tensor: usize,
    /// First element, counted in the flattened tensor.
    pub(crate) offset: usize,
    pub(crate) len: usize,
}

/// Tensors that are reduced together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bucket {
    pub(crate) dtype: DType,
    /// Positions of the tensors in the list that the plan was made for.
    pub(crate) tensors: Vec<usize>,
    /// For each chunk its pieces; `Piece::tensor` counts within `tensors`.
    pub(crate) chunks: Vec<Vec<Piece>>,
}

impl Bucket {
    /// Lays tensors of the given lengths end to end and cuts them at `cuts`.
    pub(crate) fn new(
        dtype: DType,
        tensors: Vec<usize>,
        lens: &[usize],
        cuts: &[Range<usize>],
    ) -> Self {
        let bounds = crate::shard::ranges(lens);
        let chunks = cuts
            .iter()
            .map(|cut| {
                bounds
                    .iter()
                    .enumerate()
                    .filter_map(|(tensor, bound)| {
                        let start = bound.start.max(cut.start);
                        let end = bound.end.min(cut.end);
                        (start < end).then(|| Piece {
                            tensor,
                            offset: start - bound.start,
                            len: end - start,
                        })
                    })
                    .collect()
            })
            .collect();
        Self {
            dtype,
            tensors,
            chunks,
        }
    }

    /// Number of elements in a chunk.
    #[cfg(test)]
    pub(crate) fn chunk_len(&self, chunk: usize) -> usize {
        self.chunks[chunk].iter().map(|piece| piece.len).sum()
    }
}

/// How a list of tensors is reduced over a number of members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) buckets: Vec<Bucket>,
}

impl Plan {
    /// Every member gets an equal share of each bucket, whatever tensors lie in it.
    pub(crate) fn new(tensors: &[(DType, usize)], members: usize, bucket_bytes: usize) -> Self {
        let bucket = |dtype, indices: Vec<usize>| {
            let lens: Vec<usize> = indices.iter().map(|index| tensors[*index].1).collect();
            let cuts = shard_ranges(lens.iter().sum(), members);
            Bucket::new(dtype, indices, &lens, &cuts)
        };
        Self {
            buckets: fill(tensors, bucket_bytes, bucket),
        }
    }

    /// Tensor `i` belongs whole to member `owners[i]`.
    pub(crate) fn owned(
        tensors: &[(DType, usize)],
        members: usize,
        owners: &[usize],
        bucket_bytes: usize,
    ) -> Self {
        let bucket = |dtype, indices: Vec<usize>| {
            let mut chunks: Vec<Vec<Piece>> = (0..members).map(|_| Vec::new()).collect();
            for (tensor, index) in indices.iter().enumerate() {
                chunks[owners[*index]].push(Piece {
                    tensor,
                    offset: 0,
                    len: tensors[*index].1,
                });
            }
            Bucket {
                dtype,
                tensors: indices,
                chunks,
            }
        };
        Self {
            buckets: fill(tensors, bucket_bytes, bucket),
        }
    }
}

/// Fills buckets with tensors in their order, a dtype at a time, up to `bucket_bytes`; a tensor
/// larger than that is a bucket of its own.
fn fill(
    tensors: &[(DType, usize)],
    bucket_bytes: usize,
    bucket: impl Fn(DType, Vec<usize>) -> Bucket,
) -> Vec<Bucket> {
    let mut dtypes: Vec<DType> = Vec::new();
    for (dtype, _) in tensors {
        if !dtypes.contains(dtype) {
            dtypes.push(*dtype);
        }
    }

    let mut buckets = Vec::new();
    for dtype in dtypes {
        let mut open: Vec<usize> = Vec::new();
        let mut bytes = 0;
        for (index, (_, len)) in tensors.iter().enumerate().filter(|(_, t)| t.0 == dtype) {
            let size = len * dtype.size();
            if !open.is_empty() && bytes + size > bucket_bytes {
                buckets.push(bucket(dtype, std::mem::take(&mut open)));
                bytes = 0;
            }
            open.push(index);
            bytes += size;
        }
        if !open.is_empty() {
            buckets.push(bucket(dtype, open));
        }
    }
    buckets
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn tensors_fill_buckets_in_order_by_dtype() {
        let tensors = [
            (DType::F32, 10),
            (DType::F16, 8),
            (DType::F32, 10),
            (DType::F32, 100),
            (DType::F32, 1),
        ];
        let plan = Plan::new(&tensors, 2, 80);
        let members: Vec<_> = plan.buckets.iter().map(|b| b.tensors.clone()).collect();
        assert_eq!(members, [vec![0, 2], vec![3], vec![4], vec![1]]);
        assert_eq!(
            plan.buckets[0].chunks[1],
            [Piece {
                tensor: 1,
                offset: 0,
                len: 10
            }]
        );
    }

    #[test]
    fn an_owned_tensor_lies_whole_in_its_owners_chunk() {
        let tensors = [(DType::F32, 10), (DType::F32, 4), (DType::F64, 3)];
        let plan = Plan::owned(&tensors, 3, &[2, 0, 2], 1000);
        assert_eq!(plan.buckets.len(), 2);
        let lens = |bucket: &Bucket| [0, 1, 2].map(|chunk| bucket.chunk_len(chunk));
        assert_eq!(lens(&plan.buckets[0]), [4, 0, 10]);
        assert_eq!(lens(&plan.buckets[1]), [0, 0, 3]);
    }

    proptest! {
        #[test]
        fn every_element_travels_once(
            lens in prop::collection::vec(0usize..50, 0..12),
            members in 1usize..6,
            cap in 1usize..400,
        ) {
            let tensors: Vec<_> = lens
                .iter()
                .enumerate()
                .map(|(i, len)| (if i % 3 == 0 { DType::F64 } else { DType::F32 }, *len))
                .collect();
            let plan = Plan::new(&tensors, members, cap);
            let mut seen: Vec<Vec<u8>> = lens.iter().map(|len| vec![0; *len]).collect();
            for bucket in &plan.buckets {
                prop_assert_eq!(bucket.chunks.len(), members);
                let total: usize = (0..members).map(|chunk| bucket.chunk_len(chunk)).sum();
                for chunk in 0..members {
                    prop_assert!(bucket.chunk_len(chunk) <= total.div_ceil(members));
                    for piece in &bucket.chunks[chunk] {
                        let tensor = bucket.tensors[piece.tensor];
                        prop_assert_eq!(tensors[tensor].0, bucket.dtype);
                        for count in &mut seen[tensor][piece.offset..][..piece.len] {
                            *count += 1;
                        }
                    }
                }
            }
            prop_assert!(seen.iter().flatten().all(|count| *count == 1));
        }
    }
}
