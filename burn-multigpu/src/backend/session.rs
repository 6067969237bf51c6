//! An open mesh: its threads, its tensors, its end.

use super::InnerBackend;
use super::command::{Command, Failure, Reply};
use super::member::Worker;
use super::queue::{Late, Queue};
use super::state::State;
use crate::error::{Error, Result};
use crate::mesh::MeshCore;
use crate::worker::join_within;
use burn::tensor::StreamId;
use burn::tensor::backend::ExecutionError;
use burn_ir::TensorId;
use std::fmt;
use std::sync::atomic::{AtomicU16, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long closing a mesh waits for what its members still do.
const CLOSE_GRACE: Duration = Duration::from_secs(5);

/// Ids of tensors count from here, and those that the runners make from 0.
static NEXT_TENSOR: AtomicU64 = AtomicU64::new(1 << 62);

/// Ids of meshes; 0 is the default mesh.
static NEXT_SESSION: AtomicU16 = AtomicU16::new(1);

/// A new id for a tensor.
pub(super) fn next_id() -> TensorId {
    TensorId::new(NEXT_TENSOR.fetch_add(1, Ordering::Relaxed))
}

/// Why a mesh has stopped.
#[derive(Debug, Clone)]
pub(super) struct Fault {
    text: String,
}

impl Fault {
    pub(super) fn member(member: usize, label: &str, op: &str, cause: String) -> Self {
        Self {
            text: format!(
                "member {member} ({label}) failed in {op}: {cause}. \
                 The mesh has stopped: open it anew and load the model from its last record"
            ),
        }
    }

    pub(super) fn late(member: usize, label: &str, op: &str, limit: Duration) -> Self {
        let at = match op {
            "" => "has not begun to work".to_string(),
            op => format!("is at {op}"),
        };
        Self {
            text: format!(
                "member {member} ({label}) has not answered for {} s; it {at}. Its device may hang, \
                 or the timeout is too short. The mesh has stopped: open it anew and load the model \
                 from its last record",
                limit.as_secs_f64()
            ),
        }
    }

    pub(super) fn closed(mesh: &str) -> Self {
        Self {
            text: format!(
                "the mesh {mesh} was closed, and its tensors with it; \
                 read or move what is still needed before closing"
            ),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl From<&Fault> for ExecutionError {
    fn from(fault: &Fault) -> Self {
        Self::WithContext {
            reason: fault.to_string(),
        }
    }
}

/// Whether a mesh still works: the first fault stays.
#[derive(Debug, Default)]
pub(super) struct Health(OnceLock<Arc<Fault>>);

impl Health {
    pub(super) fn fault(&self) -> Option<Arc<Fault>> {
        self.0.get().cloned()
    }

    /// Reports a fault; of several the first is kept, and returned.
    pub(super) fn report(&self, fault: Fault) -> Arc<Fault> {
        self.0.get_or_init(|| Arc::new(fault)).clone()
    }
}

/// An open mesh. It lives as long as a handle does: a [`Mesh`](crate::Mesh), a device or a tensor.
pub(crate) struct Session<B: InnerBackend> {
    pub(super) id: u16,
    pub(super) core: Arc<MeshCore<B>>,
    pub(super) health: Arc<Health>,
    /// How many bytes of partial sums may be pending.
    pub(super) bucket_bytes: AtomicUsize,
    /// How long an answer may take, in microseconds; for ever where it is 0.
    pub(super) timeout: AtomicU64,
    queues: Vec<Arc<Queue<B>>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    state: Mutex<State>,
}

impl<B: InnerBackend> Session<B> {
    /// Starts a thread for each member.
    ///
    /// # Errors
    ///
    /// [`Error::Worker`] when a thread cannot be started.
    pub(super) fn start(core: Arc<MeshCore<B>>, id: Option<u16>) -> Result<Arc<Self>> {
        let id = id.unwrap_or_else(|| NEXT_SESSION.fetch_add(1, Ordering::Relaxed));
        let health = Arc::new(Health::default());
        let stream = StreamId::current();
        let mut queues = Vec::new();
        let mut threads = Vec::new();
        for (member, info) in core.members.iter().enumerate() {
            let queue = Arc::new(Queue::new());
            let worker = Worker::new(member, core.clone(), health.clone());
            let waiting = queue.clone();
            let thread = std::thread::Builder::new()
                .name(format!("mesh-{member}-{}", info.label))
                .spawn(move || worker.run(&waiting, stream))
                .map_err(|error| Error::Worker {
                    member,
                    device: info.label.clone(),
                    cause: format!("its thread could not be started: {error}"),
                });
            queues.push(queue);
            match thread {
                Ok(thread) => threads.push(thread),
                Err(error) => {
                    queues.iter().for_each(|queue| queue.close());
                    return Err(error);
                }
            }
        }
        let state = State::new(core.members.len());
        Ok(Arc::new(Self {
            id,
            core,
            health,
            bucket_bytes: AtomicUsize::new(crate::collective::DEFAULT_BUCKET_BYTES),
            timeout: AtomicU64::new(0),
            queues,
            threads: Mutex::new(threads),
            state: Mutex::new(state),
        }))
    }

    pub(super) fn members(&self) -> usize {
        self.queues.len()
    }

    /// What errors call it.
    pub(super) fn name(&self) -> String {
        let labels: Vec<&str> = self.core.members.iter().map(|m| m.label.as_str()).collect();
        labels.join(",")
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        // A panic under this lock leaves at worst a layout that no tensor has, which the members
        // then report.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a command for all members. The state is borrowed as a sign that its lock is held, so
    /// that all queues get commands in the same order.
    pub(super) fn send(&self, _order: &mut State, command: Command<B>) {
        let command = Arc::new(command);
        let limit = self.limit();
        for queue in &self.queues {
            if let (Err(Late), Some(limit)) = (queue.push(command.clone(), limit), limit) {
                self.late(limit);
            }
        }
    }

    fn limit(&self) -> Option<Duration> {
        match self.timeout.load(Ordering::Relaxed) {
            0 => None,
            micros => Some(Duration::from_micros(micros)),
        }
    }

    /// The next answer of a member to a command.
    ///
    /// # Errors
    ///
    /// That of a mesh that has ended, or ends now since the answer takes too long.
    pub(super) fn answer<T>(
        &self,
        answers: &Receiver<(usize, std::result::Result<T, Failure>)>,
    ) -> std::result::Result<(usize, T), ExecutionError> {
        let answer = match self.limit() {
            None => answers.recv().map_err(|_| self.ended())?,
            Some(limit) => answers.recv_timeout(limit).map_err(|error| match error {
                RecvTimeoutError::Timeout => self.late(limit).as_ref().into(),
                RecvTimeoutError::Disconnected => self.ended(),
            })?,
        };
        match answer {
            (member, Ok(answer)) => Ok((member, answer)),
            (member, Err(failure)) => Err(self.failure(member, failure)),
        }
    }

    /// Stops a mesh one of whose members takes too long: the one that has come least far.
    fn late(&self, limit: Duration) -> Arc<Fault> {
        let progress = self.queues.iter().map(|queue| queue.progress());
        let behind = progress.enumerate().min_by_key(|(_, at)| at.begun);
        let (member, op) = behind.map_or((0, ""), |(member, at)| (member, at.op));
        let label = &self.core.members[member].label;
        self.health.report(Fault::late(member, label, op, limit))
    }

    /// Asks all members, and waits for their answers.
    pub(super) fn ask(
        &self,
        command: impl FnOnce(Reply<()>) -> Command<B>,
    ) -> std::result::Result<(), ExecutionError> {
        let (reply, answers) = channel();
        self.send(&mut self.state(), command(reply));
        for _ in 0..self.members() {
            self.answer(&answers)?;
        }
        Ok(())
    }

    /// An answer that did not come, as the error that the reader gets.
    fn failure(&self, member: usize, failure: Failure) -> ExecutionError {
        match failure {
            Failure::Fault(fault) => fault.as_ref().into(),
            Failure::Device(error) => ExecutionError::WithContext {
                reason: format!(
                    "member {member} ({}) reported an error: {error}",
                    self.core.members[member].label
                ),
            },
        }
    }

    /// The error of a mesh whose threads have ended.
    pub(super) fn ended(&self) -> ExecutionError {
        match self.health.fault() {
            Some(fault) => fault.as_ref().into(),
            None => (&Fault::closed(&self.name())).into(),
        }
    }

    pub(super) fn sync(&self) -> std::result::Result<(), ExecutionError> {
        self.ask(Command::Sync)
    }

    /// Seeds the random numbers of the backend, which are the process's, after all draws so far.
    pub(super) fn seed(&self, seed: u64) {
        self.draw_all(&mut self.state());
        // A mesh that has stopped says so at the next read.
        if self.ask(Command::Fence).is_ok() {
            B::seed(&self.core.devices[0], seed);
        }
    }

    pub(super) fn cleanup(&self) {
        self.send(&mut self.state(), Command::Cleanup);
    }

    /// Ends the mesh: what is queued is given up, threads are joined, memory is freed, and tensors
    /// that are still there give an error when they are read.
    pub(super) fn close(&self) {
        self.health.report(Fault::closed(&self.name()));
        self.queues.iter().for_each(|queue| queue.close());
        let threads =
            std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for (thread, member) in threads.into_iter().zip(&self.core.members) {
            join_within(thread, CLOSE_GRACE, &member.label);
        }
    }
}

impl<B: InnerBackend> Drop for Session<B> {
    fn drop(&mut self) {
        self.close();
    }
}

impl<B: InnerBackend> fmt::Debug for Session<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("id", &self.id)
            .field("members", &self.name())
            .finish_non_exhaustive()
    }
}
