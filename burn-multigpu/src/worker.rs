//! One thread per mesh member.
//!
//! Invariants: a job never waits for another job, so a failed or slow member cannot block the
//! others; whoever submits a job learns of its end through a [`Ticket`], also when it panics; a
//! panic ends the job and not the thread.
//!
//! A job runs on the stream of the thread that submitted it. CubeCL gives every thread a stream of
//! its own, and its wgpu runtime hands memory that was freed in one stream out again while a task of
//! another stream that reads it still waits in that other stream's queue. With one stream for the
//! caller and all members, a device sees operations in the order in which they were issued.

use crate::error::{Error, Result};
use burn::tensor::StreamId;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

type Job = Box<dyn FnOnce() + Send>;

/// How long dropping a pool waits for jobs that still run before it leaves their threads behind.
const DROP_GRACE: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(crate) struct WorkerPool {
    workers: Vec<Worker>,
    timeout: Option<Duration>,
}

#[derive(Debug)]
struct Worker {
    label: String,
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl WorkerPool {
    /// Starts a thread for each label; the labels (`cuda:1`) name the members in errors.
    pub(crate) fn spawn(labels: impl IntoIterator<Item = String>) -> Result<Self> {
        let workers = labels
            .into_iter()
            .enumerate()
            .map(|(member, label)| {
                let (jobs, queue) = channel::<Job>();
                let thread = std::thread::Builder::new()
                    .name(format!("mesh-{member}-{label}"))
                    .spawn(move || queue.into_iter().for_each(|job| job()))
                    .map_err(|error| Error::Worker {
                        member,
                        device: label.clone(),
                        cause: format!("its thread could not be started: {error}"),
                    })?;
                Ok(Worker {
                    label,
                    jobs: Some(jobs),
                    thread: Some(thread),
                })
            })
            .collect::<Result<_>>()?;
        Ok(Self {
            workers,
            timeout: None,
        })
    }

    /// Jobs that take longer than this end in [`Error::Timeout`]; without it they may take for ever.
    pub(crate) fn set_timeout(&mut self, timeout: Option<Duration>) {
        self.timeout = timeout;
    }

    /// Queues a job on a member's thread.
    pub(crate) fn submit<T: Send + 'static>(
        &self,
        member: usize,
        job: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Ticket<T> {
        let worker = &self.workers[member];
        let (sender, result) = channel();
        let (label, timeout) = (worker.label.clone(), self.timeout);
        let name = label.clone();
        let stream = StreamId::current();
        let job: Job = Box::new(move || {
            let result =
                catch_unwind(AssertUnwindSafe(|| stream.executes(job))).unwrap_or_else(|panic| {
                    Err(Error::Worker {
                        member,
                        device: name,
                        cause: format!("panicked: {}", panic_message(panic.as_ref())),
                    })
                });
            // Nobody listens any more when the caller gave up waiting.
            let _ = sender.send(result);
        });
        if let Some(jobs) = &worker.jobs {
            // A closed queue drops the job and with it the sender, which the ticket reports.
            let _ = jobs.send(job);
        }
        Ticket {
            member,
            label,
            result,
            timeout,
        }
    }

    /// Runs one job per member, concurrently, and returns their results in member order.
    ///
    /// All jobs are waited for, also when one fails, so that no job of a failed call still runs
    /// when the next one starts. The first failure in member order is the one returned.
    pub(crate) fn run<T: Send + 'static, F>(
        &self,
        jobs: impl IntoIterator<Item = F>,
    ) -> Result<Vec<T>>
    where
        F: FnOnce() -> Result<T> + Send + 'static,
    {
        let tickets: Vec<_> = jobs
            .into_iter()
            .enumerate()
            .map(|(member, job)| self.submit(member, job))
            .collect();
        wait_all(tickets)
    }
}

/// Waits for all tickets; the first failure is returned once all have ended.
pub(crate) fn wait_all<T>(tickets: Vec<Ticket<T>>) -> Result<Vec<T>> {
    let results: Vec<Result<T>> = tickets.into_iter().map(Ticket::wait).collect();
    results.into_iter().collect()
}

/// The claim to a job's result.
#[derive(Debug)]
#[must_use = "a job's failure is only seen by waiting for its ticket"]
pub(crate) struct Ticket<T> {
    member: usize,
    label: String,
    result: Receiver<Result<T>>,
    timeout: Option<Duration>,
}

