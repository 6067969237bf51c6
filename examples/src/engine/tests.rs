use super::*;
use crate::data::{DataSet, batches, bundled_dir, epoch_order};
use burn::backend::Flex;

type B = Autodiff<Flex>;

const MODELS: [ModelKind; 4] = [
    ModelKind::Mlp,
    ModelKind::Cnn,
    ModelKind::CnnNorm,
    ModelKind::Transformer,
];

fn setup(model: ModelKind) -> Setup<'static> {
    Setup {
        model,
        optimizer: OptimizerKind::Adam,
        dropout: 0.0,
        seed: 3,
        dtype: FloatKind::F32,
        resume: None,
    }
}

fn mesh(spec: &str) -> Mesh<Flex> {
    Mesh::open(spec).expect("logical devices")
}

fn some_batches() -> Vec<DigitItems> {
    let data = DataSet::read(&bundled_dir(), Some(120)).expect("the bundled digits");
    let order = epoch_order(120, 1, 0);
    batches(&data.train, &order, 25).collect()
}

#[test]
fn every_model_trains_on_every_engine() {
    for model in MODELS {
        for kind in EngineKind::ALL {
            let mut engine =
                over_mesh::<B>(kind, &mesh("flex:0,1,2"), &setup(model)).expect("an engine");
            let losses: Vec<f64> = (0..4)
                .flat_map(|_| some_batches())
                .map(|items| engine.train_step(2e-3, items).expect("a step")().expect("a loss"))
                .collect();
            let mean = |losses: &[f64]| losses.iter().sum::<f64>() / losses.len() as f64;
            let (first, last) = (mean(&losses[..5]), mean(&losses[15..]));
            assert!(last < 0.9 * first, "{model}, {kind}: {losses:?}");
            let items = some_batches().swap_remove(0);
            assert_eq!(engine.predict(items).expect("digits").len(), 25);
        }
    }
}

#[test]
fn a_mesh_of_one_does_exactly_what_one_device_does() {
    for model in MODELS {
        let setup = setup(model);
        let mut alone = on_device::<B>(&Default::default(), &setup).expect("a run");
        let mut meshes = EngineKind::ALL
            .map(|kind| over_mesh::<B>(kind, &mesh("flex:0"), &setup).expect("an engine"));
        for items in some_batches().into_iter().take(3) {
            let expected = alone.observed_step(1e-3, items.clone()).expect("a step");
            for (mesh, kind) in meshes.iter_mut().zip(EngineKind::ALL) {
                let found = mesh.observed_step(1e-3, items.clone()).expect("a step");
                assert_eq!(found.loss, expected.loss, "{model}, {kind}");
                assert_eq!(found.gradients, expected.gradients, "{model}, {kind}");
                if model != ModelKind::CnnNorm || kind == EngineKind::Decorator {
                    assert_eq!(found.parameters, expected.parameters, "{model}, {kind}");
                }
            }
        }
    }
}

#[test]
fn a_snapshot_goes_from_engine_to_engine() {
    let setup = setup(ModelKind::CnnNorm);
    let digits = some_batches();
    let mut run = on_device::<B>(&Default::default(), &setup).expect("a run");
    run.observed_step(1e-3, digits[0].clone()).expect("a step");
    let before = run.snapshot().expect("records");
    let expected = run.observed_step(1e-3, digits[1].clone()).expect("a step");
    let setup = Setup {
        resume: Some(Resume {
            snapshot: &before,
            steps: 1,
        }),
        ..setup
    };
    for kind in EngineKind::ALL {
        let mut other = over_mesh::<B>(kind, &mesh("flex:0"), &setup).expect("an engine");
        let found = other
            .observed_step(1e-3, digits[1].clone())
            .expect("a step");
        assert_eq!(found.loss, expected.loss, "{kind}");
        assert_eq!(found.gradients, expected.gradients, "{kind}");
    }
}
