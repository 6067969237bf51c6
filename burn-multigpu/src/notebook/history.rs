//! The metrics of burn-train's `Learner`.

use super::chart::Chart;
use super::display::{show, table};
use crate::error::{Error, Result};
use crate::table::columns;
use burn::train::LearnerSummary;
use burn::train::metric::{MetricDefinition, MetricId, NumericEntry};
use burn::train::renderer::{
    EvaluationName, EvaluationProgress, MetricState, MetricsRenderer, MetricsRendererEvaluation,
    MetricsRendererTraining, ProgressType, TrainingProgress,
};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Collects the numeric metrics of a training in place of a progress bar, and shows them.
///
/// Clones are the same history: give one to the training and keep the other.
///
/// ```ignore
/// let history = History::new();
/// let training = SupervisedTraining::new(folder, train, valid)
///     .metrics((LossMetric::new(), AccuracyMetric::new()))
///     .renderer(history.clone())
///     .num_epochs(4);
/// let trained = MultiGpuStrategy::new(&mesh).launch(training, learner)?;
/// history.chart("Loss")? // at the end of a cell
/// ```
///
/// A metric of an epoch is the mean over its batches, weighted by what they count (for burn-train's
/// own metrics, their items).
#[derive(Clone, Default)]
pub struct History(Arc<Mutex<Record>>);

#[derive(Default)]
struct Record {
    /// By name: burn-train registers them in an order that differs from run to run.
    names: Vec<(MetricId, String)>,
    /// Values of the batch at hand, whose epoch is told after them.
    pending: Vec<(MetricId, NumericEntry)>,
    means: HashMap<(Split, String), Vec<Mean>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Split {
    Train,
    Valid,
}

/// A metric in an epoch.
#[derive(Clone, Copy)]
struct Mean {
    epoch: usize,
    sum: f64,
    count: f64,
}

impl History {
    /// Without a value yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The curves of a metric over the epochs: training, and validation where it has values.
    ///
    /// # Errors
    ///
    /// [`Error::Metric`] when the training has no such metric, or has not begun.
    pub fn chart(&self, metric: &str) -> Result<Chart> {
        let [train, valid] = [self.train(metric)?, self.valid(metric)?];
        let points = |values: &[(usize, f64)]| -> Vec<(f64, f64)> {
            values
                .iter()
                .map(|&(epoch, value)| (epoch as f64, value))
                .collect()
        };
        let mut chart = Chart::new(metric).axes("epoch", metric);
        for (name, values) in [("training", train), ("validation", valid)] {
            if !values.is_empty() {
                chart = chart.points(name, &points(&values));
            }
        }
        Ok(chart)
    }

    /// The epochs and a metric's mean over the training batches of each.
    ///
    /// # Errors
    ///
    /// As [`chart`](Self::chart).
    pub fn train(&self, metric: &str) -> Result<Vec<(usize, f64)>> {
        self.values(Split::Train, metric)
    }

    /// The epochs and a metric's mean over the validation batches of each.
    ///
    /// # Errors
    ///
    /// As [`chart`](Self::chart).
    pub fn valid(&self, metric: &str) -> Result<Vec<(usize, f64)>> {
        self.values(Split::Valid, metric)
    }

    fn values(&self, split: Split, metric: &str) -> Result<Vec<(usize, f64)>> {
        let record = self.record();
        if !record.names.iter().any(|(_, name)| name == metric) {
            return Err(Error::Metric {
                name: metric.to_string(),
                known: record.names.iter().map(|(_, name)| name.clone()).collect(),
            });
        }
        Ok(record.values(split, metric))
    }

    /// Shows a table of all metrics in a notebook, a row for each epoch.
    pub fn evcxr_display(&self) {
        let (head, rows) = self.record().table();
        let names: Vec<&str> = head.iter().map(String::as_str).collect();
        let right = vec![true; head.len()];
        show(
            "text/html",
            &table(&names, &right, &rows),
            &self.to_string(),
        );
    }

    fn record(&self) -> MutexGuard<'_, Record> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, state: MetricState) {
        if let MetricState::Numeric(entry, value) = state {
            self.record().pending.push((entry.metric_id, value));
        }
    }
}

impl Record {
    fn values(&self, split: Split, metric: &str) -> Vec<(usize, f64)> {
        let means = self.means.get(&(split, metric.to_string()));
        let means = means.map(Vec::as_slice).unwrap_or_default();
        means
            .iter()
            .map(|mean| (mean.epoch, mean.sum / mean.count))
            .collect()
    }

    /// Books the values of a batch that has been seen, now that its epoch is known.
    fn book(&mut self, split: Split, epoch: usize) {
        for (id, entry) in std::mem::take(&mut self.pending) {
            let Some((_, name)) = self.names.iter().find(|(known, _)| *known == id) else {
                continue;
            };
            let count = match entry {
                NumericEntry::Value(_) => 1.0,
                NumericEntry::Aggregated { count, .. } => count as f64,
            };
            let means = self.means.entry((split, name.clone())).or_default();
            if means.last().is_none_or(|mean| mean.epoch != epoch) {
                means.push(Mean {
                    epoch,
                    sum: 0.0,
                    count: 0.0,
                });
            }
            if let Some(mean) = means.last_mut() {
                mean.sum += entry.current() * count;
                mean.count += count;
            }
        }
    }

