//! A mesh: the devices that act as one.

use super::describe::describe;
use super::discover::MeshBackend;
use super::member::{Member, table};
use super::spec::{MeshSpec, compiled, in_variable};
use crate::backend::OperationStats;
use crate::collective::{CollectiveOps, CollectiveStats, Counters, Transfers, select};
use crate::error::{Error, Result};
use crate::worker::WorkerPool;
use burn::tensor::backend::Backend;
use std::any::Any;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// The devices that act as one, in a fixed order. Clones are the same mesh.
///
/// ```
/// use burn::backend::Flex;
/// use burn_multigpu::Mesh;
///
/// let mesh = Mesh::<Flex>::open("flex:0,1")?; // on two GPUs: Mesh::<Cuda>::open("cuda:0,1")
/// assert_eq!(mesh.len(), 2);
/// assert_eq!(mesh.members()[1].label, "flex:1");
/// println!("{mesh}");
/// # Ok::<(), burn_multigpu::Error>(())
/// ```
///
/// prints a line for each member, with the bus id by which a GPU can be found whatever its number
/// is:
///
/// ```text
/// #  device  name         memory (GiB)  free (GiB)  bus id
/// 0  cuda:0  NVIDIA H200         139.8       139.2  0000:1b:00.0
/// 1  cuda:1  NVIDIA H200         139.8       139.2  0000:2c:00.0
/// ```
pub struct Mesh<B: Backend> {
    core: Arc<MeshCore<B>>,
    /// The decorator's side of the mesh, started with the first call of `device`.
    decorator: Arc<OnceLock<Arc<dyn DecoratorInfo>>>,
}

/// What a mesh can tell of its decorator, whose type it does not know.
pub(crate) trait DecoratorInfo: Any + Send + Sync {
    fn operations(&self) -> OperationStats;
    fn explain(&self) -> String;
}

/// What the clones of a mesh share.
pub(crate) struct MeshCore<B: Backend> {
    pub(crate) devices: Vec<B::Device>,
    pub(crate) members: Vec<Member>,
    /// What the backend contributes to collectives.
    pub(crate) ops: Box<dyn CollectiveOps<B>>,
    pub(crate) transfers: Transfers,
    pub(crate) counters: Arc<Counters>,
    /// The threads of collectives that are called on the mesh itself, started with the first.
    pool: OnceLock<WorkerPool>,
}

impl<B: Backend> MeshCore<B> {
    /// The one place where a mesh is made: `members` describes `devices`, place by place.
    pub(crate) fn new(devices: Vec<B::Device>, mut members: Vec<Member>) -> Result<Self> {
        debug_assert_eq!(devices.len(), members.len());
        if devices.is_empty() {
            return Err(Error::EmptyMesh);
        }
        for (position, member) in members.iter_mut().enumerate() {
            member.position = position;
        }
        let counters = Arc::new(Counters::new(devices.len()));
        let ops = select::<B>(counters.clone());
        let transfers = Transfers::probe::<B>(&devices, ops.as_ref());
        Ok(Self {
            devices,
            members,
            ops,
            transfers,
            counters,
            pool: OnceLock::new(),
        })
    }

    /// The threads of collectives that are called on the mesh itself.
    pub(crate) fn pool(&self) -> Result<&WorkerPool> {
        if let Some(pool) = self.pool.get() {
            return Ok(pool);
        }
        let pool = WorkerPool::spawn(self.members.iter().map(|member| member.label.clone()))?;
        // Of two callers that race, one finds its pool unused and drops it.
        Ok(self.pool.get_or_init(|| pool))
    }
}

