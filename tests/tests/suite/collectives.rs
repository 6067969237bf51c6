//! Collectives on Flex, against plain sums.

use burn::backend::Flex;
use burn::tensor::{DType, Tensor, TensorData};
use burn_multigpu::collective::{
    ReduceOp, all_gather, all_gather_bucket, all_reduce, all_reduce_bucket, broadcast,
    broadcast_bucket, reduce_scatter, reduce_scatter_bucket,
};
use burn_multigpu::shard::shard_sizes;
use burn_multigpu::{Error, Mesh};
use burn_multigpu_tests::compare::values;
use proptest::prelude::*;

fn mesh(members: usize) -> Mesh<Flex> {
    Mesh::from_devices(vec![Default::default(); members]).unwrap()
}

fn tensor(elements: &[f32], rows: usize) -> Tensor<Flex, 2> {
    let columns = elements.len().checked_div(rows).unwrap_or(3);
    Tensor::from_data(
        TensorData::new(elements.to_vec(), [rows, columns]),
        &Default::default(),
    )
}

/// One tensor per member, with values that a float holds exactly, so that sums are exact.
fn tensors(members: usize, rows: usize, columns: usize) -> Vec<Tensor<Flex, 2>> {
    (0..members)
        .map(|m| {
            let elements: Vec<f32> = (0..rows * columns)
                .map(|i| (i * 3 + m * 5) as f32)
                .collect();
            Tensor::from_data(
                TensorData::new(elements, [rows, columns]),
                &Default::default(),
            )
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn all_reduce_is_the_weighted_sum_everywhere(
        members in 1usize..6,
        rows in 1usize..7,
        columns in 1usize..9,
        weights in prop::collection::vec(0.1f64..10.0, 5),
    ) {
        let mesh = mesh(members);
        let weights = weights[..members].to_vec();
        let total: f64 = weights.iter().sum();
        for (op, factors) in [
            (ReduceOp::Sum, vec![1.0; members]),
            (ReduceOp::Mean, vec![1.0 / members as f64; members]),
            (ReduceOp::WeightedMean(weights.clone()), weights.iter().map(|w| w / total).collect()),
        ] {
            let inputs = tensors(members, rows, columns);
            let expected: Vec<f64> = (0..rows * columns)
                .map(|i| (0..members).map(|m| factors[m] * (i * 3 + m * 5) as f64).sum())
                .collect();
            let reduced = all_reduce(&mesh, inputs, &op).unwrap();
            prop_assert_eq!(reduced.len(), members);
            let bits = reduced[0].to_data();
            for tensor in reduced {
                prop_assert_eq!(&tensor.to_data(), &bits);
                prop_assert_eq!(tensor.dims(), [rows, columns]);
                let scale = expected.iter().fold(1.0f64, |a, b| a.max(b.abs()));
                for (found, expected) in values(tensor).iter().zip(&expected) {
                    prop_assert!((found - expected).abs() <= 1e-6 * scale, "{} {}", found, expected);
                }
            }
        }
    }

    #[test]
    fn scatter_then_gather_is_all_reduce(members in 1usize..6, rows in 1usize..9, columns in 1usize..5) {
        let mesh = mesh(members);
        let parts = reduce_scatter(&mesh, tensors(members, rows, columns), &ReduceOp::Sum).unwrap();
        let sizes: Vec<usize> = parts.iter().map(|part| part.dims()[0]).collect();
        prop_assert_eq!(sizes, shard_sizes(rows, members));
        let gathered = all_gather(&mesh, parts).unwrap();
        let reduced = all_reduce(&mesh, tensors(members, rows, columns), &ReduceOp::Sum).unwrap();
        for (gathered, reduced) in gathered.into_iter().zip(reduced) {
            prop_assert_eq!(gathered.to_data(), reduced.to_data());
        }
    }
}

#[test]
fn a_bucket_of_many_tensors_of_different_sizes() {
    let mesh = mesh(3);
    let lists: Vec<Vec<Tensor<Flex, 2>>> = (0..3)
        .map(|m| {
            [(1, 1), (5, 7), (0, 3), (2, 2), (40, 3)]
                .map(|(rows, columns)| tensors(3, rows, columns)[m].clone())
                .to_vec()
        })
        .collect();
    let expected: Vec<TensorData> = (0..5)
        .map(|i| (lists[0][i].clone() + lists[1][i].clone() + lists[2][i].clone()).into_data())
        .collect();
    for list in all_reduce_bucket(&mesh, lists, &ReduceOp::Sum).unwrap() {
        let found: Vec<TensorData> = list.into_iter().map(Tensor::into_data).collect();
        assert_eq!(found, expected);
    }
    assert_eq!(mesh.stats().collectives.all_reduces, 1);
    assert_eq!(mesh.stats().collectives.buckets, 1);
}

#[test]
fn each_member_sends_and_receives_two_n_minus_one_over_n() {
    for members in [2, 3, 4, 5] {
        let mesh = mesh(members);
        let elements = members * 120;
        all_reduce(&mesh, tensors(members, members, 120), &ReduceOp::Mean).unwrap();
        let share = (elements * 4 * 2 * (members - 1) / members) as u64;
        let stats = mesh.stats().collectives;
        assert_eq!(stats.sent, vec![share; members]);
        assert_eq!(stats.received, vec![share; members]);
        assert_eq!(stats.host_sums, members as u64);
        assert_eq!(stats.kernel_sums, 0);
    }
}

#[test]
fn the_order_of_the_sum_is_fixed() {
    // In another order, or in pairs, these come to another f32.
    let mesh = mesh(4);
    let values = [1.0e8f32, 1.0, -1.0e8, 0.5];
    let expected = ((values[0] + values[1]) + values[2]) + values[3];
    for _ in 0..20 {
        let inputs = values.map(|v| tensor(&[v; 9], 3)).to_vec();
        for result in all_reduce(&mesh, inputs, &ReduceOp::Sum).unwrap() {
            assert_eq!(
                result.into_data(),
                TensorData::new(vec![expected; 9], [3, 3])
            );
        }
    }
}

#[test]
fn half_precision_is_accumulated_in_f32() {
    let mesh = mesh(3);
    for dtype in [DType::F16, DType::BF16] {
        // 256 + 0.5 + 0.5: in bf16 each step would round the half away.
        let inputs: Vec<_> = [256.0, 0.5, 1.5]
            .map(|v| tensor(&[v; 5], 1).cast(dtype))
            .to_vec();
        let expected = tensor(&[258.0; 5], 1).cast(dtype).into_data();
        for result in all_reduce(&mesh, inputs, &ReduceOp::Sum).unwrap() {
            assert_eq!(result.into_data(), expected);
        }
    }
}

#[test]
fn broadcast_and_gather_of_empty_parts() {
    let mesh = mesh(3);
    let source = tensors(3, 2, 3)[1].clone();
    for copy in broadcast(&mesh, source.clone(), 1).unwrap() {
        assert_eq!(copy.into_data(), source.to_data());
    }
    let stats = mesh.stats().collectives;
    assert_eq!(stats.sent, [0, 48, 0]);
    assert_eq!(stats.received, [24, 0, 24]);

    let parts = [2, 0, 1]
        .map(|rows| tensor(&vec![rows as f32; rows * 3], rows))
        .to_vec();
    let expected = TensorData::new(vec![2.0f32, 2., 2., 2., 2., 2., 1., 1., 1.], [3, 3]);
    for whole in all_gather(&mesh, parts).unwrap() {
        assert_eq!(whole.into_data(), expected);
    }
}

#[test]
fn buckets_of_all_collectives_are_the_single_ones() {
    let mesh = mesh(3);
    let shapes = [(4, 2), (1, 5), (0, 2), (9, 1)];
    let lists: Vec<Vec<Tensor<Flex, 2>>> = (0..3)
        .map(|m| {
            let mut list = shapes
                .map(|(rows, columns)| tensors(3, rows, columns)[m].clone())
                .to_vec();
            list[1] = list[1].clone().cast(DType::F64);
            list
        })
        .collect();
    let at = |i: usize| lists.iter().map(|list| list[i].clone()).collect::<Vec<_>>();
    let same = |bucket: Vec<Vec<Tensor<Flex, 2>>>,
                single: &dyn Fn(usize) -> Vec<Tensor<Flex, 2>>| {
        for i in 0..shapes.len() {
            let single = single(i);
            assert_eq!(single.len(), bucket.len());
            for (list, single) in bucket.iter().zip(single) {
                assert_eq!(list.len(), shapes.len());
                assert_eq!(list[i].to_data(), single.to_data(), "tensor {i}");
            }
        }
    };
    let op = ReduceOp::Mean;
    same(
        reduce_scatter_bucket(&mesh, lists.clone(), &op).unwrap(),
        &|i| reduce_scatter(&mesh, at(i), &op).unwrap(),
    );
    same(all_gather_bucket(&mesh, lists.clone()).unwrap(), &|i| {
        all_gather(&mesh, at(i)).unwrap()
    });
    same(
        broadcast_bucket(&mesh, lists[2].clone(), 2).unwrap(),
        &|i| broadcast(&mesh, lists[2][i].clone(), 2).unwrap(),
    );
    assert!(
        broadcast_bucket::<Flex, 2>(&mesh, Vec::new(), 0)
            .unwrap()
            .iter()
            .all(Vec::is_empty)
    );
}

#[test]
fn transposed_and_sliced_inputs() {
    let mesh = mesh(2);
    let inputs: Vec<_> = tensors(2, 6, 4)
        .into_iter()
        .map(|t| t.transpose().slice([1..3, 2..5]))
        .collect();
    let expected = (inputs[0].clone() + inputs[1].clone()).into_data();
    for result in all_reduce(&mesh, inputs, &ReduceOp::Sum).unwrap() {
        assert_eq!(result.into_data(), expected);
    }
}

#[test]
fn misuse_is_an_error_that_says_what_is_wrong() {
    let mesh = mesh(2);
    let error = all_reduce(&mesh, tensors(3, 1, 1), &ReduceOp::Sum).unwrap_err();
    assert!(
        matches!(
            error,
            Error::MemberCount {
                expected: 2,
                found: 3
            }
        ),
        "{error}"
    );

    let error = all_reduce(
        &mesh,
        vec![tensor(&[1.0; 4], 2), tensor(&[1.0; 4], 4)],
        &ReduceOp::Sum,
    )
    .unwrap_err();
    assert!(
        matches!(
            error,
            Error::TensorMismatch {
                member: 1,
                index: 0,
                ..
            }
        ),
        "{error}"
    );
    assert!(
        error.to_string().contains("[2, 2]") && error.to_string().contains("[4, 1]"),
        "{error}"
    );

    let lists = vec![vec![tensor(&[1.0], 1)], vec![]];
    let error = all_reduce_bucket(&mesh, lists, &ReduceOp::Sum).unwrap_err();
    assert!(
        matches!(
            error,
            Error::TensorCount {
                member: 1,
                expected: 1,
                found: 0
            }
        ),
        "{error}"
    );

    for weights in [
        vec![1.0],
        vec![1.0, -1.0],
        vec![0.0, 0.0],
        vec![1.0, f64::NAN],
    ] {
        let op = ReduceOp::WeightedMean(weights);
        let error = all_reduce(&mesh, tensors(2, 1, 1), &op).unwrap_err();
        assert!(matches!(error, Error::Weights { .. }), "{error}");
    }

    let mixed = vec![tensor(&[1.0], 1), tensor(&[1.0], 1).cast(DType::F64)];
    let error = all_gather(&mesh, mixed).unwrap_err();
    assert!(
        matches!(error, Error::TensorMismatch { member: 1, .. }),
        "{error}"
    );

    let error = broadcast(&mesh, tensor(&[1.0], 1), 2).unwrap_err();
    assert!(
        matches!(
            error,
            Error::MemberCount {
                expected: 2,
                found: 3
            }
        ),
        "{error}"
    );
}
