//! The loop over epochs: training, validation, checkpoints, stopping.

use super::loader::{Origin, Prefetch};
use super::replicas::Replicas;
use super::strategy::MultiGpuStrategy;
use super::{MemberBackend, TrainInput, TrainOutput, ValidInput, ValidOutput};
use crate::data_parallel::{Batch, Gather};
use crate::error::Result;
use burn::data::dataloader::Progress;
use burn::train::{
    EventProcessorTraining, Learner, LearnerEvent, LearningComponentsTypes,
    SupervisedTrainingEventProcessor, TrainLoader, TrainingComponents, TrainingItem, TrainingModel,
    ValidLoader,
};

/// The state of a training that epochs share.
struct Fit<'a, LC: LearningComponentsTypes> {
    strategy: &'a MultiGpuStrategy<LC>,
    replicas: Replicas<LC>,
    train: TrainLoader<LC>,
    valid: ValidLoader<LC>,
}

/// Trains, and returns the model with what is left to do with the metrics.
pub(super) fn fit<LC>(
    strategy: &MultiGpuStrategy<LC>,
    components: TrainingComponents<LC>,
    learner: Learner<LC>,
    train: TrainLoader<LC>,
    valid: ValidLoader<LC>,
    starting_epoch: usize,
) -> Result<(TrainingModel<LC>, SupervisedTrainingEventProcessor<LC>)>
where
    LC: LearningComponentsTypes + 'static,
    TrainInput<LC>: Batch<LC::Backend>,
    TrainOutput<LC>: Gather<LC::Backend>,
    ValidInput<LC>: Batch<MemberBackend<LC>>,
    ValidOutput<LC>: Gather<MemberBackend<LC>>,
{
    let TrainingComponents {
        num_epochs,
        mut checkpointer,
        grad_accumulation,
        interrupter,
        mut early_stopping,
        mut event_processor,
        event_store,
        ..
    } = components;
    let mesh = strategy.mesh();
    let home = &mesh.devices()[0];
    let fit = Fit {
        strategy,
        replicas: Replicas::new(learner, mesh, strategy.settings().clone(), &event_store)?,
        train: train.to_device(home),
        valid: valid.to_device(home),
    };
    // A loader that shuffles draws a new order with every epoch: those that were made before the
    // checkpoint have had theirs.
    for _ in 1..starting_epoch {
        drop(fit.train.iter());
        drop(fit.valid.iter());
    }
    let accumulation = grad_accumulation.unwrap_or(1).max(1);
    let stopped = || interrupter.should_stop();

    for epoch in starting_epoch..=num_epochs {
        let global = Progress::new(epoch, num_epochs);
        fit.train_epoch(&global, accumulation, &mut event_processor, &stopped)?;
        if stopped() {
            let reason = interrupter.get_message();
            let reason = reason.as_deref().unwrap_or("no reason was given");
            log::info!("training stopped in epoch {epoch}: {reason}");
            break;
        }
        fit.valid_epoch(&global, &mut event_processor, &stopped)?;
        if let Some(checkpointer) = &mut checkpointer {
            checkpointer.checkpoint(&fit.replicas.whole(&event_store)?, epoch, &event_store);
        }
        if let Some(early_stopping) = &mut early_stopping
            && early_stopping.should_stop(epoch, &event_store)
        {
            break;
        }
    }
    Ok((fit.replicas.model()?, event_processor))
}

impl<LC> Fit<'_, LC>
where
    LC: LearningComponentsTypes + 'static,
    TrainInput<LC>: Batch<LC::Backend>,
    TrainOutput<LC>: Gather<LC::Backend>,
    ValidInput<LC>: Batch<MemberBackend<LC>>,
    ValidOutput<LC>: Gather<MemberBackend<LC>>,
{
    fn train_epoch(
        &self,
        global: &Progress,
        accumulation: usize,
        processor: &mut SupervisedTrainingEventProcessor<LC>,
        stopped: &dyn Fn() -> bool,
    ) -> Result<()> {
        let epoch = global.items_processed;
        let origin = Origin {
            split: "training",
            epoch,
        };
        let (mesh, batch) = (self.strategy.mesh(), self.strategy.settings().batch);
        let mut batches =
            Prefetch::start::<LC::Backend, MemberBackend<LC>>(&self.train, mesh, batch, origin)?;
        let mut iteration = 0;
        while let Some(batch) = batches.next()? {
            iteration += 1;
            let progress = batch.progress.clone();
            let update = iteration % accumulation == 0;
            let (item, rate) = self.replicas.train_step(batch, accumulation > 1, update)?;
            let item =
                TrainingItem::new(item, progress, global.clone(), Some(iteration), Some(rate));
            processor.process_train(LearnerEvent::ProcessedItem(item));
            if stopped() {
                break;
            }
        }
        // As with a single device, whose accumulator lives for an epoch.
        self.replicas.forget_pending()?;
        processor.process_train(LearnerEvent::EndEpoch(epoch));
        Ok(())
    }

    fn valid_epoch(
        &self,
        global: &Progress,
        processor: &mut SupervisedTrainingEventProcessor<LC>,
        stopped: &dyn Fn() -> bool,
    ) -> Result<()> {
        let epoch = global.items_processed;
        let origin = Origin {
            split: "validation",
            epoch,
        };
        let (mesh, batch) = (self.strategy.mesh(), self.strategy.settings().batch);
        type B<LC> = MemberBackend<LC>;
        let mut batches = Prefetch::start::<B<LC>, B<LC>>(&self.valid, mesh, batch, origin)?;
        let mut iteration = 0;
        while let Some(batch) = batches.next()? {
            iteration += 1;
            let progress = batch.progress.clone();
            let item = self.replicas.valid_step(batch)?;
            let item = TrainingItem::new(item, progress, global.clone(), Some(iteration), None);
            processor.process_valid(LearnerEvent::ProcessedItem(item));
            if stopped() {
                break;
            }
        }
        processor.process_valid(LearnerEvent::EndEpoch(epoch));
        Ok(())
    }
}