impl<B: MeshBackend> Mesh<B> {
    /// Opens the devices that a spec names; see [`MeshSpec`] for what can be written.
    ///
    /// # Errors
    ///
    /// Those of reading the spec, [`Error::WrongBackend`] when it names another backend than `B`,
    /// and [`Error::NoDriver`], [`Error::NoDevices`] or [`Error::NoSuchDevice`].
    ///
    /// ```
    /// use burn::backend::Flex;
    /// use burn_multigpu::{Error, Mesh};
    ///
    /// let mesh = Mesh::<Flex>::open("flex:0-3")?;
    /// assert_eq!(mesh.len(), 4);
    ///
    /// let refused = Mesh::<Flex>::open("cuda:0");
    /// assert!(matches!(refused, Err(Error::WrongBackend { .. })));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn open(spec: &str) -> Result<Self> {
        Self::open_spec(&spec.parse()?)
    }

    /// Opens the devices that a spec names.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    ///
    /// ```
    /// use burn::backend::Flex;
    /// use burn_multigpu::{Mesh, MeshSpec};
    ///
    /// let spec: MeshSpec = "flex:0,1".parse()?;
    /// let mesh = Mesh::<Flex>::open_spec(&spec)?;
    /// assert_eq!(mesh.len(), 2);
    /// # Ok::<(), burn_multigpu::Error>(())
    /// ```
    pub fn open_spec(spec: &MeshSpec) -> Result<Self> {
        let (asked, backend) = (spec.backend(), B::spec_name());
        if !B::accepts(asked) {
            // The type of the mesh is right, and the build lacks the graphics API.
            if backend == "wgpu" && matches!(asked, "vulkan" | "metal") && !compiled(asked) {
                spec.check_compiled()?;
            }
            return Err(Error::WrongBackend {
                asked: asked.to_string(),
                backend: backend.to_string(),
            });
        }
        let mut infos = B::select(spec.members())?;
        for info in &mut infos {
            info.memory_free = B::memory_free(info.index).or(info.memory_free);
        }
        let devices = infos.iter().map(|info| B::device(info.index)).collect();
        let members = infos
            .into_iter()
            .map(|info| Member::new(backend, info))
            .collect();
        Self::from_core(devices, members)
    }

    /// Opens the devices that `MULTIGPU_DEVICES` names, or all that are visible when it is not set.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open), within [`Error::Environment`] when it is the variable that asks;
    /// [`Error::EmptySpec`] when it is set and empty.
    ///
    /// ```
    /// use burn::backend::Flex;
    /// use burn_multigpu::Mesh;
    ///
    /// let mesh = Mesh::<Flex>::from_env()?;
    /// assert!(!mesh.is_empty());
    /// # Ok::<(), burn_multigpu::Error>(())
    /// ```
    pub fn from_env() -> Result<Self> {
        Self::open_or_all(MeshSpec::from_env()?)
    }

    /// As [`from_env`](Self::from_env), with what the variable holds given.
    pub(super) fn open_or_all(spec: Option<MeshSpec>) -> Result<Self> {
        match spec {
            Some(spec) => Self::open_spec(&spec).map_err(in_variable),
            None => Self::open_spec(&MeshSpec::all(B::spec_name())),
        }
    }
}

impl<B: Backend> Mesh<B> {
    /// A mesh of devices that the caller made, of any backend of Burn's. A device that is listed
    /// twice is two members.
    ///
    /// # Errors
    ///
    /// [`Error::EmptyMesh`] for an empty list; for CUDA and wgpu also that of a driver or a device
    /// that is not there.
    ///
    /// ```
    /// use burn::backend::{Flex, flex::FlexDevice};
    /// use burn_multigpu::Mesh;
    ///
    /// let mesh = Mesh::<Flex>::from_devices(vec![FlexDevice, FlexDevice])?;
    /// assert_eq!(mesh.len(), 2);
    /// # Ok::<(), burn_multigpu::Error>(())
    /// ```
    pub fn from_devices(devices: Vec<B::Device>) -> Result<Self> {
        let members = devices.iter().map(describe::<B>).collect::<Result<_>>()?;
        Self::from_core(devices, members)
    }

    fn from_core(devices: Vec<B::Device>, members: Vec<Member>) -> Result<Self> {
        let core = Arc::new(MeshCore::new(devices, members)?);
        Ok(Self {
            core,
            decorator: Arc::default(),
        })
    }

    /// The devices, in the order of the mesh.
    ///
    /// ```
    /// use burn::backend::Flex;
    /// use burn::tensor::Tensor;
    /// use burn_multigpu::Mesh;
    ///
    /// let mesh = Mesh::<Flex>::open("flex:0,1")?;
    /// let parts = mesh.devices().iter().map(|device| Tensor::<Flex, 1>::zeros([4], device));
    /// assert_eq!(parts.count(), 2);
    /// # Ok::<(), burn_multigpu::Error>(())
    /// ```
    #[must_use]
    pub fn devices(&self) -> &[B::Device] {
        &self.core.devices
    }

    /// What is known of each device, in the order of the mesh.
    ///
    /// ```
    /// use burn::backend::Flex;
    /// use burn_multigpu::Mesh;
    ///
    /// let mesh = Mesh::<Flex>::open("flex:0,3")?;
    /// let labels: Vec<&str> = mesh.members().iter().map(|m| m.label.as_str()).collect();
    /// assert_eq!(labels, ["flex:0", "flex:3"]);
    /// # Ok::<(), burn_multigpu::Error>(())
    /// ```
    #[must_use]
    pub fn members(&self) -> &[Member] {
        &self.core.members
    }

    /// How many members there are, at least one.
    ///
    /// ```
    /// # use burn::backend::Flex;
    /// # use burn_multigpu::Mesh;
    /// assert_eq!(Mesh::<Flex>::open("flex")?.len(), 1);
    /// # Ok::<(), burn_multigpu::Error>(())
    /// ```
    #[must_use]
    pub fn len(&self) -> usize {
        self.core.devices.len()
    }

