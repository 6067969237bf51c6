//! Layouts for users, and the mesh as a device.

use super::client::MeshClient;
use super::device::MeshDevice;
use super::explain::OperationStats;
use super::session::Session;
use super::{InnerBackend, MultiGpu};
use crate::error::Result;
use crate::layout::Layout;
use crate::mesh::{DecoratorInfo, Mesh};
use burn::backend::Autodiff;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::tensor::{
    Bool, Element, Float, FloatDType, Int, IntDType, Tensor, TensorPrimitive, get_device_settings,
    set_default_dtypes,
};
use burn_ir::{TensorIr, TensorStatus};
use burn_router::RouterTensor;
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

impl<B: InnerBackend> Mesh<B> {
    /// The mesh as one Burn device, for the backend [`MultiGpu<B>`](MultiGpu).
    ///
    /// The device is a handle as the mesh is: either keeps the members' threads running, and so
    /// does every tensor on it. Tensors are created in the default types of the first member's
    /// device, as `set_default_dtypes` has set them before; they cannot be changed after this.
    ///
    /// ```
    /// use burn::backend::Flex;
    /// use burn::tensor::{Distribution, Tensor};
    /// use burn_multigpu::{Mesh, MultiGpu};
    ///
    /// let mesh = Mesh::<Flex>::open("flex:0,1")?;
    /// let x = Tensor::<MultiGpu<Flex>, 2>::random([6, 2], Distribution::Default, &mesh.device());
    /// assert_eq!(x.mean().shape().dims(), [1]);
    /// # Ok::<(), burn_multigpu::Error>(())
    /// ```
    ///
    /// # Panics
    ///
    /// When the system starts no thread for a member; [`try_device`](Self::try_device) returns that
    /// as an error.
    #[must_use]
    pub fn device(&self) -> MeshDevice<B> {
        match self.try_device() {
            Ok(device) => device,
            Err(error) => panic!("{error}"),
        }
    }

    /// As [`device`](Self::device).
    ///
    /// # Errors
    ///
    /// [`Error::Worker`](crate::Error::Worker) when a thread cannot be started.
    pub fn try_device(&self) -> Result<MeshDevice<B>> {
        self.session().map(MeshDevice::open)
    }

    /// Ends the work of [`device`](Self::device): what is queued is given up, the members' threads
    /// end and their memory is freed. Tensors that are still there give an error when they are
    /// read. Without this, the same happens with the last handle.
    ///
    /// ```
    /// use burn::backend::Flex;
    /// use burn::tensor::Tensor;
    /// use burn_multigpu::{Mesh, MultiGpu};
    ///
    /// let mesh = Mesh::<Flex>::open("flex:0,1")?;
    /// let x = Tensor::<MultiGpu<Flex>, 1>::from_floats([1.0, 2.0], &mesh.device()) * 2.0;
    /// mesh.close();
    /// let error = x.try_into_data().unwrap_err();
    /// assert!(error.to_string().contains("was closed, and its tensors with it"));
    /// # Ok::<(), burn_multigpu::Error>(())
    /// ```
    pub fn close(&self) {
        if let Some(session) = self.started::<B>() {
            session.close();
        }
    }

    /// How many bytes of partial sums (gradients) the decorator collects before it adds them up
    /// while the backward pass goes on; 25 MB unless set.
    ///
    /// # Errors
    ///
    /// As [`try_device`](Self::try_device).
    pub fn set_bucket_bytes(&self, bytes: usize) -> Result<()> {
        self.session()?
            .bucket_bytes
            .store(bytes.max(1), Ordering::Relaxed);
        Ok(())
    }

