//! Comparisons: the largest difference relative to the largest value, tensor by tensor.

use burn::module::{AutodiffModule, Module, ModuleVisitor, Param, ParamId};
use burn::optim::GradientsParams;
use burn::tensor::Tensor;
use burn::tensor::backend::{AutodiffBackend, Backend};

/// The values of a module's float parameters, in visiting order.
pub fn params<B: Backend, M: Module<B>>(module: &M) -> Vec<(ParamId, Vec<f64>)> {
    struct Values(Vec<(ParamId, Vec<f64>)>);
    impl<B: Backend> ModuleVisitor<B> for Values {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<B, D>>) {
            self.0.push((param.id, values(param.val())));
        }
    }
    let mut visitor = Values(Vec::new());
    module.visit(&mut visitor);
    visitor.0
}

/// The gradients of a module's float parameters, in visiting order; `None` where there is none.
pub fn grads<B: AutodiffBackend, M: AutodiffModule<B>>(
    module: &M,
    grads: &GradientsParams,
) -> Vec<Option<Vec<f64>>> {
    struct Values<'a>(&'a GradientsParams, Vec<Option<Vec<f64>>>);
    impl<B: AutodiffBackend> ModuleVisitor<B> for Values<'_> {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<B, D>>) {
            let grad = self.0.get::<B::InnerBackend, D>(param.id);
            self.1.push(grad.map(values));
        }
    }
    let mut visitor = Values(grads, Vec::new());
    Module::<B>::visit(module, &mut visitor);
    visitor.1
}

/// All elements of a tensor.
pub fn values<B: Backend, const D: usize>(tensor: Tensor<B, D>) -> Vec<f64> {
    tensor.into_data().iter::<f64>().collect()
}

/// `max |a - b| / max |a|`; the absolute difference where `a` is 0. NaN counts as infinite.
pub fn difference(a: &[f64], b: &[f64]) -> f64 {
    difference_above(a, b, 0.0)
}

fn difference_above(a: &[f64], b: &[f64], floor: f64) -> f64 {
    assert_eq!(a.len(), b.len(), "lengths differ");
    let worst = a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, worse);
    let scale = largest(a).max(floor);
    if scale > 0.0 { worst / scale } else { worst }
}

fn largest(values: &[f64]) -> f64 {
    values.iter().map(|a| a.abs()).fold(0.0, worse)
}

fn worse(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() {
        f64::INFINITY
    } else {
        a.max(b)
    }
}

/// The largest [`difference`] over the parameters of two copies of a module.
pub fn params_difference<B: Backend, M: Module<B>>(a: &M, b: &M) -> f64 {
    let (a, b) = (params(a), params(b));
    assert_eq!(a.len(), b.len());
    a.iter()
        .zip(&b)
        .map(|((id, a), (other, b))| {
            assert_eq!(id, other, "parameters in another order");
            difference(a, b)
        })
        .fold(0.0, worse)
}

/// The largest [`difference`] over two lists of gradients, which must exist in the same places.
///
/// A gradient that is zero but for rounding (that of the bias of attention's keys, which softmax
/// takes away again) has no scale of its own: a tensor's scale is at least a millionth of the
/// largest element of all.
pub fn grads_difference(a: &[Option<Vec<f64>>], b: &[Option<Vec<f64>>]) -> f64 {
    assert_eq!(a.len(), b.len());
    let floor = 1e-6 * a.iter().flatten().map(|a| largest(a)).fold(0.0, worse);
    a.iter()
        .zip(b)
        .map(|(a, b)| match (a, b) {
            (Some(a), Some(b)) => difference_above(a, b, floor),
            (None, None) => 0.0,
            _ => panic!("one has a gradient where the other has none"),
        })
        .fold(0.0, worse)
}
