//! The way from the caller's thread to a member's: commands in order.

use super::InnerBackend;
use super::command::Command;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How many commands may wait before the caller does: enough for several steps of a large model,
/// and a bound on what a program that never reads can pile up.
const WAITING_MAX: usize = 4096;

/// What one member has still to do.
pub(super) struct Queue<B: InnerBackend> {
    inner: Mutex<Inner<B>>,
    filled: Condvar,
    emptied: Condvar,
    progress: Mutex<Progress>,
}

struct Inner<B: InnerBackend> {
    waiting: VecDeque<Arc<Command<B>>>,
    closed: bool,
}

/// A member has taken nothing from its queue for too long.
#[derive(Clone, Copy, Debug)]
pub(super) struct Late;

/// What a member is at, for the errors of those who wait for it in vain.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Progress {
    /// Commands that it has begun.
    pub(super) begun: u64,
    /// What the last of them is called; nothing before the first.
    pub(super) op: &'static str,
}

impl<B: InnerBackend> Queue<B> {
    pub(super) fn new() -> Self {
        Self {
            inner: Mutex::new(Inner {
                waiting: VecDeque::new(),
                closed: false,
            }),
            filled: Condvar::new(),
            emptied: Condvar::new(),
            progress: Mutex::default(),
        }
    }

    /// Notes what the member begins.
    pub(super) fn begin(&self, op: &'static str) {
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        progress.begun += 1;
        progress.op = op;
    }

    pub(super) fn progress(&self) -> Progress {
        *self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a command; waits while the member is far behind, for `limit` at most. In a closed queue
    /// it is dropped, and with it the way back to whoever waits for an answer, which tells them.
    ///
    /// # Errors
    ///
    /// [`Late`] when the limit has passed; the command is dropped.
    pub(super) fn push(
        &self,
        command: Arc<Command<B>>,
        limit: Option<Duration>,
    ) -> Result<(), Late> {
        let mut inner = self.lock();
        let full = |inner: &mut Inner<B>| inner.waiting.len() >= WAITING_MAX && !inner.closed;
        if full(&mut inner) {
            match limit {
                None => {
                    let emptied = self.emptied.wait_while(inner, full);
                    inner = emptied.unwrap_or_else(PoisonError::into_inner);
                }
                Some(limit) => {
                    let emptied = self.emptied.wait_timeout_while(inner, limit, full);
                    let (emptied, waited) = emptied.unwrap_or_else(PoisonError::into_inner);
                    if waited.timed_out() {
                        return Err(Late);
                    }
                    inner = emptied;
                }
            }
        }
        if inner.closed {
            return Ok(());
        }
        let idle = inner.waiting.is_empty();
        inner.waiting.push_back(command);
        drop(inner);
        if idle {
            self.filled.notify_one();
        }
        Ok(())
    }

    /// Takes all that waits, or `None` once the queue is closed and empty.
    pub(super) fn take(&self) -> Option<VecDeque<Arc<Command<B>>>> {
        let mut inner = self.lock();
        while inner.waiting.is_empty() {
            if inner.closed {
                return None;
            }
            inner = self
                .filled
                .wait(inner)
                .unwrap_or_else(PoisonError::into_inner);
        }
        let taken = std::mem::take(&mut inner.waiting);
        drop(inner);
        self.emptied.notify_all();
        Some(taken)
    }

    /// No more commands come: the member ends after those that wait.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.filled.notify_all();
        self.emptied.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Inner<B>> {
        // Nothing that can panic runs under this lock.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
