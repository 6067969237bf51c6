//! The replica engine: one copy of the model per member of a mesh, gradients reduced between them.
//!
//! | file | what lives there |
//! |---|---|
//! | `engine` | [`DataParallel`]: the replicas, their threads and the order of a step |
//! | `run` | the phases of a step, and `train_step` |
//! | `local` | what one replica does in a step: forward, backward, update |
//! | `step` | what the user's closure returns and what a step returns |
//! | `batch` | how batches are cut, moved and joined |
//! | `replica` | copies of a module, fresh leaves, running statistics |
//! | `grads` | gradients as a list of primitives, and back |

mod batch;
mod engine;
mod grads;
mod local;
mod replica;
mod run;
mod step;

pub use batch::{Batch, Gather};
pub use engine::{DataParallel, NoOptimizer};
pub use step::{Reduction, RunningStats, Step, StepOutput};
