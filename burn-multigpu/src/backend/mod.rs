//! The backend decorator: any Burn program on a mesh, as on one device.
//!
//! ```
//! use burn::backend::{Autodiff, Flex};
//! use burn::tensor::{Distribution, Tensor};
//! use burn_multigpu::{Mesh, MultiGpu};
//!
//! type B = Autodiff<MultiGpu<Flex>>; // was: Autodiff<Flex>
//! let device = Mesh::<Flex>::open("flex:0,1")?.device(); // was: Default::default()
//!
//! let x = Tensor::<B, 2>::random([10, 4], Distribution::Default, &device);
//! let w = Tensor::<B, 2>::ones([4, 3], &device).require_grad();
//! let gradients = x.matmul(w.clone()).sum().backward();
//! assert_eq!(w.grad(&gradients).map(|g| g.dims()), Some([4, 3]));
//! # Ok::<(), burn_multigpu::Error>(())
//! ```
//!
//! Every operation of a program arrives at [`MeshClient`] as a `burn_ir::OperationIr`. The caller's
//! thread decides how it is done in parts (`partition`) and queues it; a thread
//! for each member runs it there, in the order in which it was queued.
//!
//! | file | what lives there |
//! |---|---|
//! | `ops/` | [`MultiGpu`]: the backend, forwarding to `burn_router` |
//! | `device.rs` | [`MeshDevice`], and the table of open meshes behind its ids |
//! | `client.rs`, `channel.rs` | what the router asks of a channel |
//! | `session.rs` | an open mesh: its threads, its tensors, its end |
//! | `state.rs` | the tensors of a session and their layouts |
//! | `dispatch.rs` | from an operation to the commands for the members |
//! | `relayout.rs` | bringing a tensor to the layout that an operation needs |
//! | `read.rs` | reading tensors back |
//! | `command.rs`, `queue.rs`, `meeting.rs` | what the caller's thread says to the members, and they to each other |
//! | `member/` | a member's thread |
//! | `handle.rs` | layouts for users: `mesh.shard(..)`, `mesh.replicate(..)`, `mesh.layout(..)` |
//! | `explain.rs` | what was sharded, what was gathered, and why |
//!
//! # Failure
//!
//! A panic or a device error on a member's thread ends the work of the mesh: the members stop, and
//! the next read, wherever it happens, returns an error that names the member and the operation.
//! Nobody waits for a member that failed, since it still takes part in every exchange, with its
//! error in place of a tensor.

mod channel;
mod client;
mod command;
mod device;
mod dispatch;
mod explain;
mod handle;
mod meeting;
mod member;
mod ops;
mod queue;
mod read;
mod relayout;
mod session;
mod state;

pub use channel::{MeshBridge, MeshChannel};
pub use client::MeshClient;
pub use device::MeshDevice;
pub use explain::{OperationCounts, OperationStats, operation_names};
pub use handle::OnMesh;
pub use ops::MultiGpu;

/// What a backend inside [`MultiGpu`] must be: one that meshes can find devices of, and whose
/// operations can be run from their intermediate representation. Flex and the CubeCL backends are,
/// with and without `Fusion`.
pub trait InnerBackend: crate::MeshBackend + burn_ir::BackendIr {}

impl<B: crate::MeshBackend + burn_ir::BackendIr> InnerBackend for B {}
