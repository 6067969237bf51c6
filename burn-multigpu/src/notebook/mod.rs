//! Pictures and tables for Rust notebooks ([evcxr](https://github.com/evcxr/evcxr)).
//!
//! A value at the end of a cell is drawn by its method `evcxr_display`: a picture (SVG) or a table
//! (HTML) in Jupyter, and beside it the text that [`Display`](std::fmt::Display) gives, which is also
//! what a terminal shows.
//!
//! ```text
//! :dep burn-multigpu-notebook = { path = "../../notebook" }
//! use burn_multigpu_notebook::prelude::*;
//! ```
//!
//! A notebook depends on the crate `burn-multigpu-notebook`, a shared library of this one, and not on
//! this one: linked into each cell by itself, it would count tensors in each from the start, and one
//! cell's tensors would take the place of another's.
//!
//! | file | what lives there | shows |
//! |---|---|---|
//! | `mesh.rs` | `Mesh`, `MeshStats`, [`Explanation`] | the members, the counters, what the last step did |
//! | `layout.rs` | [`LayoutPicture`] | which device holds which part of a tensor |
//! | `chart.rs` | [`Chart`] | curves, such as the loss over the steps |
//! | `confusion.rs` | [`ConfusionMatrix`], [`classes`] | which class was taken for which |
//! | `images.rs` | [`ImageGrid`] | images with a line of text each |
//! | `history.rs` | [`History`] (feature `train`) | the metrics of burn-train's `Learner` |
//! | `prelude.rs` | [`prelude`] | what a notebook uses, in one line |
//! | `display.rs`, `svg.rs` | | what they have in common |

mod chart;
mod confusion;
mod display;
#[cfg(feature = "train")]
mod history;
mod images;
mod layout;
mod mesh;
pub mod prelude;
mod svg;

pub use chart::Chart;
pub use confusion::{ConfusionMatrix, classes};
#[cfg(feature = "train")]
pub use history::History;
pub use images::ImageGrid;
pub use layout::LayoutPicture;
pub use mesh::Explanation;
