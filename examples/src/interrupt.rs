//! Ctrl-C: the first asks the run to stop after its step and to save, the second ends the program at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;

/// The exit status of a program that Ctrl-C ended.
pub const EXIT_CODE: u8 = 130;

/// Whether somebody wants the run to stop.
#[derive(Debug, Clone, Default)]
pub struct Interrupt {
    requested: Arc<AtomicBool>,
}

impl Interrupt {
    /// Listens for Ctrl-C from now on. Can be called once in a process.
    ///
    /// # Errors
    ///
    /// When the system refuses, or something listens already.
    pub fn install() -> anyhow::Result<Self> {
        let interrupt = Self::default();
        let handler = interrupt.clone();
        ctrlc::set_handler(move || {
            if handler.requested.swap(true, Ordering::SeqCst) {
                std::process::exit(i32::from(EXIT_CODE));
            }
        })
        .context("cannot listen for Ctrl-C")?;
        Ok(interrupt)
    }

    /// Asks the run to stop, as Ctrl-C does.
    pub fn request(&self) {
        self.requested.store(true, Ordering::SeqCst);
    }

    /// Whether the run shall stop.
    pub fn requested(&self) -> bool {
        self.requested.load(Ordering::SeqCst)
    }
}
