//! A program that knows nothing of a mesh, on one device and on meshes: losses, gradients and
//! parameters of the three example models over 50 steps.

use burn::backend::{Autodiff, Flex};
use burn::module::AutodiffModule;
use burn::optim::{AdamConfig, GradientsParams, Optimizer};
use burn::tensor::DType;
use burn::tensor::backend::AutodiffBackend;
use burn_multigpu::{Mesh, MultiGpu};
use burn_multigpu_examples::data::{DataSet, DigitItems, bundled_dir, epoch_order};
use burn_multigpu_examples::models::{Classifier, ModelKind};
use burn_multigpu_tests::{compare, use_f64};

const BOUND: f64 = 1e-9;
const STEPS: usize = 50;

/// What a step gave: the loss, the gradients, and the parameters after it.
struct Step {
    loss: f64,
    grads: Vec<Option<Vec<f64>>>,
    params: Vec<Option<Vec<f64>>>,
}

/// Any Burn program, which tells of each step that it has made. The batches are uneven over every
/// number of members, and some are smaller than the mesh.
fn program<B: AutodiffBackend>(
    kind: ModelKind,
    device: &B::Device,
    mut made: impl FnMut(),
) -> Vec<Step> {
    let data = DataSet::read(&bundled_dir(), Some(400)).unwrap();
    let mut order = epoch_order(data.train.len(), 7, 0).into_iter().cycle();
    let mut model = Classifier::<B>::seeded(kind, 0.0, 11, device, DType::F64);
    let mut optimizer = AdamConfig::new().init();
    let mut steps = Vec::new();
    for step in 0..STEPS {
        // 2 is below the largest mesh, and 13 and 7 are divided by no mesh.
        let size = [7, 13, 2, 5][step % 4];
        let indices = order.by_ref().take(size).collect();
        let batch = DigitItems::new(data.train.clone(), indices);
        let batch = batch.to_batch::<B>(device, DType::F64);
        let loss = model.loss(batch.images, batch.targets);
        let value = compare::values(loss.clone())[0];
        let grads = GradientsParams::from_grads(loss.backward(), &model);
        let gradients = compare::grads(&model, &grads);
        model = optimizer.step(1e-3, model, grads);
        let params = compare::params(&model.valid());
        steps.push(Step {
            loss: value,
            grads: gradients,
            params: params.into_iter().map(|(_, values)| Some(values)).collect(),
        });
        made();
    }
    steps
}

fn is_one_device(kind: ModelKind) {
    use_f64();
    let one = program::<Autodiff<Flex>>(kind, &Default::default(), || ());
    assert_eq!(one.len(), STEPS);
    for spec in ["flex:0", "flex:0,1", "flex:0-2", "flex:0-4"] {
        let mesh = Mesh::<Flex>::open(spec).unwrap();
        let device = mesh.device();
        let mut totals = Vec::with_capacity(STEPS);
        let steps = program::<Autodiff<MultiGpu<Flex>>>(kind, &device, || {
            totals.push(mesh.stats().operations.total());
        });
        assert_eq!(steps.len(), STEPS);
        for (number, (a, b)) in one.iter().zip(&steps).enumerate() {
            let worst = (a.loss / b.loss - 1.0)
                .abs()
                .max(compare::grads_difference(&a.grads, &b.grads))
                .max(compare::grads_difference(&a.params, &b.params));
            assert!(worst < BOUND, "{kind} on {spec}, step {number}: {worst}");
        }
        // Nothing runs whole for want of a rule. In the first step the parameters of norms, which
        // come from the host as batches do, are found to be needed whole; in no later step is
        // anything gathered.
        let (first, total) = (totals[0], totals[STEPS - 1]);
        assert_eq!(total.fallbacks, 0, "{}", mesh.stats());
        assert_eq!(total.gathers, first.gathers, "{}", mesh.stats());
        if mesh.len() > 1 {
            assert!(total.sharded > 0 && total.reductions > 0);
        }
    }
}

#[test]
fn the_mlp_on_a_mesh_is_the_one_of_one_device() {
    is_one_device(ModelKind::Mlp);
}

#[test]
fn the_cnn_with_batch_norm_on_a_mesh_is_the_one_of_one_device() {
    is_one_device(ModelKind::CnnNorm);
}

#[test]
fn the_transformer_on_a_mesh_is_the_one_of_one_device() {
    is_one_device(ModelKind::Transformer);
}