    /// How long a read, a `sync` or a full queue waits for a member of [`device`](Self::device) before
    /// it gives an error that names the member and what it is at, and the mesh stops; `None`, which it
    /// is unless set, waits for ever. One step of the program, and the compilation of its kernels in
    /// the first one, must take less.
    ///
    /// ```
    /// use burn::backend::Flex;
    /// use burn_multigpu::Mesh;
    /// use std::time::Duration;
    ///
    /// let mesh = Mesh::<Flex>::open("flex:0,1")?;
    /// mesh.set_timeout(Some(Duration::from_secs(300)))?;
    /// # Ok::<(), burn_multigpu::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`try_device`](Self::try_device).
    pub fn set_timeout(&self, timeout: Option<Duration>) -> Result<()> {
        let micros = timeout.map_or(0, |timeout| timeout.as_micros().clamp(1, u64::MAX.into()));
        self.session()?
            .timeout
            .store(micros as u64, Ordering::Relaxed);
        Ok(())
    }

    /// Cuts a tensor along a dimension, as evenly as possible, and leaves its values as they are.
    /// It does nothing on a mesh of one.
    ///
    /// ```
    /// use burn::backend::Flex;
    /// use burn::tensor::{Distribution, Tensor};
    /// use burn_multigpu::{Mesh, MultiGpu};
    ///
    /// let mesh = Mesh::<Flex>::open("flex:0,1")?;
    /// let table = Tensor::<MultiGpu<Flex>, 2>::random([100, 8], Distribution::Default, &mesh.device());
    /// mesh.shard(&table, 1);
    /// assert_eq!(mesh.layout(&table).unwrap().to_string(), "sharded along 1: 4+4");
    /// mesh.replicate(&table);
    /// assert_eq!(mesh.layout(&table).unwrap().to_string(), "replicated");
    /// # Ok::<(), burn_multigpu::Error>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If the tensor has no such dimension, or is not on this mesh.
    pub fn shard(&self, tensor: &impl OnMesh<B>, dim: usize) {
        let (session, ir) = self.own(tensor);
        assert!(
            dim < ir.shape.num_dims(),
            "a tensor of {} dimensions has no dimension {dim}",
            ir.shape.num_dims()
        );
        let layout = Layout::even(dim, ir.shape[dim], self.len());
        session.relayout(&ir, &layout);
    }

    /// Gives every member all of a tensor, and leaves its values as they are.
    ///
    /// # Panics
    ///
    /// If the tensor is not on this mesh.
    pub fn replicate(&self, tensor: &impl OnMesh<B>) {
        let (session, ir) = self.own(tensor);
        session.relayout(&ir, &Layout::Replicated);
    }

    /// How a tensor lies on the members; `None` while that is not decided, which the first
    /// operation on it does.
    ///
    /// ```
    /// use burn::backend::Flex;
    /// use burn::tensor::Tensor;
    /// use burn_multigpu::{Mesh, MultiGpu};
    ///
    /// let mesh = Mesh::<Flex>::open("flex:0,1")?;
    /// let x = Tensor::<MultiGpu<Flex>, 2>::from_floats([[1.0], [2.0], [3.0]], &mesh.device());
    /// assert_eq!(mesh.layout(&x), None);
    /// let y = x.clone() * 2.0;
    /// assert_eq!(mesh.layout(&x).unwrap().to_string(), "sharded along 0: 2+1");
    /// assert_eq!(mesh.layout(&y.sum()).unwrap().to_string(), "partial sum");
    /// # Ok::<(), burn_multigpu::Error>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If the tensor is not on this mesh.
    #[must_use]
    pub fn layout(&self, tensor: &impl OnMesh<B>) -> Option<Layout> {
        let (session, ir) = self.own(tensor);
        session.layout(&ir)
    }

    fn own(&self, tensor: &impl OnMesh<B>) -> (Arc<Session<B>>, TensorIr) {
        let primitive = tensor.primitive();
        let session = primitive.client.session.clone();
        assert!(
            Arc::ptr_eq(&session.core, self.core()),
            "the tensor is on the mesh {}, not on this one",
            session.name()
        );
        // A clone's description: the tensor itself is used again.
        let ir = TensorIr {
            status: TensorStatus::ReadOnly,
            ..primitive.clone().into_ir()
        };
        (session, ir)
    }

