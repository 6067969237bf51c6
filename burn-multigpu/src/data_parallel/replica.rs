//! Copies of a module, fresh leaves, running statistics.

use crate::collective::Transfer;
use crate::error::{Error, Result};
use burn::module::{
    AutodiffModule, Module, ModuleMapper, ModuleVisitor, Param, ParamId, ParamMapper,
};
use burn::record::{BinBytesRecorder, DoublePrecisionSettings, Record, Recorder};
use burn::tensor::backend::{AutodiffBackend, Backend};
use burn::tensor::{BasicOps, Bool, Int, Tensor, TensorPrimitive};
use burn_backend::ops::FloatTensorOps;
use burn_backend::tensor::FloatTensor;
use std::any::Any;
use std::collections::{HashMap, HashSet, VecDeque};

/// Initialises parameters that are still lazy. Must come before a module is copied: each copy of a
/// lazy parameter would draw values of its own.
pub(crate) fn initialize<B: Backend, M: Module<B>>(module: &M) {
    struct Initialize;
    impl<B: Backend> ModuleVisitor<B> for Initialize {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<B, D>>) {
            param.val();
        }
        fn visit_int<const D: usize>(&mut self, param: &Param<Tensor<B, D, Int>>) {
            param.val();
        }
        fn visit_bool<const D: usize>(&mut self, param: &Param<Tensor<B, D, Bool>>) {
            param.val();
        }
    }
    module.visit(&mut Initialize);
}

/// A copy of a module on a device that shares nothing with it, trainable parameters' memory
/// included: see [`own`]. The caller keeps `module` until all copies are made.
///
/// `Module::fork` does not do: Burn's `RunningState` is shared by all clones of a module and moved
/// in place, so that forks to several devices would fight over one. Going through the inner module
/// makes a new state, but forgets the parameters' load and save mappers and which of them are one
/// tensor in two places, which are carried over.
pub(crate) fn replicate<B: AutodiffBackend, M: AutodiffModule<B>>(
    module: &M,
    device: &B::Device,
    transfer: Transfer,
) -> Model<M> {
    let mut mappers = CollectMappers(VecDeque::new());
    let _ = module.clone().map(&mut mappers);
    let mut place = Place {
        device,
        transfer,
        mappers: mappers.0,
        placed: HashMap::new(),
        tied: HashSet::new(),
    };
    // `fork` is for constants of the module that are no parameters: the parameters are there already.
    // It makes a leaf of each place, which `fresh_leaves` joins again where they are one tensor.
    let module = M::from_inner(module.valid()).map(&mut place).fork(device);
    fresh_leaves(Model {
        module,
        tied: place.tied,
    })
}

/// A module, and which of its parameters stand in it twice as one tensor.
#[derive(Debug)]
pub(crate) struct Model<M> {
    pub(crate) module: M,
    pub(crate) tied: HashSet<ParamId>,
}

/// The load and save mappers of all parameters, in visiting order.
struct CollectMappers(VecDeque<Box<dyn Any>>);

impl<B: Backend> ModuleMapper<B> for CollectMappers {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<B, D>>) -> Param<Tensor<B, D>> {
        let (id, tensor, mapper) = param.consume();
        self.0.push_back(Box::new(mapper.clone()));
        Param::from_mapped_value(id, tensor, mapper)
    }
    fn map_int<const D: usize>(
        &mut self,
        param: Param<Tensor<B, D, Int>>,
    ) -> Param<Tensor<B, D, Int>> {
        let (id, tensor, mapper) = param.consume();
        self.0.push_back(Box::new(mapper.clone()));
        Param::from_mapped_value(id, tensor, mapper)
    }
    fn map_bool<const D: usize>(
        &mut self,
        param: Param<Tensor<B, D, Bool>>,
    ) -> Param<Tensor<B, D, Bool>> {
        let (id, tensor, mapper) = param.consume();
        self.0.push_back(Box::new(mapper.clone()));
        Param::from_mapped_value(id, tensor, mapper)
    }
}

/// Moves parameters to a device as new leaves and gives them their mappers back.
struct Place<'a, B: Backend> {
    device: &'a B::Device,
    transfer: Transfer,
    mappers: VecDeque<Box<dyn Any>>,
    /// The tensors so far, to find those that stand in two places.
    placed: HashMap<ParamId, Box<dyn Any>>,
    tied: HashSet<ParamId>,
}

impl<B: Backend> Place<'_, B> {
    fn mapper<T: burn::module::Parameter + 'static>(
        &mut self,
        own: ParamMapper<T>,
    ) -> ParamMapper<T> {
        self.mappers
            .pop_front()
            .and_then(|mapper| mapper.downcast().ok())
            .map_or(own, |mapper| *mapper)
    }

    fn place<const D: usize, K: BasicOps<B>>(&self, tensor: Tensor<B, D, K>) -> Tensor<B, D, K> {
        self.transfer.tensor(tensor, self.device)
    }
}

