//! AMD devices.
//!
//! No crate asks the HIP runtime by itself, so CubeCL counts the devices, once the kernel's driver
//! is known to be there. Names and sizes are not told.

use super::base::{DeviceInfo, visible_devices};
use super::cube::MeshRuntime;
use crate::error::{Error, Result};
use cubecl::Runtime;
use cubecl::hip::{AmdDevice, HipRuntime};
use std::path::Path;

const BACKEND: &str = "rocm";

impl MeshRuntime for HipRuntime {
    fn spec_name() -> &'static str {
        BACKEND
    }

    /// Counting opens the first device, which takes some memory there.
    fn discover() -> Result<Vec<DeviceInfo>> {
        if cfg!(target_os = "linux") && !Path::new("/dev/kfd").exists() {
            return Err(Error::NoDriver {
                backend: BACKEND.to_string(),
                reason: "/dev/kfd, which the amdgpu kernel driver makes, is not there".to_string(),
            });
        }
        let count = HipRuntime::client(&AmdDevice::default()).device_count(0);
        if count == 0 {
            return Err(Error::NoDevices {
                backend: BACKEND.to_string(),
                visible: visible_devices(BACKEND),
            });
        }
        Ok((0..count)
            .map(|index| DeviceInfo::new(index, "AMD GPU", "GPU"))
            .collect())
    }

    fn device(index: usize) -> AmdDevice {
        AmdDevice::new(index)
    }
}
