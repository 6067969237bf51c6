//! NVIDIA devices, as the driver itself tells, with CubeCL not touched.
//!
//! The driver numbers what is visible: it applies `CUDA_VISIBLE_DEVICES` (which hides devices and
//! renumbers the rest from 0) and `CUDA_DEVICE_ORDER` (`FASTEST_FIRST` unless it is set to
//! `PCI_BUS_ID`, the order of `nvidia-smi`). So do the numbers here; the bus id is the one name that
//! stays.

mod driver;

use super::base::{DeviceInfo, visible_devices};
use super::cube::MeshRuntime;
use crate::error::{Error, Result};
use cubecl::cuda::{CudaDevice, CudaRuntime};
use serde::Serialize;
use std::panic::catch_unwind;
use std::sync::OnceLock;

const BACKEND: &str = "cuda";

impl MeshRuntime for CudaRuntime {
    fn spec_name() -> &'static str {
        BACKEND
    }

    fn discover() -> Result<Vec<DeviceInfo>> {
        found(ask_driver(), visible_devices(BACKEND))
    }

    fn device(index: usize) -> CudaDevice {
        CudaDevice::new(index)
    }

    fn memory_free(index: usize) -> Option<u64> {
        cuda_libraries().driver.then_some(())?;
        catch_unwind(|| driver::memory_free(index)).ok().flatten()
    }
}

/// Which of NVIDIA's libraries this process can load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct CudaLibraries {
    /// The driver, `libcuda`: without it there are no devices.
    pub driver: bool,
    /// The compiler of kernels, `libnvrtc`: without it no kernel runs.
    pub nvrtc: bool,
    /// `libnccl`: without it data moves between devices through host memory.
    pub nccl: bool,
}

/// Looks for NVIDIA's libraries, once per process. None of them needs to be there.
///
/// ```
/// let libraries = burn_multigpu::mesh::cuda_libraries();
/// println!("driver: {}, NCCL: {}", libraries.driver, libraries.nccl);
/// ```
#[must_use]
pub fn cuda_libraries() -> CudaLibraries {
    static FOUND: OnceLock<CudaLibraries> = OnceLock::new();
    *FOUND.get_or_init(driver::libraries)
}

/// Why the driver shows no devices.
#[derive(Debug, PartialEq, Eq)]
enum Refusal {
    /// It works, and has none for this process.
    NoDevice,
    /// It is not there, or does not work.
    Unusable(String),
}

fn ask_driver() -> Result<Vec<DeviceInfo>, Refusal> {
    if !cuda_libraries().driver {
        return Err(Refusal::Unusable(
            "its library (libcuda.so.1, nvcuda.dll) was not found; install the NVIDIA driver, or \
             add the library's folder to LD_LIBRARY_PATH"
                .to_string(),
        ));
    }
    // cudarc panics when a library lacks a function, as those of old drivers do.
    catch_unwind(driver::devices).unwrap_or_else(|panic| {
        let cause = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied());
        Err(Refusal::Unusable(format!(
            "its library does not fit: {}",
            cause.unwrap_or("it panicked")
        )))
    })
}

/// What a driver answered, as this crate says it.
fn found(
    answer: Result<Vec<DeviceInfo>, Refusal>,
    visible: Option<String>,
) -> Result<Vec<DeviceInfo>> {
    let backend = BACKEND.to_string();
    match answer {
        Ok(devices) if !devices.is_empty() => Ok(devices),
        Ok(_) | Err(Refusal::NoDevice) => Err(Error::NoDevices { backend, visible }),
        Err(Refusal::Unusable(reason)) => Err(Error::NoDriver { backend, reason }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Mesh;
    use burn::backend::Cuda;

    #[test]
    fn answers_of_a_driver() {
        let one = || vec![DeviceInfo::new(0, "GPU", "discrete GPU")];
        assert_eq!(found(Ok(one()), None).expect("a device"), one());
        for none in [Ok(Vec::new()), Err(Refusal::NoDevice)] {
            match found(none, Some("9".to_string())) {
                Err(Error::NoDevices { backend, visible }) => {
                    assert_eq!((backend.as_str(), visible.as_deref()), ("cuda", Some("9")));
                }
                other => panic!("{other:?}"),
            }
        }
        match found(Err(Refusal::Unusable("too old".to_string())), None) {
            Err(Error::NoDriver { backend, reason }) => {
                assert_eq!((backend.as_str(), reason.as_str()), ("cuda", "too old"));
            }
            other => panic!("{other:?}"),
        }
    }

    /// True of every machine; what of it is tested depends on the driver. The kind of machine is
    /// printed, so that a run without a GPU is not taken for one with.
    #[test]
    fn this_machine() {
        let opened = Mesh::<Cuda>::open("cuda:0");
        let built = Mesh::<Cuda>::from_devices(vec![CudaDevice::new(0)]);
        match CudaRuntime::discover() {
            Ok(devices) => {
                eprintln!("with NVIDIA devices: {devices:#?}");
                with_devices(&devices, opened, built);
            }
            Err(expected) => {
                eprintln!("without NVIDIA devices: {expected}");
                let driver = cuda_libraries().driver;
                assert!(
                    driver || matches!(expected, Error::NoDriver { .. }),
                    "{expected}"
                );
                for refused in [opened, built] {
                    let error = refused.expect_err("no devices");
                    assert_eq!(error.to_string(), expected.to_string());
                }
                assert!(driver || CudaRuntime::memory_free(0).is_none());
            }
        }
    }

    fn with_devices(devices: &[DeviceInfo], opened: Result<Mesh<Cuda>>, built: Result<Mesh<Cuda>>) {
        for (position, info) in devices.iter().enumerate() {
            assert_eq!(info.index, position);
            assert!(info.memory_total > Some(0), "{info:?}");
            let bus_id = info.bus_id.as_deref();
            assert!(bus_id.is_some_and(|id| id.contains(':')), "{info:?}");
        }
        let mesh = opened.expect("a device");
        assert_eq!(mesh.devices(), [CudaDevice::new(0)]);
        let member = &mesh.members()[0];
        assert!(member.memory_free > Some(0) && member.memory_free <= member.memory_total);
        assert_eq!(built.expect("a device").members()[0].label, "cuda:0");
        let beyond = Mesh::<Cuda>::from_devices(vec![CudaDevice::new(devices.len())]);
        assert!(
            matches!(beyond, Err(Error::NoSuchDevice { .. })),
            "{beyond:?}"
        );
    }
}
