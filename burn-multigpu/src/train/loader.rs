//! The thread that loads batches, cuts them and uploads the parts ahead of the step.

use super::strategy::LoaderBatch;
use crate::data_parallel::Batch;
use crate::data_parallel::parts::{cut, one_each};
use crate::error::{Error, Result};
use crate::mesh::Mesh;
use crate::worker::{join_within, panic_message};
use burn::data::dataloader::{DataLoader, DataLoaderIterator, Progress};
use burn::tensor::StreamId;
use burn::tensor::backend::Backend;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Number of batches that wait on the devices for their step.
const AHEAD: usize = 2;

/// How long dropping a loader waits for a batch that is being loaded.
const GRACE: Duration = Duration::from_secs(5);

/// A batch, cut into a part for each member that has items.
pub(super) struct Loaded<I> {
    pub(super) parts: Vec<Option<I>>,
    /// Items of the parts that are there.
    pub(super) items: Vec<usize>,
    /// How much these parts count in the mean.
    pub(super) weights: Vec<f64>,
    pub(super) progress: Progress,
}

/// An epoch of batches, loaded ahead on a thread of its own.
pub(super) struct Prefetch<I> {
    batches: Option<Receiver<Result<Loaded<I>>>>,
    thread: Option<JoinHandle<()>>,
}

/// Which data an error is about.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origin {
    pub(super) split: &'static str,
    pub(super) epoch: usize,
}

impl<I> Prefetch<I> {
    /// Starts the thread. `B` is the backend of the batches, whose first member's device the loader
    /// uploads to, and `M` that of the mesh.
    pub(super) fn start<B, M>(
        loader: &Arc<dyn DataLoader<B, I>>,
        mesh: &Mesh<M>,
        batch: LoaderBatch,
        origin: Origin,
    ) -> Result<Self>
    where
        M: Backend,
        B: Backend<Device = M::Device>,
        I: Batch<B>,
    {
        let (sender, batches) = sync_channel(AHEAD);
        let (loader, mesh, stream) = (loader.clone(), mesh.clone(), StreamId::current());
        let thread = std::thread::Builder::new()
            .name(format!("mesh-{}-loader", origin.split))
            // On the caller's stream, as the members' work is: see `worker`.
            .spawn(move || stream.executes(|| load(loader.as_ref(), &mesh, batch, origin, &sender)))
            .map_err(|error| Error::DataLoader {
                split: origin.split,
                epoch: origin.epoch,
                batch: 1,
                cause: format!("its thread could not be started: {error}"),
            })?;
        Ok(Self {
            batches: Some(batches),
            thread: Some(thread),
        })
    }

    /// The next batch, `None` at the end of the epoch.
    pub(super) fn next(&mut self) -> Result<Option<Loaded<I>>> {
        let received = self.batches.as_ref().and_then(|b| b.recv().ok());
        received.transpose()
    }
}

impl<I> Drop for Prefetch<I> {
    fn drop(&mut self) {
        // The thread ends when it has nobody to give its batch to.
        self.batches = None;
        if let Some(thread) = self.thread.take() {
            join_within(thread, GRACE, "the data loader");
        }
    }
}

/// Runs on the loader's thread, until the epoch or the interest in it ends.
fn load<B, M, I>(
    loader: &dyn DataLoader<B, I>,
    mesh: &Mesh<M>,
    batch: LoaderBatch,
    origin: Origin,
    sender: &SyncSender<Result<Loaded<I>>>,
) where
    M: Backend,
    B: Backend<Device = M::Device>,
    I: Batch<B>,
{
    let mut number = 0;
    // User code panics: datasets have no other way to report that they cannot read an item.
    let ended = catch_unwind(AssertUnwindSafe(|| {
        let mut iterator = loader.iter();
        loop {
            number += 1;
            let loaded = match batch {
                LoaderBatch::Global => whole(iterator.as_mut(), mesh),
                LoaderBatch::PerMember => next_of_each(iterator.as_mut(), mesh),
            };
            let Some(loaded) = loaded else {
                let progress = iterator.progress();
                warn_if_short(&progress, origin);
                return;
            };
            let failed = loaded.is_err();
            if sender.send(loaded).is_err() || failed {
                return;
            }
        }
    }));
    if let Err(panic) = ended {
        // Not received when the training has ended already.
        let _ = sender.send(Err(Error::DataLoader {
            split: origin.split,
            epoch: origin.epoch,
            batch: number,
            cause: cause(panic_message(panic.as_ref())),
        }));
    }
}

/// A multi-threaded loader of Burn's loses the message of a worker that panics.
fn cause(message: String) -> String {
    if message.contains("RecvError") {
        "a thread of the data loader panicked; its message is printed above (a loader without \
         workers gives it here)"
            .to_string()
    } else {
        message
    }
}

/// A dataset that has an item no more than it said ends Burn's epoch without a word.
fn warn_if_short(progress: &Progress, origin: Origin) {
    if progress.items_processed < progress.items_total {
        log::warn!(
            "the {} data of epoch {} ended after {} of {} items: its dataset returned None",
            origin.split,
            origin.epoch,
            progress.items_processed,
            progress.items_total,
        );
    }
}

/// The next batch of the loader, cut into one part per member.
fn whole<B, M, I>(
    iterator: &mut dyn DataLoaderIterator<I>,
    mesh: &Mesh<M>,
) -> Option<Result<Loaded<I>>>
where
    M: Backend,
    B: Backend<Device = M::Device>,
    I: Batch<B>,
{
    let batch = iterator.next()?;
    let parts = cut::<B, I>(batch, mesh.len());
    Some(parts.map(|parts| place::<B, M, I>(parts, mesh, iterator.progress())))
}

/// The next batches of the loader, one for each member as far as they go.
fn next_of_each<B, M, I>(
    iterator: &mut dyn DataLoaderIterator<I>,
    mesh: &Mesh<M>,
) -> Option<Result<Loaded<I>>>
where
    M: Backend,
    B: Backend<Device = M::Device>,
    I: Batch<B>,
{
    let next = (0..mesh.len()).map_while(|_| iterator.next());
    let batches: Vec<I> = next.collect();
    if batches.is_empty() {
        return None;
    }
    Some(one_each::<B, I>(batches).map(|mut parts| {
        parts.resize_with(mesh.len(), || None);
        place::<B, M, I>(parts, mesh, iterator.progress())
    }))
}

/// Takes the parts to their members' devices.
fn place<B, M, I>(parts: Vec<Option<I>>, mesh: &Mesh<M>, progress: Progress) -> Loaded<I>
where
    M: Backend,
    B: Backend<Device = M::Device>,
    I: Batch<B>,
{
    let core = mesh.core();
    let (mut items, mut weights) = (Vec::new(), Vec::new());
    let parts = parts
        .into_iter()
        .enumerate()
        .map(|(member, part)| {
            let part = part?;
            items.push(part.items());
            weights.push(part.weight());
            Some(part.to_device(&core.devices[member], core.transfers.path(0, member)))
        })
        .collect();
    Loaded {
        parts,
        items,
        weights,
        progress,
    }
}