impl<B: AutodiffBackend> ModuleMapper<B> for Place<'_, B> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<B, D>>) -> Param<Tensor<B, D>> {
        let (id, tensor, mapper) = param.consume();
        let mapper = self.mapper(mapper);
        if let Some(first) = self.placed.get(&id).and_then(|any| any.downcast_ref::<Tensor<B, D>>())
            // After an update by a Burn optimizer they are two tensors under one id.
            && first.to_data() == tensor.to_data()
        {
            self.tied.insert(id);
            return Param::from_mapped_value(id, first.clone(), mapper);
        }
        let requires_grad = tensor.is_require_grad();
        let there = &tensor.device() == self.device;
        let mut inner = self.transfer.tensor(tensor.inner(), self.device);
        if there {
            inner = own(inner);
        }
        let tensor = Tensor::from_inner(inner).set_require_grad(requires_grad);
        self.placed.insert(id, Box::new(tensor.clone()));
        Param::from_mapped_value(id, tensor, mapper)
    }
    fn map_int<const D: usize>(
        &mut self,
        param: Param<Tensor<B, D, Int>>,
    ) -> Param<Tensor<B, D, Int>> {
        let (id, tensor, mapper) = param.consume();
        Param::from_mapped_value(id, self.place(tensor), self.mapper(mapper))
    }
    fn map_bool<const D: usize>(
        &mut self,
        param: Param<Tensor<B, D, Bool>>,
    ) -> Param<Tensor<B, D, Bool>> {
        let (id, tensor, mapper) = param.consume();
        Param::from_mapped_value(id, self.place(tensor), self.mapper(mapper))
    }
}

/// A tensor with memory of its own.
///
/// CubeCL 0.10 changes a tensor in place when its handle is the last one, and a thread gives its
/// handle up just before it queues the operation that reads it: of two threads that use up their
/// handles of one buffer at the same time, the second may overwrite what the first has yet to read.
/// Burn's fusion decides the same way. Replicas on one device therefore never share the memory of
/// what an optimizer uses up.
fn own<B: Backend, const D: usize>(tensor: Tensor<B, D>) -> Tensor<B, D> {
    if tensor.dtype().is_float() {
        tensor.mul_scalar(1.0)
    } else {
        tensor
    }
}

/// Makes every trainable parameter a new leaf of the autodiff graph.
///
/// A guard against a fault of Burn 0.21 (tracel-ai/burn#5573): the end of any backward pass sweeps
/// the graphs of *all* threads and drops those in which no node seems to be referenced. While an
/// operation of another thread is being registered, its inputs are not referenced, and the graph is
/// kept only by a leaf that is. A leaf that an earlier backward pass consumed is no longer in the
/// graph; a new one is, and the module holds it.
pub(crate) fn fresh_leaves<B: AutodiffBackend, M: AutodiffModule<B>>(model: Model<M>) -> Model<M> {
    struct Fresh<'a> {
        tied: &'a HashSet<ParamId>,
        leaves: HashMap<ParamId, Box<dyn Any>>,
    }
    impl<B: AutodiffBackend> ModuleMapper<B> for Fresh<'_> {
        fn map_float<const D: usize>(&mut self, param: Param<Tensor<B, D>>) -> Param<Tensor<B, D>> {
            let (id, mut tensor, mapper) = param.consume();
            if tensor.is_require_grad() {
                let leaf = self.leaves.get(&id).and_then(|any| any.downcast_ref());
                tensor = match leaf {
                    Some(leaf) => Tensor::clone(leaf),
                    None => Tensor::from_inner(tensor.inner()).require_grad(),
                };
                if self.tied.contains(&id) {
                    self.leaves.insert(id, Box::new(tensor.clone()));
                }
            }
            Param::from_mapped_value(id, tensor, mapper)
        }
    }
    let Model { module, tied } = model;
    let module = module.map(&mut Fresh {
        tied: &tied,
        leaves: HashMap::new(),
    });
    Model { module, tied }
}

/// A record on another member's device that shares no memory with the first, by way of bytes: the
/// one path that every record has.
pub(crate) fn copy_record<B: Backend, R: Record<B>>(
    record: R,
    member: usize,
    device: &B::Device,
) -> Result<R> {
    let recorder = BinBytesRecorder::<DoublePrecisionSettings>::new();
    recorder
        .record(record, ())
        .and_then(|bytes| recorder.load(bytes, device))
        .map_err(|error| Error::Worker {
            member,
            device: format!("{device:?}"),
            cause: format!("the optimizer's state could not be copied: {error}"),
        })
}