    /// Always false: a mesh of no devices cannot be made.
    ///
    /// ```
    /// # use burn::backend::Flex;
    /// # use burn_multigpu::Mesh;
    /// assert!(!Mesh::<Flex>::open("flex")?.is_empty());
    /// # Ok::<(), burn_multigpu::Error>(())
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.core.devices.is_empty()
    }

    /// A mesh of the first `members` members, with its own threads and counters.
    ///
    /// ```
    /// # use burn::backend::Flex;
    /// # use burn_multigpu::Mesh;
    /// assert_eq!(Mesh::<Flex>::open("flex:0-3")?.take(2)?.len(), 2);
    /// # Ok::<(), burn_multigpu::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::EmptyMesh`] for 0, [`Error::MemberCount`] for more than there are.
    pub fn take(&self, members: usize) -> Result<Self> {
        if members > self.len() {
            return Err(Error::MemberCount {
                expected: self.len(),
                found: members,
            });
        }
        Self::from_core(
            self.devices()[..members].to_vec(),
            self.members()[..members].to_vec(),
        )
    }

    /// How data moves between the members.
    ///
    /// ```
    /// # use burn::backend::Flex;
    /// # use burn_multigpu::Mesh;
    /// let mesh = Mesh::<Flex>::open("flex")?;
    /// assert_eq!(mesh.transfers().to_string(), "one member: nothing moves\n");
    /// # Ok::<(), burn_multigpu::Error>(())
    /// ```
    #[must_use]
    pub fn transfers(&self) -> &Transfers {
        &self.core.transfers
    }

    /// What the collectives, the engines and the decorator on this mesh did so far.
    #[must_use]
    pub fn stats(&self) -> MeshStats {
        MeshStats {
            collectives: self.core.counters.snapshot(),
            operations: self
                .decorator
                .get()
                .map(|decorator| decorator.operations())
                .unwrap_or_default(),
        }
    }

    /// What the decorator did in the last step: how many operations ran in parts, what was brought
    /// to another layout, and why. A step starts with the first data from the host after a backward
    /// pass.
    ///
    /// ```
    /// use burn::backend::Flex;
    /// use burn::tensor::Tensor;
    /// use burn_multigpu::{Mesh, MultiGpu};
    ///
    /// let mesh = Mesh::<Flex>::open("flex:0,1")?;
    /// let x = Tensor::<MultiGpu<Flex>, 2>::from_floats([[1.0, 2.0], [3.0, 4.0]], &mesh.device());
    /// assert_eq!((x * 2.0).flip([0]).into_data().to_vec::<f32>().unwrap(), [6.0, 8.0, 2.0, 4.0]);
    /// assert!(mesh.explain().contains("BaseFloat::Flip: it has no rule"));
    /// # Ok::<(), burn_multigpu::Error>(())
    /// ```
    #[must_use]
    pub fn explain(&self) -> String {
        match self.decorator.get() {
            Some(decorator) => decorator.explain(),
            None => "nothing has run on this mesh as a device".to_string(),
        }
    }

    /// The decorator's side of the mesh.
    pub(crate) fn decorator(&self) -> &OnceLock<Arc<dyn DecoratorInfo>> {
        &self.decorator
    }

    /// What the clones share.
    pub(crate) fn core(&self) -> &Arc<MeshCore<B>> {
        &self.core
    }
}

/// What a mesh did since it was opened.
///
/// ```
/// use burn::backend::Flex;
/// use burn::tensor::Tensor;
/// use burn_multigpu::{Mesh, MultiGpu};
///
/// let mesh = Mesh::<Flex>::open("flex:0,1")?;
/// let x = Tensor::<MultiGpu<Flex>, 2>::from_floats([[1.0, 2.0], [3.0, 4.0]], &mesh.device());
/// assert_eq!((x * 2.0).sum().into_scalar(), 20.0);
/// let stats = mesh.stats();
/// assert_eq!(stats.operations.operations["NumericFloat::Sum"].sharded, 1);
/// assert_eq!(stats.collectives.all_reduces, 1);
/// println!("{stats}");
/// # Ok::<(), burn_multigpu::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MeshStats {
    /// What moved between the members, and the sums.
    pub collectives: CollectiveStats,
    /// What the decorator did with each kind of operation.
    pub operations: OperationStats,
}

impl fmt::Display for MeshStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.collectives, self.operations)
    }
}

impl<B: Backend> Clone for Mesh<B> {
    fn clone(&self) -> Self {
        Self {
            core: self.core.clone(),
            decorator: self.decorator.clone(),
        }
    }
}

impl<B: Backend> fmt::Debug for Mesh<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let labels: Vec<&str> = self.members().iter().map(|m| m.label.as_str()).collect();
        f.debug_tuple("Mesh").field(&labels).finish()
    }
}

impl<B: Backend> fmt::Debug for MeshCore<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MeshCore")
            .field("members", &self.members)
            .finish_non_exhaustive()
    }
}

impl<B: Backend> fmt::Display for Mesh<B> {
    /// A table with a line for each member, without a line break at its end.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&table(self.members()))
    }
}
