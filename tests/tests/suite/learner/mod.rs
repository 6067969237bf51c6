//! burn-train's `Learner` on a mesh: what is not a matter of numbers, which `f64` compares.
//!
//! | file | what lives there |
//! |---|---|
//! | `resume` | checkpoints, killed trainings, early stopping, interruption |
//! | `memory` | how much optimizer state each member keeps |
//! | `failures` | data sets and models that fail |

mod failures;
mod memory;
mod resume;