impl<T> Ticket<T> {
    pub(crate) fn wait(self) -> Result<T> {
        let received = match self.timeout {
            Some(timeout) => self.result.recv_timeout(timeout),
            None => self
                .result
                .recv()
                .map_err(|_| RecvTimeoutError::Disconnected),
        };
        received.unwrap_or_else(|error| {
            Err(match error {
                RecvTimeoutError::Timeout => Error::Timeout {
                    member: self.member,
                    device: self.label,
                    seconds: self.timeout.unwrap_or_default().as_secs_f64(),
                },
                RecvTimeoutError::Disconnected => Error::Worker {
                    member: self.member,
                    device: self.label,
                    cause: "its thread has ended".to_string(),
                },
            })
        })
    }
}

impl Drop for WorkerPool {
    fn drop(&mut self) {
        for worker in &mut self.workers {
            worker.jobs = None;
        }
        let deadline = Instant::now() + DROP_GRACE;
        for worker in &mut self.workers {
            let Some(thread) = worker.thread.take() else {
                continue;
            };
            let grace = deadline.saturating_duration_since(Instant::now());
            join_within(thread, grace, &worker.label);
        }
    }
}

/// Joins a thread that is about to end; one that does not is left behind with a warning.
pub(crate) fn join_within(thread: JoinHandle<()>, grace: Duration, label: &str) {
    // A job may hold the last handle of the mesh: a thread cannot wait for itself.
    if thread.thread().id() == std::thread::current().id() {
        return;
    }
    let deadline = Instant::now() + grace;
    while !thread.is_finished() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_micros(200));
    }
    if thread.is_finished() {
        let _ = thread.join();
    } else {
        log::warn!(
            "{label} is still at work after its mesh was dropped; its thread is left behind"
        );
    }
}

pub(crate) fn panic_message(panic: &(dyn Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(ToString::to_string)
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".to_string())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn pool(members: usize) -> WorkerPool {
        WorkerPool::spawn((0..members).map(|i| format!("flex:{i}"))).unwrap()
    }

    #[test]
    fn results_come_in_member_order() {
        let pool = pool(4);
        let slow_first = (0..4).map(|i| {
            move || {
                std::thread::sleep(Duration::from_millis(8 - 2 * i));
                Ok(i)
            }
        });
        assert_eq!(pool.run(slow_first).unwrap(), [0, 1, 2, 3]);
    }

    #[test]
    fn a_panic_names_the_member_and_the_pool_goes_on() {
        let pool = pool(3);
        let error = pool
            .run((0..3).map(|i| {
                move || {
                    assert!(i != 1, "item {i} is bad");
                    Ok(i)
                }
            }))
            .unwrap_err();
        assert!(
            matches!(&error, Error::Worker { member: 1, device, cause } if device == "flex:1" && cause.contains("item 1 is bad")),
            "{error}"
        );
        assert_eq!(pool.run((0..3).map(|i| move || Ok(i))).unwrap(), [0, 1, 2]);
    }

    #[test]
    fn a_slow_job_times_out_and_the_pool_can_be_dropped() {
        let mut pool = pool(2);
        pool.set_timeout(Some(Duration::from_millis(50)));
        let start = Instant::now();
        let error = pool
            .run((0..2).map(|i| {
                move || {
                    if i == 1 {
                        std::thread::sleep(Duration::from_secs(60));
                    }
                    Ok(())
                }
            }))
            .unwrap_err();
        assert!(matches!(error, Error::Timeout { member: 1, .. }), "{error}");
        drop(pool);
        assert!(start.elapsed() < DROP_GRACE + Duration::from_secs(5));
    }

    #[test]
    fn the_last_handle_may_be_dropped_on_its_own_thread() {
        let pool = std::sync::Arc::new(pool(1));
        let inner = pool.clone();
        let (sender, receiver) = channel();
        let ticket = pool.submit(0, move || {
            // Waits until the other handle is gone, so that this drop is the last one.
            receiver.recv().ok();
            drop(inner);
            Ok(())
        });
        drop(pool);
        sender.send(()).unwrap();
        ticket.wait().unwrap();
    }
}
