//! burn-train's own outputs, joined over the members.
//!
//! Predictions and targets are put one after the other in the order of the items. A loss of one
//! element is a mean over the part's items and becomes the mean over all of them, so that metrics see
//! what a single device would have given them.

use crate::collective::Transfer;
use crate::data_parallel::{Gather, join_means};
use burn::tensor::Tensor;
use burn::tensor::backend::Backend;
use burn::train::{
    ClassificationOutput, MultiLabelClassificationOutput, RegressionOutput, SequenceOutput,
};

macro_rules! with_loss {
    ($($name:ident { $($field:ident),+ })+) => {$(
        impl<B: Backend> Gather<B> for $name<B> {
            fn to_device(self, device: &B::Device, transfer: Transfer) -> Self {
                Self {
                    loss: transfer.tensor(self.loss, device),
                    $($field: transfer.tensor(self.$field, device),)+
                }
            }

            fn join(parts: Vec<Self>, weights: &[f64]) -> Self {
                let mut losses = Vec::with_capacity(parts.len());
                $(let mut $field = Vec::with_capacity(parts.len());)+
                for part in parts {
                    losses.push(part.loss);
                    $($field.push(part.$field);)+
                }
                Self {
                    loss: join_means(losses, weights),
                    $($field: Tensor::cat($field, 0),)+
                }
            }
        }
    )+};
}

with_loss! {
    ClassificationOutput { output, targets }
    MultiLabelClassificationOutput { output, targets }
    RegressionOutput { output, targets }
}

impl<B: Backend> Gather<B> for SequenceOutput<B> {
    fn to_device(self, device: &B::Device, transfer: Transfer) -> Self {
        Self {
            loss: transfer.tensor(self.loss, device),
            logits: transfer.tensor(self.logits, device),
            predictions: self.predictions.map(|p| transfer.tensor(p, device)),
            targets: transfer.tensor(self.targets, device),
        }
    }

    fn join(parts: Vec<Self>, weights: &[f64]) -> Self {
        let (mut losses, mut logits, mut targets) = (Vec::new(), Vec::new(), Vec::new());
        let mut predictions = Some(Vec::new());
        for part in parts {
            losses.push(part.loss);
            logits.push(part.logits);
            targets.push(part.targets);
            predictions = predictions.zip(part.predictions).map(|(mut all, part)| {
                all.push(part);
                all
            });
        }
        Self {
            loss: join_means(losses, weights),
            logits: Tensor::cat(logits, 0),
            predictions: predictions.map(|all| Tensor::cat(all, 0)),
            targets: Tensor::cat(targets, 0),
        }
    }
}
