//! What a Rust notebook depends on: burn-multigpu and Burn, as one shared library.
//!
//! The kernel evcxr compiles each cell to a library of its own and links what the cell uses into it.
//! Burn and burn-multigpu count tensors, autodiff nodes and open meshes in statics: with a copy of
//! these in each cell, two cells would give the same number to different tensors. A shared library is
//! there once, whatever the number of cells, and a cell is linked in less time.
//!
//! ```text
//! :dep burn-multigpu-notebook = { path = "../../notebook" }
//! use burn_multigpu_notebook::prelude::*;
//! ```
//!
//! | feature | what it adds |
//! |---|---|
//! | `flex` (default), `cuda`, `wgpu`, `rocm` | the backend |
//! | `train` (default) | burn-train's `Learner` with `MultiGpuStrategy` |

#![warn(missing_docs)]

pub use burn_multigpu::notebook::*;

/// What a notebook uses, in one line.
pub mod prelude {
    pub use burn_multigpu;
    pub use burn_multigpu::notebook::prelude::*;
}
