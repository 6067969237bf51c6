//! A case: an operation, or a few, on inputs from a [`Place`].

use super::place::Place;
use burn::tensor::backend::Backend;
use burn::tensor::{BasicOps, Bool, Float, Int, Tensor, TensorData};
use std::fmt;

/// A case, on a backend that [`Place`] `P` is for.
pub(super) struct Case<P> {
    /// What failures call it.
    pub(super) name: &'static str,
    /// What it does: its results, all of which are compared.
    pub(super) run: fn(&P) -> Vec<TensorData>,
    /// Whether it is run with `f64` as well: not where Burn mixes in its default type of floats.
    pub(super) doubles: bool,
}

impl<P> Case<P> {
    /// A case for all types of floats.
    pub(super) fn new(name: &'static str, run: fn(&P) -> Vec<TensorData>) -> Self {
        Self {
            name,
            run,
            doubles: true,
        }
    }

    /// The same for Burn's default type of floats only.
    pub(super) fn default_float(mut self) -> Self {
        self.doubles = false;
        self
    }
}

impl<P> fmt::Debug for Case<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Case").field(&self.name).finish()
    }
}

/// A kind of tensor that cases can be generic over.
pub(super) trait Kind<B: Backend>: BasicOps<B> + Sized {
    /// Values of all sorts.
    fn make<P: Place<B>, const D: usize>(place: &P, dims: [usize; D]) -> Tensor<B, D, Self>;
}

impl<B: Backend> Kind<B> for Float {
    fn make<P: Place<B>, const D: usize>(place: &P, dims: [usize; D]) -> Tensor<B, D> {
        place.float(dims)
    }
}

impl<B: Backend> Kind<B> for Int {
    fn make<P: Place<B>, const D: usize>(place: &P, dims: [usize; D]) -> Tensor<B, D, Int> {
        place.int(-9..=9, dims)
    }
}

impl<B: Backend> Kind<B> for Bool {
    fn make<P: Place<B>, const D: usize>(place: &P, dims: [usize; D]) -> Tensor<B, D, Bool> {
        place.bool(dims)
    }
}

/// Reads the results of a case.
macro_rules! out {
    ($($tensor:expr),+ $(,)?) => { vec![$($tensor.into_data()),+] };
}
pub(super) use out;

/// Cases for each kind of tensor, of functions that are generic over it.
macro_rules! for_kinds {
    ($list:ident: $($name:literal $function:ident),+ $(,)?) => {
        $list.extend([$(
            Case::new(concat!("float ", $name), $function::<B, P, Float>),
            Case::new(concat!("int ", $name), $function::<B, P, Int>),
            Case::new(concat!("bool ", $name), $function::<B, P, Bool>),
        )+]);
    };
}
pub(super) use for_kinds;

/// Cases of closures that take their place as `$p`.
macro_rules! cases {
    ($list:ident, $p:ident: $($name:literal => $body:expr),+ $(,)?) => {
        $list.extend([$( Case::new($name, |$p: &P| $body) ),+]);
    };
}
pub(super) use cases;
