//! The device that stands for a mesh, and the table of open meshes behind its ids.

use super::InnerBackend;
use super::client::MeshClient;
use super::session::Session;
use crate::mesh::Mesh;
use burn::tensor::backend::{DeviceId, DeviceOps};
use burn_std::device::Device;
use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};

/// What Burn's ids call a device of this crate.
const TYPE_ID: u16 = 0x4d47;

type Key = (TypeId, u16);
type Open = HashMap<Key, Weak<dyn Any + Send + Sync>>;

/// The meshes that are open, by backend and id. Weak: a mesh ends with its last handle.
static OPEN: LazyLock<Mutex<Open>> = LazyLock::new(Mutex::default);

/// The mesh of [`MeshDevice::default`], for each backend, which stays open.
static DEFAULT: LazyLock<Mutex<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>> =
    LazyLock::new(Mutex::default);

fn lock<T>(table: &Mutex<T>) -> MutexGuard<'_, T> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A mesh as a Burn device: what a program passes to `Tensor::zeros`, `Module::init` or a data
/// loader. Clones are the same device, and each is a handle that keeps the mesh open.
///
/// The default device opens what `MULTIGPU_DEVICES` names, or every device that is visible, when it
/// is first used.
///
/// ```
/// use burn::backend::Flex;
/// use burn::tensor::Tensor;
/// use burn_multigpu::{Mesh, MultiGpu};
///
/// let device = Mesh::<Flex>::open("flex:0,1")?.device();
/// let x = Tensor::<MultiGpu<Flex>, 1>::from_floats([1.0, 2.0, 3.0], &device);
/// assert_eq!(x.device(), device);
/// assert_eq!((x * 2.0).into_data().to_vec::<f32>().unwrap(), [2.0, 4.0, 6.0]);
/// # Ok::<(), burn_multigpu::Error>(())
/// ```
pub struct MeshDevice<B: InnerBackend> {
    kind: Kind<B>,
}

enum Kind<B: InnerBackend> {
    /// The default mesh, opened when it is first needed.
    Default,
    Open(Arc<Session<B>>),
    /// A mesh that has ended, known by its id.
    Ended(u16),
}

impl<B: InnerBackend> MeshDevice<B> {
    pub(super) fn open(session: Arc<Session<B>>) -> Self {
        if session.id == 0 {
            return Self::default();
        }
        Self {
            kind: Kind::Open(session),
        }
    }

    /// Notes a mesh that has been opened, so that its device can be found by its id.
    pub(super) fn note(session: &Arc<Session<B>>) {
        let weak = Arc::downgrade(session);
        let mut open = lock(&OPEN);
        open.retain(|_, session| session.strong_count() > 0);
        open.insert((TypeId::of::<B>(), session.id), weak);
    }

    /// A handle of the mesh.
    ///
    /// # Panics
    ///
    /// When the default mesh cannot be opened, or the mesh has ended: Burn's functions that take a
    /// device cannot return an error.
    pub(crate) fn client(&self) -> MeshClient<B> {
        let session = match &self.kind {
            Kind::Open(session) => session.clone(),
            Kind::Default => default_session::<B>(),
            Kind::Ended(id) => panic!(
                "mesh {id} has ended: its last handle was dropped. Keep the `Mesh` or a device \
                 of it for as long as its devices are used"
            ),
        };
        MeshClient { session }
    }

    /// The first device of the mesh, when it is open.
    pub(crate) fn inner_device(&self) -> Option<B::Device> {
        match &self.kind {
            Kind::Open(session) => session.core.devices.first().cloned(),
            Kind::Default | Kind::Ended(_) => None,
        }
    }
}

/// The session of the default mesh; opens it the first time.
fn default_session<B: InnerBackend>() -> Arc<Session<B>> {
    let mut sessions = lock(&DEFAULT);
    let key = TypeId::of::<B>();
    if let Some(found) = sessions.get(&key)
        && let Ok(session) = found.clone().downcast::<Session<B>>()
    {
        return session;
    }
    let opened =
        Mesh::<B>::from_env().and_then(|mesh| Session::start(mesh.core().clone(), Some(0)));
    match opened {
        Ok(session) => {
            sessions.insert(key, session.clone());
            drop(sessions);
            super::handle::take_over_dtypes(&session);
            session
        }
        Err(error) => {
            drop(sessions);
            panic!(
                "the default mesh cannot be opened: {error}. Set MULTIGPU_DEVICES, or open a mesh \
                 and use its device"
            )
        }
    }
}

impl<B: InnerBackend> Device for MeshDevice<B> {
    fn from_id(id: DeviceId) -> Self {
        if id.index_id == 0 {
            return Self::default();
        }
        let key = (TypeId::of::<B>(), id.index_id);
        let found = lock(&OPEN).get(&key).and_then(Weak::upgrade);
        let kind = match found.map(Arc::downcast::<Session<B>>) {
            Some(Ok(session)) => Kind::Open(session),
            _ => Kind::Ended(id.index_id),
        };
        Self { kind }
    }

    fn to_id(&self) -> DeviceId {
        let index_id = match &self.kind {
            Kind::Default => 0,
            Kind::Open(session) => session.id,
            Kind::Ended(id) => *id,
        };
        DeviceId {
            type_id: TYPE_ID,
            index_id,
        }
    }
}

impl<B: InnerBackend> DeviceOps for MeshDevice<B> {}

impl<B: InnerBackend> Default for MeshDevice<B> {
    fn default() -> Self {
        Self {
            kind: Kind::Default,
        }
    }
}

impl<B: InnerBackend> Clone for MeshDevice<B> {
    fn clone(&self) -> Self {
        let kind = match &self.kind {
            Kind::Default => Kind::Default,
            Kind::Open(session) => Kind::Open(session.clone()),
            Kind::Ended(id) => Kind::Ended(*id),
        };
        Self { kind }
    }
}

impl<B: InnerBackend> PartialEq for MeshDevice<B> {
    fn eq(&self, other: &Self) -> bool {
        self.to_id() == other.to_id()
    }
}

impl<B: InnerBackend> Eq for MeshDevice<B> {}

impl<B: InnerBackend> fmt::Debug for MeshDevice<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::Default => f.write_str("Mesh(default)"),
            Kind::Open(session) => write!(f, "Mesh({})", session.name()),
            Kind::Ended(id) => write!(f, "Mesh({id}, ended)"),
        }
    }
}
