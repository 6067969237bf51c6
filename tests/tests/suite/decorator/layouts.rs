//! Where tensors lie, and what moves.

use super::{A, M, open};
use burn::module::{Module, Param};
use burn::nn::{LayerNorm, LayerNormConfig};
use burn::optim::{AdamConfig, GradientsParams, Optimizer};
use burn::tensor::{Distribution, Int, Tensor, TensorData};
use burn_multigpu_tests::draws;

fn ramp(len: usize) -> Vec<f32> {
    (0..len).map(|i| i as f32 * 0.25 - 3.0).collect()
}

fn rows<const D: usize>(
    dims: [usize; D],
    mesh: &burn_multigpu::Mesh<burn::backend::Flex>,
) -> Tensor<M, D> {
    let data = TensorData::new(ramp(dims.iter().product()), dims);
    Tensor::from_data(data, &mesh.device())
}

#[test]
fn a_batch_is_cut_and_parameters_are_not() {
    let _draws = draws();
    let mesh = open("flex:0-2");
    let device = mesh.device();
    let x = rows([7, 4], &mesh);
    assert_eq!(mesh.layout(&x), None, "its first use decides");
    let w = Tensor::<M, 2>::random([4, 5], Distribution::Default, &device);
    let y = x.clone().matmul(w.clone());
    assert_eq!(
        mesh.layout(&x).unwrap().to_string(),
        "sharded along 0: 3+2+2"
    );
    assert_eq!(mesh.layout(&w).unwrap().to_string(), "replicated");
    assert_eq!(
        mesh.layout(&y).unwrap().to_string(),
        "sharded along 0: 3+2+2"
    );
    let sum = y.sum_dim(0);
    assert_eq!(mesh.layout(&sum).unwrap().to_string(), "partial sum");
    let total = mesh.stats().operations.total();
    assert_eq!((total.fallbacks, total.gathers), (0, 0));
}

#[test]
fn a_user_says_it_outright_and_values_stay() {
    let mesh = open("flex:0,1");
    let x = rows([4, 6], &mesh);
    let expected = ramp(24);
    for dim in [1, 0, 1] {
        mesh.shard(&x, dim);
        let layout = mesh.layout(&x).unwrap().to_string();
        assert!(
            layout.starts_with(&format!("sharded along {dim}")),
            "{layout}"
        );
        assert_eq!(x.to_data().to_vec::<f32>().unwrap(), expected);
    }
    mesh.replicate(&x);
    assert_eq!(mesh.layout(&x).unwrap().to_string(), "replicated");
    assert_eq!(x.to_data().to_vec::<f32>().unwrap(), expected);

    // The primitive below autodiff is the same tensor.
    let tracked = Tensor::<A, 2>::from_inner(x).require_grad();
    mesh.shard(&tracked, 0);
    assert_eq!(
        mesh.layout(&tracked).unwrap().to_string(),
        "sharded along 0: 2+2"
    );
    let grads = (tracked.clone() * 3.0).sum().backward();
    let grad = tracked.grad(&grads).unwrap();
    assert_eq!(grad.into_data().to_vec::<f32>().unwrap(), vec![3.0; 24]);
}

#[test]
fn items_that_become_a_batch_are_dealt_to_the_members() {
    let mesh = open("flex:0,1,2");
    let device = mesh.device();
    // As Burn's own example batches digits: item by item, normalised, then joined.
    let items: Vec<Tensor<M, 3>> = (0..5)
        .map(|item| {
            let pixels: Vec<f32> = (0..16).map(|i| (item * 16 + i) as f32).collect();
            let image = Tensor::<M, 2>::from_data(TensorData::new(pixels, [4, 4]), &device);
            ((image / 255.0) - 0.1307).reshape([1, 4, 4])
        })
        .collect();
    let batch = Tensor::cat(items, 0);
    assert_eq!(
        mesh.layout(&batch).unwrap().to_string(),
        "sharded along 0: 2+2+1"
    );
    let targets: Vec<Tensor<M, 1, Int>> = (0..5)
        .map(|item| Tensor::from_data([item as i64], &device))
        .collect();
    let targets = Tensor::cat(targets, 0);
    assert_eq!(
        mesh.layout(&targets).unwrap().to_string(),
        "sharded along 0: 2+2+1"
    );
    let digits: Vec<i64> = targets.into_data().iter().collect();
    assert_eq!(digits, [0, 1, 2, 3, 4]);
    let expected: Vec<f32> = (0..80).map(|i| i as f32 / 255.0 - 0.1307).collect();
    assert_eq!(batch.into_data().to_vec::<f32>().unwrap(), expected);
}

