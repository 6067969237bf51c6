//! What the user's closure returns and what a step returns.

use crate::collective::device_error;
use crate::error::{Error, Result};
use burn::tensor::backend::AutodiffBackend;
use burn::tensor::{FloatDType, Tensor};

/// What one replica computed from its part of the batch: a loss to differentiate, and anything else
/// that the caller wants to see.
///
/// ```
/// use burn_multigpu::{DataParallel, Step};
///
/// # use burn::backend::{Autodiff, Flex};
/// # use burn::nn::{Linear, LinearConfig};
/// # use burn::tensor::{Distribution, Tensor};
/// # type B = Autodiff<Flex>;
/// # let mesh = burn_multigpu::Mesh::<Flex>::open("flex:0,1")?;
/// # let device = &mesh.devices()[0];
/// # let model: Linear<B> = LinearConfig::new(4, 1).init(device);
/// # let batch = Tensor::<B, 2>::random([5, 4], Distribution::Default, device);
/// let mut engine = DataParallel::<B, _>::new(model, &mesh)?;
/// let (out, _) = engine.step(batch, |model: &Linear<B>, part| {
///     let scores = model.forward(part);
///     let items = scores.dims()[0] as f64;
///     Step::new(scores.clone().mean())
///         .weight(items) // the default; the number of tokens, if the loss is a mean over tokens
///         .output(scores.inner())
/// })?;
/// assert_eq!(out.outputs.len(), 2);
/// assert_eq!(out.outputs[0].dims(), [3, 1]);
/// # Ok::<(), burn_multigpu::Error>(())
/// ```
#[derive(Debug)]
#[must_use = "the engine differentiates the loss of the step that is returned to it"]
pub struct Step<B: AutodiffBackend, T = ()> {
    pub(crate) loss: Tensor<B, 1>,
    pub(crate) output: T,
    pub(crate) weight: Option<f64>,
}

impl<B: AutodiffBackend> Step<B> {
    /// A step with a loss of one element and no output.
    pub fn new(loss: Tensor<B, 1>) -> Self {
        Self {
            loss,
            output: (),
            weight: None,
        }
    }
}

impl<B: AutodiffBackend, T> Step<B, T> {
    /// Returns something beside the loss, such as the logits.
    pub fn output<U>(self, output: U) -> Step<B, U> {
        Step {
            loss: self.loss,
            output,
            weight: self.weight,
        }
    }

    /// How much this part counts in the mean, instead of its
    /// [`weight`](super::Batch::weight) as a batch: for a loss that is a
    /// mean over tokens, the number of tokens. It plays no part under [`Reduction::Sum`].
    pub fn weight(mut self, weight: f64) -> Self {
        self.weight = Some(weight);
        self
    }
}

/// How the replicas' gradients become the gradient of the whole batch.
///
/// ```
/// use burn_multigpu::{DataParallel, Reduction, Step};
///
/// # use burn::backend::{Autodiff, Flex};
/// # use burn::nn::{Linear, LinearConfig};
/// # use burn::tensor::{Distribution, Tensor};
/// # type B = Autodiff<Flex>;
/// # let mesh = burn_multigpu::Mesh::<Flex>::open("flex:0,1")?;
/// # let device = &mesh.devices()[0];
/// # let model: Linear<B> = LinearConfig::new(4, 1).init(device);
/// # let batch = Tensor::<B, 2>::random([5, 4], Distribution::Default, device);
/// let expected = f64::from(model.forward(batch.clone()).sum().into_scalar());
/// let mut engine = DataParallel::<B, _>::new(model, &mesh)?.reduction(Reduction::Sum);
/// let (out, _) = engine.step(batch, |model: &Linear<B>, part| Step::new(model.forward(part).sum()))?;
/// assert!((out.loss()? - expected).abs() < 1e-5);
/// # Ok::<(), burn_multigpu::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reduction {
    /// The loss is a mean over the items of a part (or over what [`Step::weight`] says): the parts'
    /// gradients are averaged with those weights, which gives the gradient of the mean over the
    /// whole batch, also where the parts differ in size.
    #[default]
    Mean,
    /// The loss is a sum over items: the parts' gradients are added.
    Sum,
}

impl Reduction {
    /// The factor of each replica's gradient and loss.
    pub(crate) fn factors(self, weights: &[f64]) -> Result<Vec<f64>> {
        match self {
            Reduction::Sum => Ok(vec![1.0; weights.len()]),
            Reduction::Mean => {
                crate::collective::ReduceOp::WeightedMean(weights.to_vec()).factors(weights.len())
            }
        }
    }
}

