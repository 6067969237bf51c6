//! CubeCL backends: their devices are those of their runtime, whatever the element types.

use super::base::{DeviceInfo, MeshBackend};
use crate::error::Result;
use burn_cubecl::{CubeBackend, CubeRuntime, FloatElement, IntElement, element::BoolElement};

/// A CubeCL runtime whose devices can be found and named; what each method must do is told at
/// [`MeshBackend`], which every `CubeBackend` of the runtime is.
pub trait MeshRuntime: CubeRuntime {
    /// See [`MeshBackend::spec_name`].
    fn spec_name() -> &'static str;

    /// See [`MeshBackend::accepts`].
    fn accepts(name: &str) -> bool {
        name == Self::spec_name()
    }

    /// See [`MeshBackend::discover`]. Must not touch CubeCL before the driver was asked.
    ///
    /// # Errors
    ///
    /// Those of [`MeshBackend::discover`].
    fn discover() -> Result<Vec<DeviceInfo>>;

    /// See [`MeshBackend::device`].
    fn device(index: usize) -> Self::CubeDevice;

    /// See [`MeshBackend::memory_free`].
    fn memory_free(index: usize) -> Option<u64> {
        let _ = index;
        None
    }
}

impl<R, F, I, BT> MeshBackend for CubeBackend<R, F, I, BT>
where
    R: MeshRuntime,
    F: FloatElement,
    I: IntElement,
    BT: BoolElement,
{
    fn spec_name() -> &'static str {
        R::spec_name()
    }

    fn accepts(name: &str) -> bool {
        R::accepts(name)
    }

    fn discover() -> Result<Vec<DeviceInfo>> {
        R::discover()
    }

    fn device(index: usize) -> Self::Device {
        R::device(index)
    }

    fn memory_free(index: usize) -> Option<u64> {
        R::memory_free(index)
    }
}
