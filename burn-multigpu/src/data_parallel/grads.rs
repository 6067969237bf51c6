//! Gradients as a list of primitives in the order of the module's parameters, and back.

use crate::error::{Error, Result};
use burn::module::{AutodiffModule, Module, ModuleVisitor, Param, ParamId};
use burn::optim::GradientsParams;
use burn::tensor::backend::AutodiffBackend;
use burn::tensor::{Tensor, TensorPrimitive};
use burn_backend::tensor::FloatTensor;

/// One entry per float parameter of the module, in visiting order, which is the same in every
/// replica; `None` where the parameter got no gradient. A parameter that stands in the module twice
/// has its gradient at its first place.
pub(crate) type GradList<B> = Vec<Option<FloatTensor<<B as AutodiffBackend>::InnerBackend>>>;

/// Takes the gradients out of Burn's container.
pub(crate) fn take<B: AutodiffBackend, M: AutodiffModule<B>>(
    module: &M,
    grads: GradientsParams,
) -> Result<GradList<B>> {
    struct Take<B: AutodiffBackend> {
        grads: GradientsParams,
        list: GradList<B>,
        quantized: Option<ParamId>,
    }
    impl<B: AutodiffBackend> ModuleVisitor<B> for Take<B> {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<B, D>>) {
            let grad = self.grads.remove::<B::InnerBackend, D>(param.id);
            self.list.push(match grad.map(Tensor::into_primitive) {
                Some(TensorPrimitive::Float(grad)) => Some(grad),
                Some(TensorPrimitive::QFloat(_)) => {
                    self.quantized = Some(param.id);
                    None
                }
                None => None,
            });
        }
    }
    let mut visitor = Take::<B> {
        grads,
        list: Vec::new(),
        quantized: None,
    };
    module.visit(&mut visitor);
    match visitor.quantized {
        Some(id) => Err(Error::UnsupportedDType {
            dtype: format!("a quantized gradient (parameter {id})"),
        }),
        None => Ok(visitor.list),
    }
}

/// Puts a list as of [`take`] back into Burn's container; also the ids of those that have one.
pub(crate) fn put<B: AutodiffBackend, M: AutodiffModule<B>>(
    module: &M,
    list: GradList<B>,
) -> (GradientsParams, Vec<ParamId>) {
    struct Put<B: AutodiffBackend> {
        grads: GradientsParams,
        ids: Vec<ParamId>,
        list: std::vec::IntoIter<Option<FloatTensor<B::InnerBackend>>>,
    }
    impl<B: AutodiffBackend> ModuleVisitor<B> for Put<B> {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<B, D>>) {
            if let Some(grad) = self.list.next().flatten() {
                let grad =
                    Tensor::<B::InnerBackend, D>::from_primitive(TensorPrimitive::Float(grad));
                self.grads.register(param.id, grad);
                self.ids.push(param.id);
            }
        }
    }
    let mut visitor = Put::<B> {
        grads: GradientsParams::new(),
        ids: Vec::new(),
        list: list.into_iter(),
    };
    Module::<B>::visit(module, &mut visitor);
    (visitor.grads, visitor.ids)
}
