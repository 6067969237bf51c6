//! A training strategy for burn-train's `Learner`: everything that the single-device strategy does,
//! on all members of a mesh.
//!
//! | file | what lives there |
//! |---|---|
//! | `strategy` | [`MultiGpuStrategy`]: its options, and how a training is started with it |
//! | `checkpoint` | which checkpoint a killed training goes on from |
//! | `fit` | the loop over epochs: training, validation, checkpoints, stopping |
//! | `replicas` | a step over all members: forward and backward, reduction, update |
//! | `member` | what one member keeps and does |
//! | `loader` | the thread that loads batches, cuts them and uploads the parts ahead of the step |
//! | `host` | batches that stay on the host until their parts are known |
//! | `placement` | which member keeps which optimizer state |
//! | `records` | the state of a learner's optimizer, taken out, cut and joined |
//! | `outputs` | burn-train's own outputs, joined over the members |

mod checkpoint;
mod fit;
mod host;
mod loader;
mod member;
mod outputs;
mod placement;
mod records;
mod replicas;
mod strategy;

pub use checkpoint::last_checkpoint;
pub use host::{HostBatch, HostBatcher};
pub use placement::OptimizerPlacement;
pub use records::StatePerParameter;
pub use strategy::{LoaderBatch, MultiGpuStrategy};

use crate::data_parallel::parts::Inner;
use burn::train::{InferenceStep, LearningComponentsTypes, TrainStep};

/// The backend of a learner's members.
type MemberBackend<LC> = Inner<<LC as LearningComponentsTypes>::Backend>;
type TrainInput<LC> = <<LC as LearningComponentsTypes>::TrainingModel as TrainStep>::Input;
type TrainOutput<LC> = <<LC as LearningComponentsTypes>::TrainingModel as TrainStep>::Output;
type ValidInput<LC> = <<LC as LearningComponentsTypes>::InferenceModel as InferenceStep>::Input;
type ValidOutput<LC> = <<LC as LearningComponentsTypes>::InferenceModel as InferenceStep>::Output;