/// The ids of the module's running statistics, in visiting order.
///
/// They are visited like frozen parameters. What sets them apart is that they live in shared memory:
/// a change through a clone is seen in the original. The module must not be in use elsewhere.
pub(crate) fn running_states<B: AutodiffBackend, M: AutodiffModule<B>>(module: &M) -> Vec<ParamId> {
    let frozen = choose_floats::<B, M>(module, |requires_grad, _| !requires_grad);
    if frozen.is_empty() {
        return Vec::new();
    }
    let ids: Vec<ParamId> = frozen.iter().map(|(id, _)| *id).collect();
    let marked: Vec<_> = frozen
        .iter()
        .map(|(id, tensor)| {
            let marked = B::InnerBackend::float_add_scalar(tensor.clone(), 1.0f32.into());
            (*id, marked)
        })
        .collect();
    set_floats::<B, M>(module.clone(), marked);
    let changed: Vec<ParamId> = choose_floats::<B, M>(module, |_, id| ids.contains(&id))
        .into_iter()
        .zip(&frozen)
        .filter(|((_, now), (_, before))| {
            let read = |tensor: &FloatTensor<B::InnerBackend>| {
                crate::collective::read::<B::InnerBackend>(tensor.clone()).ok()
            };
            read(now) != read(before)
        })
        .map(|((id, _), _)| id)
        .collect();
    set_floats::<B, M>(module.clone(), frozen);
    changed
}

/// The running statistics, brought up to date with what the forward pass left for later.
pub(crate) fn take_states<B: AutodiffBackend, M: AutodiffModule<B>>(
    module: &M,
    ids: &[ParamId],
) -> Vec<FloatTensor<B::InnerBackend>> {
    if ids.is_empty() {
        return Vec::new();
    }
    // `valid` is what makes Burn's `RunningState` take in pending updates.
    let _ = module.valid();
    get_floats(module, ids)
}

/// Gives a replica the reduced running statistics, which all clones of a module share.
pub(crate) fn apply_states<B: AutodiffBackend, M: AutodiffModule<B>>(
    module: &M,
    ids: &[ParamId],
    values: Vec<FloatTensor<B::InnerBackend>>,
) {
    let values = ids.iter().copied().zip(values).collect();
    set_floats::<B, M>(module.clone(), values);
}

/// The values of the given float parameters, in visiting order.
pub(crate) fn get_floats<B: AutodiffBackend, M: AutodiffModule<B>>(
    module: &M,
    ids: &[ParamId],
) -> Vec<FloatTensor<B::InnerBackend>> {
    choose_floats::<B, M>(module, |_, id| ids.contains(&id))
        .into_iter()
        .map(|(_, tensor)| tensor)
        .collect()
}

type Chosen<B> = Vec<(ParamId, FloatTensor<<B as AutodiffBackend>::InnerBackend>)>;

/// The float parameters that a predicate on (requires grad, id) chooses, each once.
fn choose_floats<B: AutodiffBackend, M: AutodiffModule<B>>(
    module: &M,
    choose: impl Fn(bool, ParamId) -> bool,
) -> Chosen<B> {
    struct Choose<F, B: AutodiffBackend> {
        choose: F,
        chosen: Chosen<B>,
    }
    impl<F: Fn(bool, ParamId) -> bool, B: AutodiffBackend> ModuleVisitor<B> for Choose<F, B> {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<B, D>>) {
            let value = param.val();
            if (self.choose)(value.is_require_grad(), param.id)
                && !self.chosen.iter().any(|(id, _)| *id == param.id)
                && let TensorPrimitive::Float(tensor) = value.inner().into_primitive()
            {
                self.chosen.push((param.id, tensor));
            }
        }
    }
    let mut visitor = Choose {
        choose,
        chosen: Vec::new(),
    };
    module.visit(&mut visitor);
    visitor.chosen
}

/// Gives float parameters without gradient new values; running statistics change in all clones.
pub(crate) fn set_floats<B: AutodiffBackend, M: AutodiffModule<B>>(
    module: M,
    values: Chosen<B>,
) -> M {
    struct Set<B: AutodiffBackend>(Chosen<B>);
    impl<B: AutodiffBackend> ModuleMapper<B> for Set<B> {
        fn map_float<const D: usize>(&mut self, param: Param<Tensor<B, D>>) -> Param<Tensor<B, D>> {
            let (id, tensor, mapper) = param.consume();
            let tensor = match self.0.iter().find(|(value, _)| *value == id) {
                Some((_, value)) => {
                    let value = TensorPrimitive::Float(value.clone());
                    Tensor::from_inner(Tensor::from_primitive(value))
                }
                None => tensor,
            };
            Param::from_mapped_value(id, tensor, mapper)
        }
    }
    module.map(&mut Set::<B>(values))
}
