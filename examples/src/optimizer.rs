//! Burn's Adam and SGD behind one type, so that commands are written once.

use burn::module::AutodiffModule;
use burn::optim::adaptor::OptimizerAdaptor;
use burn::optim::{
    Adam, AdamConfig, GradientsParams, MultiGradientsParams, Optimizer, Sgd, SgdConfig,
};
use burn::tensor::backend::AutodiffBackend;
use serde::{Deserialize, Serialize};

/// Which optimizer.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, clap::ValueEnum, Default,
)]
#[serde(rename_all = "lowercase")]
pub enum OptimizerKind {
    /// Burn's Adam with its default settings.
    #[default]
    Adam,
    /// Burn's SGD without momentum.
    Sgd,
}

impl std::fmt::Display for OptimizerKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Adam => "adam",
            Self::Sgd => "sgd",
        })
    }
}

impl OptimizerKind {
    /// The learning rate that suits the digits.
    pub fn default_lr(self) -> f64 {
        match self {
            Self::Adam => 2e-3,
            Self::Sgd => 1e-1,
        }
    }

    /// The optimizer before its first step.
    pub fn init<B: AutodiffBackend, M: AutodiffModule<B>>(self) -> AnyOptimizer<B, M> {
        match self {
            Self::Adam => AnyOptimizer::Adam(AdamConfig::new().init()),
            Self::Sgd => AnyOptimizer::Sgd(SgdConfig::new().init()),
        }
    }
}

type AdamOf<B, M> = OptimizerAdaptor<Adam, M, B>;
type SgdOf<B, M> = OptimizerAdaptor<Sgd<<B as AutodiffBackend>::InnerBackend>, M, B>;

/// One of Burn's optimizers.
#[derive(Clone)]
pub enum AnyOptimizer<B: AutodiffBackend, M: AutodiffModule<B>> {
    /// Adam.
    Adam(AdamOf<B, M>),
    /// Stochastic gradient descent.
    Sgd(SgdOf<B, M>),
}

impl<B: AutodiffBackend, M: AutodiffModule<B>> std::fmt::Debug for AnyOptimizer<B, M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Adam(_) => "AnyOptimizer::Adam",
            Self::Sgd(_) => "AnyOptimizer::Sgd",
        })
    }
}

impl<B: AutodiffBackend, M: AutodiffModule<B>> Optimizer<M, B> for AnyOptimizer<B, M> {
    /// The state of the optimizer in use; the other's is absent.
    type Record = (
        Option<<AdamOf<B, M> as Optimizer<M, B>>::Record>,
        Option<<SgdOf<B, M> as Optimizer<M, B>>::Record>,
    );

    fn step(&mut self, lr: f64, module: M, grads: GradientsParams) -> M {
        match self {
            Self::Adam(optimizer) => optimizer.step(lr, module, grads),
            Self::Sgd(optimizer) => optimizer.step(lr, module, grads),
        }
    }

    fn step_multi(&mut self, lr: f64, module: M, grads: MultiGradientsParams) -> M {
        match self {
            Self::Adam(optimizer) => optimizer.step_multi(lr, module, grads),
            Self::Sgd(optimizer) => optimizer.step_multi(lr, module, grads),
        }
    }

    fn to_record(&self) -> Self::Record {
        match self {
            Self::Adam(optimizer) => (Some(optimizer.to_record()), None),
            Self::Sgd(optimizer) => (None, Some(optimizer.to_record())),
        }
    }

    /// Loads the state of the same optimizer; a record of the other one changes nothing.
    fn load_record(self, record: Self::Record) -> Self {
        match (self, record) {
            (Self::Adam(optimizer), (Some(record), _)) => Self::Adam(optimizer.load_record(record)),
            (Self::Sgd(optimizer), (_, Some(record))) => Self::Sgd(optimizer.load_record(record)),
            (optimizer, _) => optimizer,
        }
    }
}