    fn session(&self) -> Result<Arc<Session<B>>> {
        if let Some(session) = self.started::<B>() {
            return Ok(session);
        }
        let session = Session::start(self.core().clone(), None)?;
        let kept = self
            .decorator()
            .get_or_init(|| session.clone() as Arc<dyn DecoratorInfo>)
            .clone();
        // Of two callers that race, one finds its session unused and drops it.
        let session = downcast(kept).unwrap_or(session);
        MeshDevice::note(&session);
        take_over_dtypes(&session);
        Ok(session)
    }

    fn started<T: InnerBackend>(&self) -> Option<Arc<Session<T>>> {
        self.decorator().get().cloned().and_then(downcast)
    }
}

/// Makes the element types that the first member's device creates tensors with those of the mesh.
pub(super) fn take_over_dtypes<B: InnerBackend>(session: &Arc<Session<B>>) {
    let inner = get_device_settings::<B>(&session.core.devices[0]);
    let usual = (
        FloatDType::from(<B::FloatElem as Element>::dtype()),
        IntDType::from(<B::IntElem as Element>::dtype()),
    );
    if (inner.float_dtype, inner.int_dtype) != usual {
        let device = MeshDevice::open(session.clone());
        // Set already where two threads open the device at once.
        let _ = set_default_dtypes::<MultiGpu<B>>(&device, inner.float_dtype, inner.int_dtype);
    }
}

fn downcast<B: InnerBackend>(info: Arc<dyn DecoratorInfo>) -> Option<Arc<Session<B>>> {
    let any: Arc<dyn Any + Send + Sync> = info;
    any.downcast::<Session<B>>().ok()
}

impl<B: InnerBackend> DecoratorInfo for Session<B> {
    fn operations(&self) -> OperationStats {
        self.state().log.stats()
    }

    fn explain(&self) -> String {
        self.state().log.explain()
    }
}

/// Tensors on a mesh, whatever their kind, with and without `Autodiff`.
pub trait OnMesh<B: InnerBackend> {
    /// The primitive of the decorator.
    fn primitive(&self) -> RouterTensor<MeshClient<B>>;
}

impl<B: InnerBackend, const D: usize> OnMesh<B> for Tensor<MultiGpu<B>, D, Float> {
    fn primitive(&self) -> RouterTensor<MeshClient<B>> {
        match self.clone().into_primitive() {
            TensorPrimitive::Float(tensor) | TensorPrimitive::QFloat(tensor) => tensor,
        }
    }
}

impl<B: InnerBackend, const D: usize> OnMesh<B> for Tensor<MultiGpu<B>, D, Int> {
    fn primitive(&self) -> RouterTensor<MeshClient<B>> {
        self.clone().into_primitive()
    }
}

impl<B: InnerBackend, const D: usize> OnMesh<B> for Tensor<MultiGpu<B>, D, Bool> {
    fn primitive(&self) -> RouterTensor<MeshClient<B>> {
        self.clone().into_primitive()
    }
}

impl<B: InnerBackend, C: CheckpointStrategy, const D: usize> OnMesh<B>
    for Tensor<Autodiff<MultiGpu<B>, C>, D, Float>
{
    fn primitive(&self) -> RouterTensor<MeshClient<B>> {
        self.clone().inner().primitive()
    }
}

impl<B: InnerBackend, C: CheckpointStrategy, const D: usize> OnMesh<B>
    for Tensor<Autodiff<MultiGpu<B>, C>, D, Int>
{
    fn primitive(&self) -> RouterTensor<MeshClient<B>> {
        self.clone().inner().primitive()
    }
}

impl<B: InnerBackend, C: CheckpointStrategy, const D: usize> OnMesh<B>
    for Tensor<Autodiff<MultiGpu<B>, C>, D, Bool>
{
    fn primitive(&self) -> RouterTensor<MeshClient<B>> {
        self.clone().inner().primitive()
    }
}