#[test]
fn a_slice_of_a_batch_is_dealt_again() {
    let mesh = open("flex:0,1");
    let x = rows([8, 2], &mesh) + 0.0;
    let half = x.slice(1..5);
    assert_eq!(
        mesh.layout(&half).unwrap().to_string(),
        "sharded along 0: 2+2"
    );
    assert_eq!(half.into_data().to_vec::<f32>().unwrap(), ramp(16)[2..10]);
}

#[test]
fn a_wrong_guess_costs_one_exchange() {
    let mesh = open("flex:0,1");
    let device = mesh.device();
    // Parameters from a record come from the host as batches do.
    let mut model: LayerNorm<A> = LayerNormConfig::new(6).init(&device);
    let value = |from: f32| {
        let data = TensorData::new((0..6).map(|i| from + i as f32 * 0.1).collect(), [6]);
        Tensor::<A, 1>::from_data(data, &device).require_grad()
    };
    model.gamma = Param::from_tensor(value(1.0));
    model.beta = Some(Param::from_tensor(value(-0.2)));
    let mut optimizer = AdamConfig::new().init();
    let mut moved = Vec::new();
    for _ in 0..4 {
        let x = Tensor::<A, 2>::from_inner(rows([5, 6], &mesh));
        let loss = model.forward(x).powf_scalar(2.0).mean();
        let grads = GradientsParams::from_grads(loss.backward(), &model);
        model = optimizer.step(0.01, model, grads);
        moved.push(mesh.stats().operations.total().gathers);
    }
    assert_eq!(moved[0], moved[3], "nothing moves after the first step");
    assert!(moved[0] <= 4, "{moved:?}");
    assert_eq!(mesh.stats().operations.total().fallbacks, 0);
}

#[test]
fn gradients_are_added_up_in_buckets() {
    let _draws = draws();
    let reductions = |bytes: usize| {
        let mesh = open("flex:0,1");
        mesh.set_bucket_bytes(bytes).unwrap();
        let device = mesh.device();
        let ws: Vec<Tensor<A, 2>> = (0..6)
            .map(|_| {
                Tensor::random([32, 32], Distribution::Normal(0.0, 0.2), &device).require_grad()
            })
            .collect();
        let mut x = Tensor::<A, 2>::from_inner(rows([9, 32], &mesh));
        for w in &ws {
            x = x.matmul(w.clone()).tanh();
        }
        let grads = x.sum().backward();
        for w in &ws {
            assert_eq!(
                w.grad(&grads).unwrap().into_data().shape.num_elements(),
                1024
            );
        }
        mesh.stats().collectives.all_reduces
    };
    assert_eq!(reductions(usize::MAX), 1, "all of them on first need");
    // The loss is a sum in parts as well.
    assert_eq!(reductions(1), 7, "each as soon as it is there");
    assert_eq!(reductions(3 * 4096), 2);
}

#[test]
fn explain_says_what_was_gathered_and_why() {
    let mesh = open("flex:0,1");
    assert_eq!(mesh.explain(), "nothing has run on this mesh as a device");
    let x = rows([6, 2], &mesh) * 2.0;
    let _ = x.clone().cumsum(0);
    let text = mesh.explain();
    assert!(text.starts_with("1 operations ran in parts"), "{text}");
    assert!(
        text.contains("NumericFloat::CumSum: it has no rule for the dimension that is cut"),
        "{text}"
    );
    let counts = mesh.stats().operations.operations["NumericFloat::CumSum"];
    assert_eq!(
        (counts.fallbacks, counts.gathers, counts.gathered_bytes),
        (1, 1, 48)
    );
    let text = mesh.stats().to_string();
    assert!(
        text.contains("NumericFloat::CumSum: 1 fallbacks, 1 gathers of 48 bytes"),
        "{text}"
    );
}

#[test]
fn records_of_a_mesh_are_those_of_one_device() {
    let _draws = draws();
    use burn::record::{BinBytesRecorder, FullPrecisionSettings, Recorder};
    let mesh = open("flex:0,1");
    let recorder = BinBytesRecorder::<FullPrecisionSettings>::default();
    let model: burn::nn::Linear<M> = burn::nn::LinearConfig::new(3, 4).init(&mesh.device());
    let weight = model.weight.to_data();
    let bytes: Vec<u8> = recorder.record(model.into_record(), ()).unwrap();

    let device = Default::default();
    let record = recorder.load(bytes.clone(), &device).unwrap();
    let one: burn::nn::Linear<burn::backend::Flex> = burn::nn::LinearConfig::new(3, 4)
        .init(&device)
        .load_record(record);
    assert_eq!(one.weight.to_data(), weight);

    let other = open("flex:0-2");
    let record = recorder.load(bytes, &other.device()).unwrap();
    let again: burn::nn::Linear<M> = burn::nn::LinearConfig::new(3, 4)
        .init(&other.device())
        .load_record(record);
    assert_eq!(again.weight.to_data(), weight);
    assert_eq!(again.to_device(&mesh.device()).weight.to_data(), weight);
}
