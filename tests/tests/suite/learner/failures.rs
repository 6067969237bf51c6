//! Data sets and models that fail: the error says where, and comes within seconds.

use burn::backend::{Autodiff, Flex};
use burn::lr_scheduler::constant::ConstantLr;
use burn::optim::adaptor::OptimizerAdaptor;
use burn::optim::{Sgd, SgdConfig};
use burn::train::renderer::CliMetricsRenderer;
use burn::train::{Learner, SupervisedTraining};
use burn_multigpu::{Error, Mesh, MultiGpuStrategy};
use burn_multigpu_tests::trainee::{Components, Images, Trainee, loader, training};
use burn_multigpu_tests::{draws, within};

type B = Autodiff<Flex>;
type O = OptimizerAdaptor<Sgd<Flex>, Trainee<B>, B>;
type LC = Components<B, ConstantLr, O>;

/// Trains on these images and returns the error.
fn failure(train: Images, valid: Images, workers: usize) -> Error {
    within(60, move || {
        let _random = draws();
        let device = Default::default();
        let dir = tempfile::tempdir().unwrap();
        let train = loader::<B>(train, 10, None, workers, &device);
        let valid = loader::<Flex>(valid, 10, None, workers, &device);
        let training = SupervisedTraining::<LC>::new(dir.path(), train, valid)
            .renderer(CliMetricsRenderer::new())
            .with_application_logger(None)
            .num_epochs(2);
        let model = Trainee::<B>::new(false, &device);
        let learner = Learner::new(model, SgdConfig::new().init(), ConstantLr::new(0.1));
        let mesh = Mesh::<Flex>::open("flex:0,1").unwrap();
        let result = MultiGpuStrategy::new(&mesh).launch(training, learner);
        result.err().expect("the training failed")
    })
}

fn unreadable(item: usize) -> Images {
    let mut images = Images::new(40, 1);
    images.unreadable = Some(item);
    images
}

#[test]
fn an_unreadable_item_stops_the_training() {
    let error = failure(unreadable(27), Images::new(20, 2), 0);
    assert_eq!(
        error.to_string(),
        "the training data could not be loaded (batch 3 of epoch 1): cannot read item 27"
    );
    let error = failure(Images::new(40, 1), unreadable(5), 0);
    assert_eq!(
        error.to_string(),
        "the validation data could not be loaded (batch 1 of epoch 1): cannot read item 5"
    );
}

#[test]
fn a_loader_thread_that_panics_stops_the_training() {
    let error = failure(unreadable(27), Images::new(20, 2), 2).to_string();
    assert!(
        error.starts_with("the training data could not be loaded")
            && error.contains("a thread of the data loader panicked"),
        "{error}"
    );
}

/// Item 8 of the third batch is on the second of two members.
#[test]
fn a_panic_on_one_device_names_it() {
    let mut images = Images::new(40, 1);
    images.items[28].pixels[0] = 1e9;
    let error = failure(images, Images::new(20, 2), 0);
    assert_eq!(
        error.to_string(),
        "member 1 (flex:1) failed: panicked: an image is broken"
    );
}

/// Without `launch` of the strategy, a failure is a panic with the same message.
#[test]
fn a_failure_is_a_panic_where_nobody_waits_for_it() {
    let _random = draws();
    let device = Default::default();
    let dir = tempfile::tempdir().unwrap();
    let (training, _) = training::<B, ConstantLr, O>(dir.path(), 1, &device);
    let mesh = Mesh::<Flex>::open("flex:0,1").unwrap();
    let strategy = MultiGpuStrategy::new(&mesh).timeout(std::time::Duration::ZERO);
    let training = training.with_training_strategy(strategy.into());
    let model = Trainee::<B>::new(false, &device);
    let learner = Learner::new(model, SgdConfig::new().init(), ConstantLr::new(0.1));
    let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| training.launch(learner)));
    let panic = panic.err().expect("it has no time");
    let message = panic.downcast_ref::<String>().expect("a message");
    assert!(message.contains("has not answered for 0 s"), "{message}");
}
