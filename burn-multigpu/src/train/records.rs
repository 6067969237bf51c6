//! The state of a learner's optimizer, taken out, cut and joined.

use crate::error::{Error, Result};
use burn::module::ParamId;
use burn::optim::SimpleOptimizer;
use burn::optim::record::AdaptorRecord;
use burn::record::Record;
use burn::tensor::backend::{AutodiffBackend, Backend};
use burn::train::checkpoint::{
    AsyncCheckpointer, Checkpointer, CheckpointerError, CheckpointingAction, CheckpointingStrategy,
};
use burn::train::metric::store::EventStoreClient;
use burn::train::{Learner, LearnerOptimizerRecord, LearningCheckpointer, LearningComponentsTypes};
use std::sync::Mutex;
use std::sync::mpsc::{Sender, channel};

/// The record of an optimizer that keeps a state for each parameter by itself: what
/// [`OptimizerPlacement::Sharded`](super::OptimizerPlacement::Sharded) needs, and all of Burn's
/// optimizers have but L-BFGS.
pub trait StatePerParameter: Sized {
    /// Forgets the states of all parameters but those that `keep` chooses.
    fn retain(&mut self, keep: &dyn Fn(ParamId) -> bool);

    /// Takes over the states of `other`, which has those of other parameters.
    fn extend(&mut self, other: Self);
}

impl<O, B> StatePerParameter for hashbrown::HashMap<ParamId, AdaptorRecord<O, B>>
where
    O: SimpleOptimizer<B::InnerBackend>,
    B: AutodiffBackend,
{
    fn retain(&mut self, keep: &dyn Fn(ParamId) -> bool) {
        hashbrown::HashMap::retain(self, |id, _| keep(*id));
    }

    fn extend(&mut self, other: Self) {
        Extend::extend(self, other);
    }
}

/// How records are cut and joined, where their type allows it.
pub(super) struct RecordOps<LC: LearningComponentsTypes> {
    pub(super) retain: fn(&mut LearnerOptimizerRecord<LC>, &dyn Fn(ParamId) -> bool),
    pub(super) extend: fn(&mut LearnerOptimizerRecord<LC>, LearnerOptimizerRecord<LC>),
}

impl<LC: LearningComponentsTypes> Clone for RecordOps<LC> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<LC: LearningComponentsTypes> Copy for RecordOps<LC> {}

impl<LC: LearningComponentsTypes> RecordOps<LC>
where
    LearnerOptimizerRecord<LC>: StatePerParameter,
{
    pub(super) fn new() -> Self {
        Self {
            retain: StatePerParameter::retain,
            extend: StatePerParameter::extend,
        }
    }
}

/// The state of a learner's optimizer.
///
/// Burn's `Learner` shows its optimizer to nobody but the checkpointer, so this is a checkpoint that
/// is kept in memory.
pub(super) fn optimizer_record<LC: LearningComponentsTypes + 'static>(
    learner: &Learner<LC>,
    store: &EventStoreClient,
) -> Result<LearnerOptimizerRecord<LC>> {
    let (sender, record) = channel();
    let mut checkpointer = LearningCheckpointer::<LC>::new(
        AsyncCheckpointer::new(Forget),
        AsyncCheckpointer::new(Keep(Mutex::new(sender))),
        AsyncCheckpointer::new(Forget),
        Box::new(Once),
    );
    checkpointer.checkpoint(learner, 0, store);
    // Its threads have handled what they were sent when it is dropped.
    drop(checkpointer);
    record.recv().map_err(|_| Error::Placement {
        reason: "the optimizer's record could not be taken from the learner".to_string(),
    })
}

struct Once;

impl CheckpointingStrategy for Once {
    fn checkpointing(&mut self, _: usize, _: &EventStoreClient) -> Vec<CheckpointingAction> {
        vec![CheckpointingAction::Save]
    }
}

struct Forget;

impl<R: Record<B>, B: Backend> Checkpointer<R, B> for Forget {
    fn save(&self, _: usize, _: R) -> std::result::Result<(), CheckpointerError> {
        Ok(())
    }

    fn delete(&self, _: usize) -> std::result::Result<(), CheckpointerError> {
        Ok(())
    }

    fn restore(&self, _: usize, _: &B::Device) -> std::result::Result<R, CheckpointerError> {
        Err(CheckpointerError::Unknown("nothing is kept".to_string()))
    }
}

struct Keep<R>(Mutex<Sender<R>>);

impl<R: Record<B>, B: Backend> Checkpointer<R, B> for Keep<R> {
    fn save(&self, _: usize, record: R) -> std::result::Result<(), CheckpointerError> {
        let sender = self.0.lock().unwrap_or_else(|error| error.into_inner());
        let refused = |_| CheckpointerError::Unknown("nobody waits for it".to_string());
        sender.send(record).map_err(refused)
    }

    fn delete(&self, _: usize) -> std::result::Result<(), CheckpointerError> {
        Ok(())
    }

    fn restore(&self, _: usize, _: &B::Device) -> std::result::Result<R, CheckpointerError> {
        Err(CheckpointerError::Unknown("nothing is kept".to_string()))
    }
}