    /// A column for each metric and split that has values, a row for each epoch.
    fn table(&self) -> (Vec<String>, Vec<Vec<String>>) {
        let mut head = vec!["epoch".to_string()];
        let mut columns = Vec::new();
        for (_, name) in &self.names {
            for (split, word) in [(Split::Train, "training"), (Split::Valid, "validation")] {
                let values = self.values(split, name);
                if !values.is_empty() {
                    head.push(format!("{name}, {word}"));
                    columns.push(values.into_iter().collect::<HashMap<_, _>>());
                }
            }
        }
        let mut epochs: Vec<usize> = columns.iter().flat_map(|c| c.keys().copied()).collect();
        epochs.sort_unstable();
        epochs.dedup();
        let rows = epochs.into_iter().map(|epoch| {
            let values = columns.iter().map(|column| match column.get(&epoch) {
                Some(value) => format!("{value:.3}"),
                None => "-".to_string(),
            });
            std::iter::once(epoch.to_string()).chain(values).collect()
        });
        (head, rows.collect())
    }
}

impl fmt::Display for History {
    /// A line for each epoch.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (head, rows) = self.record().table();
        if rows.is_empty() {
            return f.write_str("no metrics yet");
        }
        let right = vec![true; head.len()];
        let lines: Vec<Vec<String>> = std::iter::once(head).chain(rows).collect();
        f.write_str(&columns(&right, &lines))
    }
}

impl fmt::Debug for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = self
            .record()
            .names
            .iter()
            .map(|(_, name)| name.clone())
            .collect();
        f.debug_tuple("History").field(&names).finish()
    }
}

impl MetricsRendererTraining for History {
    fn update_train(&mut self, state: MetricState) {
        self.note(state);
    }

    fn update_valid(&mut self, state: MetricState) {
        self.note(state);
    }

    fn render_train(&mut self, item: TrainingProgress, _: Vec<ProgressType>) {
        self.record()
            .book(Split::Train, item.global_progress.items_processed);
    }

    fn render_valid(&mut self, item: TrainingProgress, _: Vec<ProgressType>) {
        self.record()
            .book(Split::Valid, item.global_progress.items_processed);
    }

    /// Nothing is printed: the history is asked.
    fn on_train_end(
        &mut self,
        _: Option<LearnerSummary>,
    ) -> Result<(), Box<dyn std::error::Error>> {
        Ok(())
    }
}

/// An evaluation is no part of the history.
impl MetricsRendererEvaluation for History {
    fn update_test(&mut self, _: EvaluationName, _: MetricState) {}
    fn render_test(&mut self, _: EvaluationProgress, _: Vec<ProgressType>) {}
}

impl MetricsRenderer for History {
    fn manual_close(&mut self) {}

    fn register_metric(&mut self, definition: MetricDefinition) {
        let mut record = self.record();
        record.names.push((definition.metric_id, definition.name));
        record.names.sort_by(|a, b| a.1.cmp(&b.1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::data::dataloader::Progress;
    use burn::train::metric::{MetricAttributes, MetricEntry, SerializedEntry};

    const GOOD: &str = "it is as it should be";

    fn id(name: &str) -> MetricId {
        MetricId::new(Arc::new(name.to_string()))
    }

    fn register(history: &mut History, name: &str) {
        history.register_metric(MetricDefinition {
            metric_id: id(name),
            name: name.to_string(),
            description: None,
            attributes: MetricAttributes::None,
        });
    }

    fn batch(value: f64, count: usize) -> MetricState {
        let entry = MetricEntry::new(
            id("Loss"),
            SerializedEntry::new(String::new(), String::new()),
        );
        let value = NumericEntry::Aggregated {
            aggregated_value: value,
            count,
        };
        MetricState::Numeric(entry, value)
    }

    fn progress(epoch: usize) -> TrainingProgress {
        TrainingProgress {
            global_progress: Progress::new(epoch, 2),
            ..TrainingProgress::none()
        }
    }

    #[test]
    fn batches_make_epochs() {
        let history = History::new();
        let mut renderer = history.clone();
        register(&mut renderer, "Loss");
        for (epoch, value, count) in [(1, 2.0, 30), (1, 1.0, 10), (2, 0.5, 30)] {
            renderer.update_train(batch(value, count));
            renderer.render_train(progress(epoch), Vec::new());
        }
        renderer.update_valid(batch(0.25, 8));
        renderer.render_valid(progress(2), Vec::new());
        assert_eq!(history.train("Loss").expect(GOOD), [(1, 1.75), (2, 0.5)]);
        assert_eq!(history.valid("Loss").expect(GOOD), [(2, 0.25)]);
        let expected = "\
epoch  Loss, training  Loss, validation
    1           1.750                 -
    2           0.500             0.250";
        assert_eq!(history.to_string(), expected);
        let svg = history.chart("Loss").expect(GOOD).to_svg();
        for text in ["training", "validation", "epoch"] {
            assert!(svg.contains(&format!("\n{text}\n")), "{text}: {svg}");
        }
    }

    #[test]
    fn unknown_metrics_are_refused() {
        let mut history = History::new();
        assert_eq!(history.to_string(), "no metrics yet");
        let message =
            |history: &History| history.chart("Accuracy").expect_err("unknown").to_string();
        assert_eq!(
            message(&history),
            "there is no metric `Accuracy`: no training has begun with this history"
        );
        register(&mut history, "Recall");
        register(&mut history, "Loss");
        assert_eq!(
            message(&history),
            "there is no metric `Accuracy`; the training has Loss, Recall"
        );
    }
}
