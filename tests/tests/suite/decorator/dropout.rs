//! Dropout: the masks of a mesh on Flex are those of one device, and nothing moves for them.

use super::{A, open};
use burn::backend::{Autodiff, Flex};
use burn::optim::{GradientsParams, Optimizer, SgdConfig};
use burn::tensor::backend::AutodiffBackend;
use burn::tensor::{DType, Int, Tensor, TensorData};
use burn_multigpu_examples::data::{CLASSES, SIDE};
use burn_multigpu_examples::models::{Classifier, ModelKind};
use burn_multigpu_tests::owns_random;

const STEPS: usize = 6;

/// The losses of a transformer with dropout, on batches that no mesh divides.
fn losses<B: AutodiffBackend>(device: &B::Device, mut made: impl FnMut()) -> Vec<f32> {
    let mut model = Classifier::<B>::seeded(ModelKind::Transformer, 0.2, 3, device, DType::F32);
    let mut optimizer = SgdConfig::new().init();
    B::seed(device, 5);
    let mut losses = Vec::new();
    for step in 0..STEPS {
        let items = [7, 11][step % 2];
        let pixels = (0..items * SIDE * SIDE).map(|i| ((i * 37 + step) % 101) as f32 / 40.0);
        let images = TensorData::new(pixels.collect::<Vec<_>>(), [items, SIDE, SIDE]);
        let targets: Vec<i64> = (0..items)
            .map(|i| ((i * 3 + step) % CLASSES) as i64)
            .collect();
        let targets = Tensor::<B, 1, Int>::from_data(TensorData::new(targets, [items]), device);
        let loss = model.loss(Tensor::from_data(images, device), targets);
        losses.push(loss.clone().into_data().to_vec::<f32>().unwrap()[0]);
        let grads = GradientsParams::from_grads(loss.backward(), &model);
        model = optimizer.step(0.05, model, grads);
        made();
    }
    losses
}

#[test]
fn masks_are_those_of_one_device_and_nothing_moves_for_them() {
    let _random = owns_random();
    let one = losses::<Autodiff<Flex>>(&Default::default(), || ());
    let again = losses::<Autodiff<Flex>>(&Default::default(), || ());
    assert_eq!(one, again, "a seed repeats a run");
    for spec in ["flex:0,1", "flex:0-2"] {
        let mesh = open(spec);
        let mut totals = Vec::new();
        let over_mesh = losses::<A>(&mesh.device(), || {
            totals.push(mesh.stats().operations.total());
        });
        for (a, b) in one.iter().zip(&over_mesh) {
            assert!((a - b).abs() < 1e-4, "{spec}: {one:?} {over_mesh:?}");
        }
        let (first, last) = (totals[0], totals[STEPS - 1]);
        assert_eq!((last.fallbacks, last.gathers), (0, first.gathers));
    }
}
