//! The replica engine: one copy of the model per member of a mesh, gradients reduced between them.
//!
//! | file | what lives there |
//! |---|---|
//! | `engine` | [`DataParallel`]: the replicas, their threads and the order of a step |
//! | `run` | the phases of a step, and `train_step` |
//! | `local` | what one replica does in a step: forward, backward, update |
//! | `reduce` | what the replicas exchange: gradients and running statistics |
//! | `step` | what the user's closure returns and what a step returns |
//! | `batch` | how batches are cut, moved and joined |
//! | `replica` | copies of a module, fresh leaves, running statistics |
//! | `grads` | gradients as a list of primitives, and back |

mod batch;
mod engine;
mod grads;
mod local;
mod reduce;
mod replica;
mod run;
mod step;

pub use batch::{Batch, Gather, join_means};
pub use engine::{DataParallel, NoOptimizer};
pub use step::{Compression, Reduction, RunningStats, Step, StepOutput};

/// What the training plugin shares with this engine.
#[cfg(feature = "train")]
pub(crate) mod parts {
    pub(crate) use super::engine::{Inner, copies, cut, join, one_each};
    pub(crate) use super::grads::{GradList, put, take};
    pub(crate) use super::local::Replica;
    pub(crate) use super::reduce::{Reducer, States, To};
    pub(crate) use super::replica::{
        Model, apply_states, copy_record, fresh_leaves, running_states, take_states,
    };
    pub(crate) use super::run::PerMember;
}
