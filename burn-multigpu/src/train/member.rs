//! What one member keeps and does.

use super::{MemberBackend, TrainInput, TrainOutput};
use crate::data_parallel::parts::{GradList, Model, States, fresh_leaves, put, take, take_states};
use crate::error::Result;
use burn::module::{Module, ModuleMapper, ModuleVisitor, Param, ParamId};
use burn::optim::LearningRate;
use burn::tensor::backend::AutodiffBackend;
use burn::tensor::{Tensor, TensorPrimitive};
use burn::train::{Learner, LearningComponentsTypes, TrainStep};
use burn_backend::ops::FloatTensorOps;
use burn_backend::tensor::FloatTensor;
use std::collections::HashSet;

/// A replica of the model, and the optimizer of the parameters that are this member's to update.
///
/// Burn's `Learner` gives neither its model away (all clones of a learner share the running statistics
/// of one) nor its optimizer. So forward and backward run on a replica of our own, the learner does
/// the update of its model from the reduced gradients, and the replica takes over what came out.
pub(super) struct Member<LC: LearningComponentsTypes> {
    /// None on members that update no parameter.
    pub(super) learner: Option<Learner<LC>>,
    pub(super) model: Model<LC::TrainingModel>,
    /// Gradients of earlier batches since the last update.
    pending: Option<GradList<LC::Backend>>,
}

/// What a member computed from its part of a batch.
pub(super) struct Local<LC: LearningComponentsTypes> {
    pub(super) output: TrainOutput<LC>,
    pub(super) states: States<LC::Backend>,
    /// Only when these gradients are reduced by themselves.
    pub(super) grads: Option<GradList<LC::Backend>>,
}

impl<LC: LearningComponentsTypes> Member<LC> {
    pub(super) fn new(learner: Option<Learner<LC>>, model: Model<LC::TrainingModel>) -> Self {
        Self {
            learner,
            model,
            pending: None,
        }
    }

    /// Makes ready for a batch; the learning rate of the step, where there is a learner.
    pub(super) fn begin(mut self) -> (Self, Option<LearningRate>) {
        self.model = fresh_leaves::<LC::Backend, _>(self.model);
        let rate = self.learner.as_mut().map(|learner| {
            learner.lr_step();
            learner.lr_current()
        });
        (self, rate)
    }

    /// Forward and backward.
    pub(super) fn step(&self, part: TrainInput<LC>, states: &[ParamId]) -> Result<Local<LC>> {
        let model = &self.model.module;
        let output = model.step(part);
        Ok(Local {
            grads: Some(take::<LC::Backend, _>(model, output.grads)?),
            states: take_states::<LC::Backend, _>(model, states),
            output: output.item,
        })
    }

    /// Keeps gradients, of which the batch has `factor` times as much, for the next update.
    pub(super) fn accumulate(mut self, grads: GradList<LC::Backend>, factor: f64) -> Self {
        type Ops<LC> = MemberBackend<LC>;
        let scale = |grad: FloatTensor<Ops<LC>>| match factor {
            1.0 => grad,
            factor => Ops::<LC>::float_mul_scalar(grad, factor.into()),
        };
        // A part that counts for nothing may be NaN, as a mean over no token is.
        let grads = grads
            .into_iter()
            .map(|grad| grad.filter(|_| factor != 0.0).map(scale));
        self.pending = Some(match self.pending.take() {
            None => grads.collect(),
            Some(earlier) => earlier
                .into_iter()
                .zip(grads)
                .map(|pair| match pair {
                    (Some(a), Some(b)) => Some(Ops::<LC>::float_add(a, b)),
                    (a, b) => a.or(b),
                })
                .collect(),
        });
        self
    }

    /// What has been kept since the last update.
    pub(super) fn take_pending(mut self) -> (Self, Option<GradList<LC::Backend>>) {
        let pending = self.pending.take();
        (self, pending)
    }

    /// Updates the learner's model from reduced gradients; the new values, where there is a gradient.
    pub(super) fn update(
        mut self,
        grads: GradList<LC::Backend>,
    ) -> (Self, Option<GradList<LC::Backend>>) {
        let Some(learner) = self.learner.as_mut() else {
            return (self, None);
        };
        let updated: Vec<bool> = grads.iter().map(Option::is_some).collect();
        let (grads, _) = put::<LC::Backend, _>(&learner.model(), grads);
        learner.optimizer_step(grads);
        let values = floats::<LC::Backend, _>(&learner.model())
            .into_iter()
            .zip(updated)
            .map(|((_, value), updated)| updated.then_some(value))
            .collect();
        (self, Some(values))
    }

    /// Takes over parameters from the learner's own model, all but the running statistics.
    pub(super) fn adopt_all(mut self, states: &[ParamId]) -> Self {
        if let Some(learner) = &self.learner {
            let values = floats::<LC::Backend, _>(&learner.model())
                .into_iter()
                .map(|(id, value)| (!states.contains(&id)).then_some(value));
            self.model = with_floats::<LC::Backend, _>(self.model, values.collect());
        }
        self
    }

    /// Takes over the given parameters, the learner's model included.
    pub(super) fn adopt(mut self, values: GradList<LC::Backend>) -> Self {
        self.model = with_floats::<LC::Backend, _>(self.model, values);
        if let Some(learner) = self.learner.as_mut() {
            learner.load_model(self.model.module.clone().into_record());
        }
        self
    }
}

/// The module's float parameters in visiting order, running statistics included.
pub(super) fn floats<B: AutodiffBackend, M: Module<B>>(
    module: &M,
) -> Vec<(ParamId, FloatTensor<B::InnerBackend>)> {
    struct Floats<B: AutodiffBackend>(Vec<(ParamId, FloatTensor<B::InnerBackend>)>);
    impl<B: AutodiffBackend> ModuleVisitor<B> for Floats<B> {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<B, D>>) {
            let value = param.val().inner().into_primitive().tensor();
            self.0.push((param.id, value));
        }
    }
    let mut visitor = Floats::<B>(Vec::new());
    module.visit(&mut visitor);
    visitor.0
}

/// Gives float parameters new values, at their places in visiting order; trainable ones become new
/// leaves.
fn with_floats<B, M>(model: Model<M>, values: GradList<B>) -> Model<M>
where
    B: AutodiffBackend,
    M: Module<B>,
{
    struct Set<B: AutodiffBackend> {
        values: std::vec::IntoIter<Option<FloatTensor<B::InnerBackend>>>,
        changed: HashSet<ParamId>,
    }
    impl<B: AutodiffBackend> ModuleMapper<B> for Set<B> {
        fn map_float<const D: usize>(&mut self, param: Param<Tensor<B, D>>) -> Param<Tensor<B, D>> {
            let Some(value) = self.values.next().flatten() else {
                return param;
            };
            let (id, old, mapper) = param.consume();
            let value = Tensor::from_primitive(TensorPrimitive::Float(value));
            let value = Tensor::from_inner(value).set_require_grad(old.is_require_grad());
            self.changed.insert(id);
            Param::from_mapped_value(id, value, mapper)
        }
    }
    let Model { module, mut tied } = model;
    let mut mapper = Set::<B> {
        values: values.into_iter(),
        changed: HashSet::new(),
    };
    let module = module.map(&mut mapper);
    // Burn updates a parameter at its first place; the other keeps its tensor.
    tied.retain(|id| !mapper.changed.contains(id));
    Model { module, tied }
}
