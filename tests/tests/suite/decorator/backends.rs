//! Every inner backend, and the conventions of Burn's backends.

use super::{M, open};
use burn::backend::autodiff::checkpoint::strategy::BalancedCheckpointing;
use burn::backend::{Autodiff, Cuda, Flex, Wgpu};
use burn::tensor::backend::{AutodiffBackend, Backend};
use burn::tensor::{DType, Tensor, TensorData};
use burn_multigpu::MultiGpu;

fn is_backend<B: Backend>() {}
fn is_autodiff<B: AutodiffBackend>() {}

#[test]
fn it_is_a_backend_over_each_of_them() {
    is_backend::<MultiGpu<Flex>>();
    is_backend::<MultiGpu<Wgpu>>();
    is_backend::<MultiGpu<Cuda>>();
    is_autodiff::<Autodiff<MultiGpu<Flex>>>();
    is_autodiff::<Autodiff<MultiGpu<Cuda>>>();
    is_autodiff::<Autodiff<MultiGpu<Wgpu>, BalancedCheckpointing>>();
}

#[test]
fn names_types_and_sync_are_those_of_a_backend() {
    let mesh = open("flex:0,1");
    let device = mesh.device();
    let name = M::name(&device);
    assert!(name.starts_with("multigpu<"), "{name}");
    assert_eq!(
        M::dtype_usage(&device, DType::F64),
        Flex::dtype_usage(&Default::default(), DType::F64)
    );
    M::sync(&device).unwrap();
    M::memory_cleanup(&device);
}

#[test]
fn data_keeps_its_type() {
    let mesh = open("flex:0,1");
    let device = mesh.device();
    let values = vec![0.1f64, 0.2, 0.3];
    let x = Tensor::<M, 1>::from_data(TensorData::new(values.clone(), [3]), (&device, DType::F64));
    let data = (x * 1.0).into_data();
    assert_eq!(data.dtype, DType::F64);
    assert_eq!(data.to_vec::<f64>().unwrap(), values);
}

#[test]
fn checkpointing_gives_the_same_gradients() {
    fn grads<B: AutodiffBackend>(device: &B::Device) -> Vec<f32> {
        let x = Tensor::<B, 2>::from_data(
            TensorData::new((0..15).map(|i| i as f32 * 0.1).collect::<Vec<_>>(), [5, 3]),
            device,
        );
        let w = Tensor::<B, 2>::from_data(
            TensorData::new(
                (0..6).map(|i| i as f32 * 0.2 - 0.5).collect::<Vec<_>>(),
                [3, 2],
            ),
            device,
        )
        .require_grad();
        let y = burn::tensor::activation::sigmoid(x.matmul(w.clone()).exp());
        let grads = y.powf_scalar(2.0).mean().backward();
        w.grad(&grads).unwrap().into_data().to_vec().unwrap()
    }
    let mesh = open("flex:0,1,2");
    let one = grads::<Autodiff<Flex>>(&Default::default());
    let plain = grads::<Autodiff<M>>(&mesh.device());
    let checkpointed = grads::<Autodiff<M, BalancedCheckpointing>>(&mesh.device());
    for ((a, b), c) in one.iter().zip(&plain).zip(&checkpointed) {
        assert!((a - b).abs() <= 1e-6 * a.abs().max(1e-3), "{a} {b}");
        assert!((a - c).abs() <= 1e-6 * a.abs().max(1e-3), "{a} {c}");
    }
}