/// Which running statistics (of batch norm, for one) the replicas go on with after a step.
///
/// Each replica sees its own part of the batch, so their statistics differ; a single device would
/// have seen the whole. The statistics used *within* a forward pass are those of the part in any
/// case.
///
/// ```
/// use burn::backend::{Autodiff, Flex};
/// use burn::nn::{BatchNorm, BatchNormConfig};
/// use burn::tensor::{Distribution, Tensor};
/// use burn_multigpu::{DataParallel, Mesh, RunningStats, Step};
///
/// type B = Autodiff<Flex>;
///
/// let mesh = Mesh::<Flex>::open("flex:0,1")?;
/// let device = &mesh.devices()[0];
/// let model: BatchNorm<B> = BatchNormConfig::new(3).init(device);
/// let mut engine = DataParallel::<B, _>::new(model, &mesh)?.running_stats(RunningStats::Mean);
/// let batch = Tensor::<B, 3>::random([6, 3, 4], Distribution::Default, device);
/// engine.step(batch, |model: &BatchNorm<B>, part| Step::new(model.forward(part).mean()))?;
///
/// // All replicas go on with the same ones.
/// let means = [0, 1].map(|member| engine.model_of(member).map(|m| m.running_mean.value_sync().into_data()));
/// let [first, second] = means;
/// assert_eq!(first?, second?);
/// # Ok::<(), burn_multigpu::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RunningStats {
    /// The mean over the replicas, weighted by items: the running mean is then that of a single
    /// device, and the running variance is it but for the variance between the parts' means. Every
    /// item counts, which is why this is the default.
    #[default]
    Mean,
    /// Those of the first member, as in PyTorch's `DistributedDataParallel`. Items on other members
    /// do not count.
    First,
    /// Each replica keeps its own: nothing is exchanged, and replicas differ.
    Local,
}

/// In which type gradients travel between members of a mesh.
///
/// Sums are accumulated in f32 in any case, and members get the same bits.
///
/// ```
/// use burn::optim::AdamConfig;
/// use burn_multigpu::{Compression, DataParallel, Step};
///
/// # use burn::backend::{Autodiff, Flex};
/// # use burn::nn::{Linear, LinearConfig};
/// # use burn::tensor::{Distribution, Tensor};
/// # type B = Autodiff<Flex>;
/// # let mesh = burn_multigpu::Mesh::<Flex>::open("flex:0,1")?;
/// # let device = &mesh.devices()[0];
/// # let model: Linear<B> = LinearConfig::new(4, 1).init(device);
/// # let batch = Tensor::<B, 2>::random([5, 4], Distribution::Default, device);
/// let mut engine = DataParallel::<B, _>::new(model, &mesh)?
///     .compression(Compression::Bf16)
///     .with_optimizer(AdamConfig::new().init());
/// engine.train_step(1e-3, batch, |model: &Linear<B>, part| Step::new(model.forward(part).mean()))?;
/// // Four weights and a bias, in two bytes each: once to be added up, and once as sums.
/// assert_eq!(mesh.stats().collectives.sent.iter().sum::<u64>(), 20);
/// # Ok::<(), burn_multigpu::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// As they are: the result is that of a single device but for the order of a sum.
    #[default]
    None,
    /// As f16: half the bytes of f32. Each gradient is rounded to 11 bits (a relative error of up to
    /// 2^-11) before and after the sum, what is below 6e-8 is lost, and what is above 65504 becomes
    /// infinite: for losses that are scaled.
    F16,
    /// As bf16: half the bytes of f32 with its range, and 8 bits (a relative error of up to 2^-8).
    Bf16,
}

impl Compression {
    pub(crate) fn dtype(self) -> Option<FloatDType> {
        match self {
            Compression::None => None,
            Compression::F16 => Some(FloatDType::F16),
            Compression::Bf16 => Some(FloatDType::BF16),
        }
    }
}

/// The outcome of a step over the whole batch.
///
/// ```
/// use burn_multigpu::{DataParallel, Step, StepOutput};
///
/// # use burn::backend::{Autodiff, Flex};
/// # use burn::nn::{Linear, LinearConfig};
/// # use burn::tensor::{Distribution, Tensor};
/// # type B = Autodiff<Flex>;
/// # let mesh = burn_multigpu::Mesh::<Flex>::open("flex:0,1")?;
/// # let device = &mesh.devices()[0];
/// # let model: Linear<B> = LinearConfig::new(4, 1).init(device);
/// # let batch = Tensor::<B, 2>::random([5, 4], Distribution::Default, device);
/// # let mut engine = DataParallel::<B, _>::new(model, &mesh)?;
/// let (out, _): (StepOutput<B>, _) =
///     engine.step(batch, |model: &Linear<B>, part| Step::new(model.forward(part).mean()))?;
/// println!("{:.4} over {} items", out.loss()?, out.items());
/// # Ok::<(), burn_multigpu::Error>(())
/// ```
#[derive(Debug)]
pub struct StepOutput<B: AutodiffBackend, T = ()> {
    /// What the closures returned beside the loss, in the order of the members that had items.
    pub outputs: Vec<T>,
    pub(crate) losses: Vec<(f64, Tensor<B::InnerBackend, 1>)>,
    pub(crate) items: usize,
}

impl<B: AutodiffBackend, T> StepOutput<B, T> {
    /// The loss of the whole batch, reduced as the gradients are. Waits for the devices.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] with what a device reports.
    pub fn loss(&self) -> Result<f64> {
        let mut sum = 0.0;
        for (factor, loss) in self.losses.iter().filter(|(factor, _)| *factor != 0.0) {
            let device = loss.device();
            let data = loss
                .clone()
                .try_into_data()
                .map_err(device_error(&device))?;
            let value = data.iter::<f64>().next().ok_or_else(|| Error::Device {
                device: format!("{device:?}"),
                cause: "the loss has no element; it needs exactly one".to_string(),
            })?;
            sum += factor * value;
        }
        Ok(sum)
    }

    /// Number of items in the whole batch.
    #[must_use]
    pub fn items(&self) -> usize {
        self.items
    }
}
