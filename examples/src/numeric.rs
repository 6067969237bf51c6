//! Parameters and gradients as plain numbers, and how far two lists of them are apart.

use burn::module::{AutodiffModule, Module, ModuleVisitor, Param};
use burn::optim::GradientsParams;
use burn::prelude::Backend;
use burn::tensor::Tensor;
use burn::tensor::backend::AutodiffBackend;

/// Tensors by the path of their parameter, in the order of the module.
pub type Values = Vec<(String, Vec<f64>)>;

/// Below this a reference counts as zero, and differences are taken as they are.
const TINY: f64 = 1e-300;

/// The parameters of a module.
pub fn parameters<B: Backend, M: Module<B>>(module: &M) -> Values {
    struct Visitor {
        path: Vec<String>,
        values: Values,
    }
    impl<B: Backend> ModuleVisitor<B> for Visitor {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<B, D>>) {
            self.values
                .push((self.path.join("."), numbers(param.val())));
        }
        fn enter_module(&mut self, name: &str, _container_type: &str) {
            self.path.push(name.to_owned());
        }
        fn exit_module(&mut self, _name: &str, _container_type: &str) {
            self.path.pop();
        }
    }
    let mut visitor = Visitor {
        path: Vec::new(),
        values: Vec::new(),
    };
    module.visit(&mut visitor);
    visitor.values
}

/// The gradients of a module's parameters; a parameter without one has an empty list.
pub fn gradients<B: AutodiffBackend, M: AutodiffModule<B>>(
    module: &M,
    grads: &GradientsParams,
) -> Values {
    struct Visitor<'a> {
        path: Vec<String>,
        grads: &'a GradientsParams,
        values: Values,
    }
    impl<B: AutodiffBackend> ModuleVisitor<B> for Visitor<'_> {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<B, D>>) {
            let grad = self.grads.get::<B::InnerBackend, D>(param.id);
            self.values
                .push((self.path.join("."), grad.map(numbers).unwrap_or_default()));
        }
        fn enter_module(&mut self, name: &str, _container_type: &str) {
            self.path.push(name.to_owned());
        }
        fn exit_module(&mut self, _name: &str, _container_type: &str) {
            self.path.pop();
        }
    }
    let mut visitor = Visitor {
        path: Vec::new(),
        grads,
        values: Vec::new(),
    };
    module.visit(&mut visitor);
    visitor.values
}

/// The elements of a tensor.
pub fn numbers<B: Backend, const D: usize>(tensor: Tensor<B, D>) -> Vec<f64> {
    tensor.into_data().iter::<f64>().collect()
}

/// What part of the largest element of all tensors a tensor's own scale is at least.
const FLOOR: f64 = 1e-6;

/// The largest relative difference between two lists of tensors: for each tensor, the largest
/// difference of an element over the largest element of the reference; of these the largest.
///
/// It is taken by tensor and not by element, because an element that is nearly zero is a sum whose
/// terms cancel, and its own relative error says nothing. The same holds of a whole tensor that is
/// zero but for rounding (the gradient of the bias of attention's keys, which softmax takes away
/// again): its scale is at least a millionth of the largest element of all tensors. The difference
/// is infinite when the lists are not of the same tensors or a number is not finite.
pub fn relative_difference(reference: &Values, other: &Values) -> f64 {
    if reference.len() != other.len() {
        return f64::INFINITY;
    }
    let floor = FLOOR * largest(reference.iter().flat_map(|(_, tensor)| tensor));
    reference
        .iter()
        .zip(other)
        .map(|((path, a), (other_path, b))| {
            if path != other_path || a.len() != b.len() {
                return f64::INFINITY;
            }
            norm_difference(a, b, floor)
        })
        .fold(0.0, f64::max)
}

/// The relative difference of two numbers.
pub fn relative_difference_of(reference: f64, other: f64) -> f64 {
    norm_difference(&[reference], &[other], 0.0)
}

fn largest<'a>(values: impl IntoIterator<Item = &'a f64>) -> f64 {
    values
        .into_iter()
        .fold(0.0, |largest: f64, x| largest.max(x.abs()))
}

fn norm_difference(a: &[f64], b: &[f64], floor: f64) -> f64 {
    let norm = largest(a).max(floor);
    let difference = a
        .iter()
        .zip(b)
        .map(|(x, y)| (x - y).abs())
        // `f64::max` would drop a NaN.
        .fold(0.0, |max: f64, d| {
            if d.is_nan() {
                f64::INFINITY
            } else {
                max.max(d)
            }
        });
    if difference == 0.0 {
        0.0
    } else {
        difference / norm.max(TINY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(tensors: &[&[f64]]) -> Values {
        tensors
            .iter()
            .enumerate()
            .map(|(i, tensor)| (i.to_string(), tensor.to_vec()))
            .collect()
    }

    #[test]
    fn the_worst_tensor_counts_relative_to_its_norm() {
        let reference = values(&[&[4.0, 1e-9], &[0.5]]);
        let other = values(&[&[4.0, 2e-9], &[0.25]]);
        assert_eq!(relative_difference(&reference, &other), 0.5);
        assert_eq!(relative_difference(&reference, &reference), 0.0);
        // Zero but for rounding, beside a tensor of some size.
        let (noise, other) = (values(&[&[1.0], &[1e-17]]), values(&[&[1.0], &[-1e-17]]));
        assert!(relative_difference(&noise, &other) < 1e-10);
        let zeros = values(&[&[0.0, 0.0]]);
        assert_eq!(relative_difference(&zeros, &zeros), 0.0);
    }

    #[test]
    fn what_cannot_be_compared_is_infinitely_far() {
        let reference = values(&[&[1.0, 2.0]]);
        for other in [
            values(&[]),
            values(&[&[]]),
            values(&[&[1.0, f64::NAN]]),
            values(&[&[f64::INFINITY, 2.0]]),
        ] {
            assert_eq!(relative_difference(&reference, &other), f64::INFINITY);
        }
        assert_eq!(
            relative_difference(&values(&[&[f64::NAN]]), &reference),
            f64::INFINITY
        );
    }
}
