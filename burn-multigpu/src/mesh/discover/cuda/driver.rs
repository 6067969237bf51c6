//! The calls into NVIDIA's driver, through cudarc's bindings.
//!
//! Nothing here creates a context on a device, except [`memory_free`].
#![allow(unsafe_code, reason = "the driver's interface is C")]

use super::{CudaLibraries, Refusal};
use crate::mesh::discover::DeviceInfo;
use cudarc::driver::result::{self, DriverError, device, primary_ctx};
use cudarc::driver::sys::{self, CUdevice, CUdevice_attribute, CUresult};
use std::ffi::{CStr, c_char, c_int, c_uint};

/// Tries to load each library.
pub(super) fn libraries() -> CudaLibraries {
    // SAFETY: these load a library by NVIDIA's name for it and let it go again; what a library runs
    // when it is loaded is trusted as CubeCL trusts it when it loads the same.
    unsafe {
        CudaLibraries {
            driver: sys::is_culib_present(),
            nvrtc: cudarc::nvrtc::sys::is_culib_present(),
            nccl: cudarc::nccl::sys::is_culib_present(),
        }
    }
}

/// All visible devices. The driver's library must be there.
pub(super) fn devices() -> Result<Vec<DeviceInfo>, Refusal> {
    result::init().map_err(|error| match error.0 {
        CUresult::CUDA_ERROR_NO_DEVICE => Refusal::NoDevice,
        _ => Refusal::Unusable(format!("it does not start: {}", text(error))),
    })?;
    let count = device::get_count()
        .map_err(|error| Refusal::Unusable(format!("it counts no devices: {}", text(error))))?;
    (0..count)
        .map(|index| {
            info(index).map_err(|error| {
                Refusal::Unusable(format!("device {index} does not answer: {}", text(error)))
            })
        })
        .collect()
}

fn info(index: c_int) -> Result<DeviceInfo, DriverError> {
    let handle = device::get(index)?;
    // SAFETY: `handle` is a device from `device::get`.
    let (total, integrated) = unsafe {
        (
            device::total_mem(handle)?,
            device::get_attribute(handle, CUdevice_attribute::CU_DEVICE_ATTRIBUTE_INTEGRATED)? != 0,
        )
    };
    Ok(DeviceInfo {
        index: usize::try_from(index).unwrap_or_default(),
        name: device::get_name(handle)?,
        memory_total: Some(total as u64),
        memory_free: if awake(handle)? { free(handle)? } else { None },
        bus_id: bus_id(handle),
        kind: if integrated {
            "integrated GPU"
        } else {
            "discrete GPU"
        }
        .to_string(),
    })
}

/// The free memory of a device, which is woken if need be and then stays awake: the mesh that asks
/// is about to run on it, and CubeCL retains the same context.
pub(super) fn memory_free(index: usize) -> Option<u64> {
    result::init().ok()?;
    let handle = device::get(c_int::try_from(index).ok()?).ok()?;
    if !awake(handle).ok()? {
        // SAFETY: `handle` is a device from `device::get`. The context is never released, as CubeCL
        // never releases those that it runs on.
        unsafe { primary_ctx::retain(handle) }.ok()?;
    }
    free(handle).ok().flatten()
}

/// Whether the device has its context already.
fn awake(handle: CUdevice) -> Result<bool, DriverError> {
    let (mut flags, mut active): (c_uint, c_int) = (0, 0);
    // SAFETY: `handle` is a device, and the pointers are to variables that live through the call.
    unsafe { sys::cuDevicePrimaryCtxGetState(handle, &raw mut flags, &raw mut active) }.result()?;
    Ok(active != 0)
}

/// The free memory of a device that is awake, asked with its context current on this thread for
/// that long.
fn free(handle: CUdevice) -> Result<Option<u64>, DriverError> {
    // SAFETY: `handle` is a device; the retain is paired with the release below, and the push with
    // the pop, on the same thread. Being awake, the device is not put to sleep by the release.
    unsafe {
        let context = primary_ctx::retain(handle)?;
        let info = match sys::cuCtxPushCurrent_v2(context).result() {
            Ok(()) => {
                let info = result::mem_get_info();
                let mut popped = std::ptr::null_mut();
                sys::cuCtxPopCurrent_v2(&raw mut popped).result().and(info)
            }
            Err(error) => Err(error),
        };
        primary_ctx::release(handle)?;
        // A device in exclusive use or in a bad state still has a name and a size.
        Ok(info.ok().map(|(free, _)| free as u64))
    }
}

fn bus_id(handle: CUdevice) -> Option<String> {
    let mut buffer = [0u8; 32];
    let length = c_int::try_from(buffer.len()).ok()?;
    // SAFETY: `handle` is a device, and the driver writes a terminated string of at most `length`
    // bytes into the buffer, which is that long.
    unsafe { sys::cuDeviceGetPCIBusId(buffer.as_mut_ptr().cast::<c_char>(), length, handle) }
        .result()
        .ok()?;
    let text = CStr::from_bytes_until_nul(&buffer).ok()?;
    Some(text.to_string_lossy().into_owned())
}

/// `CUDA_ERROR_SYSTEM_DRIVER_MISMATCH: system has unsupported display driver`.
fn text(error: DriverError) -> String {
    match error.error_string() {
        Ok(meaning) => format!("{:?}: {}", error.0, meaning.to_string_lossy()),
        Err(_) => format!("{:?}", error.0),
    }
}
