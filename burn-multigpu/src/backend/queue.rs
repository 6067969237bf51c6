//! The way from the caller's thread to a member's: commands in order.

use super::InnerBackend;
use super::command::Command;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// How many commands may wait before the caller does: enough for several steps of a large model,
/// and a bound on what a program that never reads can pile up.
const WAITING_MAX: usize = 4096;

/// What one member has still to do.
pub(super) struct Queue<B: InnerBackend> {
    inner: Mutex<Inner<B>>,
    filled: Condvar,
    emptied: Condvar,
}

struct Inner<B: InnerBackend> {
    waiting: VecDeque<Arc<Command<B>>>,
    closed: bool,
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
        }
    }

    /// Adds a command; waits while the member is far behind. In a closed queue it is dropped, and
    /// with it the way back to whoever waits for an answer, which tells them.
    pub(super) fn push(&self, command: Arc<Command<B>>) {
        let mut inner = self.lock();
        while inner.waiting.len() >= WAITING_MAX && !inner.closed {
            inner = self
                .emptied
                .wait(inner)
                .unwrap_or_else(PoisonError::into_inner);
        }
        if inner.closed {
            return;
        }
        let idle = inner.waiting.is_empty();
        inner.waiting.push_back(command);
        drop(inner);
        if idle {
            self.filled.notify_one();
        }
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
