//! What can be told of a device that the caller made, and whether it is there.
//!
//! Burn's own devices are recognised by their type, because asking a CubeCL backend for its name
//! opens the device: with no driver, that panics on one of CubeCL's threads.

use super::member::Member;
use crate::error::Result;
use burn::tensor::backend::Backend;
use std::any::Any;

/// The member that a device makes.
pub(super) fn describe<B: Backend>(device: &B::Device) -> Result<Member> {
    match known(device)? {
        Some(member) => Ok(member),
        None => {
            let (backend, device) = (B::name(device), format!("{device:?}"));
            Ok(Member {
                position: 0,
                label: format!("{backend}:{device}"),
                backend,
                name: device,
                memory_total: None,
                memory_free: None,
                bus_id: None,
            })
        }
    }
}

/// The member of a device whose type is known, `None` for one of another type.
#[allow(
    clippy::unnecessary_wraps,
    reason = "not all features look for drivers"
)]
fn known(device: &dyn Any) -> Result<Option<Member>> {
    #[cfg(feature = "flex")]
    if device.is::<burn_flex::FlexDevice>() {
        return Ok(Some(Member::new("flex", super::discover::flex::info(0))));
    }
    #[cfg(feature = "cuda")]
    if let Some(device) = device.downcast_ref() {
        return cuda(device).map(Some);
    }
    #[cfg(feature = "wgpu")]
    if let Some(device) = device.downcast_ref() {
        return wgpu(device);
    }
    let _ = device;
    Ok(None)
}

#[cfg(feature = "cuda")]
fn cuda(device: &cubecl::cuda::CudaDevice) -> Result<Member> {
    use super::discover::{MeshRuntime, choose, visible_devices};
    use super::spec::Members;
    use cubecl::cuda::CudaRuntime;

    let (backend, devices) = ("cuda", CudaRuntime::discover()?);
    let wanted = Members::Indices(vec![device.index]);
    let mut chosen = choose(backend, &wanted, devices, visible_devices(backend))?;
    let mut info = chosen.remove(0);
    info.memory_free = CudaRuntime::memory_free(info.index);
    Ok(Member::new(backend, info))
}

#[cfg(feature = "wgpu")]
fn wgpu(device: &cubecl::wgpu::WgpuDevice) -> Result<Option<Member>> {
    use super::discover::{DeviceInfo, MeshRuntime, wgpu::adapters};
    use crate::error::Error;
    use cubecl::wgpu::{WgpuDevice, WgpuRuntime};

    let backend = "wgpu";
    // Made by the program from a setup of its own; wgpu's list does not know it.
    if let WgpuDevice::Existing(_) = device {
        return Ok(None);
    }
    let devices = WgpuRuntime::discover()?;
    if let Some((_, info)) = adapters().iter().find(|(known, _)| known == device) {
        return Ok(Some(Member::new(backend, info.clone())));
    }
    if *device == WgpuDevice::DefaultDevice {
        let info = DeviceInfo::new(0, "chosen by wgpu", "GPU");
        let mut member = Member::new(backend, info);
        member.label = format!("{backend}:{device:?}");
        return Ok(Some(member));
    }
    Err(Error::NotVisible {
        backend: backend.to_string(),
        device: format!("{device:?}"),
        count: devices.len(),
    })
}
