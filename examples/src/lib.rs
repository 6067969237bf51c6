//! `multigpu`: trains real networks on real digits over several devices, and checks that the result
//! is the one that a single device gives.
//!
//! The program is a user of [`burn_multigpu`] like any other: it sees the public API alone. What it
//! does is also there as functions, for tests and for programs that want to do the same.
//!
//! | module | what lives there |
//! |---|---|
//! | [`data`] | digits: IDX files, the order of an epoch, batches |
//! | [`models`], [`optimizer`] | the networks and the two optimizers |
//! | [`engine`] | what makes a step: replicas, or a plain loop on a mesh as a device |
//! | [`training`] | a training run over a mesh |
//! | [`verify`] | the same run on one device and on a mesh, compared step by step |
//! | [`throughput`] | how fast a step is on 1 to N members, and what an operation costs |
//! | [`checkpoint`] | a run on disk |
//! | [`config`] | what a run is made of |
//! | [`backend`] | from the name of a backend to its type |
//! | [`cli`], [`commands`], [`ui`], [`interrupt`] | the program |

pub mod backend;
pub mod checkpoint;
pub mod cli;
pub mod commands;
pub mod config;
pub mod data;
pub mod engine;
pub mod interrupt;
pub mod models;
pub mod numeric;
pub mod optimizer;
pub mod throughput;
pub mod training;
pub mod ui;
pub mod verify;
