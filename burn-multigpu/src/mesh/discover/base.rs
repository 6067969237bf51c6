//! What a backend must tell for a mesh to be opened by name.

use crate::error::{Error, Result};
use crate::mesh::messages::visibility_variable;
use crate::mesh::spec::Members;
use burn::tensor::backend::Backend;
use burn::tensor::ops::IntElem;
use burn::tensor::{DType, Element};
use serde::Serialize;
use std::ffi::OsString;

/// A backend whose devices can be found and named.
///
/// Implemented for `Flex`, for Burn's CubeCL backends (`Cuda`, `Wgpu`, `Vulkan`, `Metal`, `Rocm`)
/// with and without fusion, and for `Autodiff` of each of these. Implement it for a backend of your
/// own to have [`Mesh::from_env`](crate::Mesh::from_env) for it; specs name Burn's backends only.
///
/// ```
/// use burn::backend::{Autodiff, Flex};
/// use burn_multigpu::MeshBackend;
///
/// assert_eq!(Flex::spec_name(), "flex");
/// for info in Autodiff::<Flex>::discover()? {
///     println!("{}: {}", info.index, info.name);
/// }
/// # Ok::<(), burn_multigpu::Error>(())
/// ```
pub trait MeshBackend: Backend {
    /// The name that a spec uses for it: `cuda`.
    fn spec_name() -> &'static str;

    /// Whether a spec may use this name for it: its own one, and for wgpu also `vulkan` or `metal`
    /// where that is what it runs on.
    fn accepts(name: &str) -> bool {
        name == Self::spec_name()
    }

    /// The devices that are visible to this process, in the order of their numbers.
    ///
    /// This asks drivers only: it takes no memory on any device.
    ///
    /// # Errors
    ///
    /// [`Error::NoDriver`] when there is no working driver, [`Error::NoDevices`] when it shows no
    /// device.
    fn discover() -> Result<Vec<DeviceInfo>>;

    /// The device of a number, as [`discover`](Self::discover) counts. A number that is not listed
    /// gives a device that cannot be used.
    fn device(index: usize) -> Self::Device;

    /// What is known of the devices that a spec asks for, in its order.
    ///
    /// # Errors
    ///
    /// Those of [`discover`](Self::discover), and [`Error::NoSuchDevice`].
    fn select(members: &Members) -> Result<Vec<DeviceInfo>> {
        let backend = Self::spec_name();
        choose(
            backend,
            members,
            Self::discover()?,
            visible_devices(backend),
        )
    }

    /// The free memory of a device in bytes, where the backend can tell.
    ///
    /// Unlike [`discover`](Self::discover) this may wake the device and keep it awake (a CUDA
    /// context takes some hundred MB), so it is for devices that are about to be used, or for all of
    /// them in a program that does nothing else.
    fn memory_free(index: usize) -> Option<u64> {
        let _ = index;
        None
    }

    /// The type of the positions that maximum pools return, which Burn leaves to the backend.
    fn pool_index_dtype() -> DType {
        IntElem::<Self>::dtype()
    }
}

/// What can be told of a device before it is used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DeviceInfo {
    /// Its number among the visible devices of its backend.
    pub index: usize,
    /// The name that the driver gives it.
    pub name: String,
    /// Its memory in bytes.
    pub memory_total: Option<u64>,
    /// How much of it is free, in bytes. Told without waking the device; see
    /// [`MeshBackend::memory_free`].
    pub memory_free: Option<u64>,
    /// Where it sits, as `nvidia-smi` says it too (that writes the domain with eight digits):
    /// the one name that no variable renumbers.
    pub bus_id: Option<String>,
    /// `discrete GPU`, `integrated GPU`, `virtual GPU`, `CPU`.
    pub kind: String,
}

impl DeviceInfo {
    /// A device of which no more is known.
    ///
    /// ```
    /// use burn_multigpu::mesh::DeviceInfo;
    ///
    /// let info = DeviceInfo::new(0, "Some accelerator", "accelerator");
    /// assert_eq!(info.memory_total, None);
    /// ```
    #[must_use]
    pub fn new(index: usize, name: impl Into<String>, kind: impl Into<String>) -> Self {
        Self {
            index,
            name: name.into(),
            memory_total: None,
            memory_free: None,
            bus_id: None,
            kind: kind.into(),
        }
    }
}

/// The devices that a spec asks for, among those that there are.
pub(crate) fn choose(
    backend: &str,
    members: &Members,
    devices: Vec<DeviceInfo>,
    visible: Option<String>,
) -> Result<Vec<DeviceInfo>> {
    if devices.is_empty() {
        return Err(Error::NoDevices {
            backend: backend.to_string(),
            visible,
        });
    }
    let indices = match members {
        Members::All => return Ok(devices),
        Members::Indices(indices) => indices,
    };
    indices
        .iter()
        .map(|index| {
            devices
                .iter()
                .find(|device| device.index == *index)
                .cloned()
                .ok_or_else(|| Error::NoSuchDevice {
                    backend: backend.to_string(),
                    index: *index,
                    count: devices.len(),
                    visible: visible.clone(),
                })
        })
        .collect()
}

/// The value of the variable by which the driver of a backend hides devices, if it is set.
pub(crate) fn visible_devices(backend: &str) -> Option<String> {
    visible_in(backend, |name| std::env::var_os(name))
}

fn visible_in(backend: &str, lookup: impl Fn(&str) -> Option<OsString>) -> Option<String> {
    let value = lookup(visibility_variable(backend)?)?;
    Some(value.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two() -> Vec<DeviceInfo> {
        vec![
            DeviceInfo::new(0, "first", "GPU"),
            DeviceInfo::new(1, "second", "GPU"),
        ]
    }

    fn names(chosen: Vec<DeviceInfo>) -> Vec<String> {
        chosen.into_iter().map(|info| info.name).collect()
    }

    #[test]
    fn all_or_listed_in_their_order() {
        let choice = |members| names(choose("cuda", &members, two(), None).expect("there"));
        assert_eq!(choice(Members::All), ["first", "second"]);
        assert_eq!(choice(Members::Indices(vec![1])), ["second"]);
        assert_eq!(
            choice(Members::Indices(vec![1, 0, 1])),
            ["second", "first", "second"]
        );
    }

    #[test]
    fn numbers_that_are_not_there() {
        let members = Members::Indices(vec![0, 5]);
        match choose("cuda", &members, two(), Some("4,6".to_string())) {
            Err(Error::NoSuchDevice {
                backend,
                index,
                count,
                visible,
            }) => {
                assert_eq!((backend.as_str(), index, count), ("cuda", 5, 2));
                assert_eq!(visible.as_deref(), Some("4,6"));
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn no_devices() {
        match choose("cuda", &Members::All, Vec::new(), Some(String::new())) {
            Err(Error::NoDevices { backend, visible }) => {
                assert_eq!((backend.as_str(), visible.as_deref()), ("cuda", Some("")));
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn variables_that_hide_devices() {
        let value = |backend| visible_in(backend, |name| Some(format!("<{name}>").into()));
        assert_eq!(value("cuda").as_deref(), Some("<CUDA_VISIBLE_DEVICES>"));
        assert_eq!(value("rocm").as_deref(), Some("<HIP_VISIBLE_DEVICES>"));
        assert_eq!(value("wgpu"), None);
        assert_eq!(visible_in("cuda", |_| None), None);
    }
}
