//! Which checkpoint a killed training goes on from.

use burn::record::FileRecorder;
use burn::tensor::backend::BackendTypes;
use burn::train::{
    LearnerModelRecord, LearnerOptimizerRecord, LearnerSchedulerRecord, LearningComponentsTypes,
};
use std::path::Path;

/// The last epoch in the directory of a training whose checkpoint is whole: model, optimizer and
/// scheduler can be loaded. `None` when there is none.
///
/// For [`SupervisedTraining::checkpoint`](burn::train::SupervisedTraining::checkpoint). A training
/// that was killed while it wrote a checkpoint leaves a part of a file, with which burn-train
/// panics; it keeps the last two by default, and the one before is whole. Loads the records to find
/// out, onto `device`.
pub fn last_checkpoint<LC, R>(
    directory: impl AsRef<Path>,
    recorder: &R,
    device: &<LC::Backend as BackendTypes>::Device,
) -> Option<usize>
where
    LC: LearningComponentsTypes,
    R: FileRecorder<LC::Backend>,
{
    let directory = directory.as_ref().join("checkpoint");
    let epoch = |entry: std::io::Result<std::fs::DirEntry>| -> Option<usize> {
        let name = entry.ok()?.file_name().into_string().ok()?;
        let number = name.strip_prefix("model-")?;
        number.split('.').next()?.parse().ok()
    };
    let mut epochs: Vec<usize> = std::fs::read_dir(&directory)
        .ok()?
        .filter_map(epoch)
        .collect();
    epochs.sort_unstable();
    let whole = |epoch: &usize| {
        let path = |name: &str| directory.join(format!("{name}-{epoch}"));
        recorder
            .load::<LearnerModelRecord<LC>>(path("model"), device)
            .is_ok()
            && recorder
                .load::<LearnerOptimizerRecord<LC>>(path("optim"), device)
                .is_ok()
            && recorder
                .load::<LearnerSchedulerRecord<LC>>(path("scheduler"), device)
                .is_ok()
    };
    epochs.into_iter().rev().find(whole)
}
