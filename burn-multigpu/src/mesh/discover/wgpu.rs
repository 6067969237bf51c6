//! Devices behind wgpu: the adapters that CubeCL's wgpu runtime can open, under one numbering.
//!
//! CubeCL names an adapter by its kind and its place among those of that kind (`DiscreteGpu(1)`),
//! in the order in which wgpu lists the adapters of one graphics API. Here all kinds are numbered
//! together, real GPUs first.

use super::base::DeviceInfo;
use super::cube::MeshRuntime;
use crate::error::{Error, Result};
use crate::mesh::spec::compiled;
use cubecl::future::block_on;
use cubecl::wgpu::{AutoGraphicsApi, GraphicsApi, WgpuDevice, WgpuRuntime};
use std::sync::OnceLock;
use wgpu::{AdapterInfo, Backend, DeviceType, Instance, InstanceDescriptor};

const BACKEND: &str = "wgpu";

impl MeshRuntime for WgpuRuntime {
    fn spec_name() -> &'static str {
        BACKEND
    }

    /// `vulkan` and `metal` where their cargo feature is on and they are what wgpu runs on.
    fn accepts(name: &str) -> bool {
        match name {
            BACKEND => true,
            "vulkan" => compiled(name) && AutoGraphicsApi::backend() == Backend::Vulkan,
            "metal" => compiled(name) && AutoGraphicsApi::backend() == Backend::Metal,
            _ => false,
        }
    }

    fn discover() -> Result<Vec<DeviceInfo>> {
        let devices: Vec<DeviceInfo> = adapters().iter().map(|(_, info)| info.clone()).collect();
        if devices.is_empty() {
            return Err(Error::NoDevices {
                backend: BACKEND.to_string(),
                visible: None,
            });
        }
        Ok(devices)
    }

    fn device(index: usize) -> WgpuDevice {
        match adapters().get(index) {
            Some((device, _)) => device.clone(),
            // As every device that is not listed: opening it fails.
            None => WgpuDevice::DiscreteGpu(index),
        }
    }
}

/// The adapters that can be opened, each with CubeCL's name for it, in the order of their numbers.
///
/// Listed once per process, so that a number stays what it is. A list without any is not kept.
pub(crate) fn adapters() -> &'static [(WgpuDevice, DeviceInfo)] {
    static FOUND: OnceLock<Vec<(WgpuDevice, DeviceInfo)>> = OnceLock::new();
    if let Some(found) = FOUND.get() {
        return found;
    }
    let found = numbered(&list());
    if found.is_empty() {
        return &[];
    }
    FOUND.get_or_init(|| found)
}

/// What wgpu lists when it is asked as CubeCL asks it.
fn list() -> Vec<AdapterInfo> {
    let backend = AutoGraphicsApi::backend();
    let instance = Instance::new(InstanceDescriptor {
        backends: backend.into(),
        ..InstanceDescriptor::new_without_display_handle()
    });
    block_on(instance.enumerate_adapters(backend.into()))
        .iter()
        .map(wgpu::Adapter::get_info)
        .collect()
}

fn numbered(listed: &[AdapterInfo]) -> Vec<(WgpuDevice, DeviceInfo)> {
    let types: Vec<DeviceType> = listed.iter().map(|info| info.device_type).collect();
    openable(&types)
        .into_iter()
        .enumerate()
        .map(|(index, (place, device))| {
            let adapter = &listed[place];
            let bus_id = Some(adapter.device_pci_bus_id.clone()).filter(|id| !id.is_empty());
            let info = DeviceInfo {
                bus_id,
                ..DeviceInfo::new(index, adapter.name.clone(), kind(adapter.device_type))
            };
            (device, info)
        })
        .collect()
}

/// For each adapter that CubeCL can open: its place in wgpu's list, and CubeCL's name for it.
///
/// Discrete GPUs come first, then integrated ones, virtual ones, those of a kind that wgpu does not
/// know, and the software adapter. Of several software adapters CubeCL opens the first alone. It has
/// no name for those of unknown kind, and takes the n-th of them where a kind has no n-th adapter of
/// its own.
fn openable(types: &[DeviceType]) -> Vec<(usize, WgpuDevice)> {
    let places = |wanted: DeviceType| -> Vec<usize> {
        (0..types.len())
            .filter(|place| types[*place] == wanted)
            .collect()
    };
    type Named = fn(usize) -> WgpuDevice;
    let kinds: [(Vec<usize>, Named); 3] = [
        (places(DeviceType::DiscreteGpu), WgpuDevice::DiscreteGpu),
        (places(DeviceType::IntegratedGpu), WgpuDevice::IntegratedGpu),
        (places(DeviceType::VirtualGpu), WgpuDevice::VirtualGpu),
    ];
    let mut found = Vec::new();
    for (places, device) in &kinds {
        found.extend(
            places
                .iter()
                .enumerate()
                .map(|(n, place)| (*place, device(n))),
        );
    }
    for (n, place) in places(DeviceType::Other).into_iter().enumerate() {
        let free = kinds.iter().rev().find(|(places, _)| places.len() <= n);
        found.extend(free.map(|(_, device)| (place, device(n))));
    }
    if let Some(place) = places(DeviceType::Cpu).first() {
        found.push((*place, WgpuDevice::Cpu));
    }
    found
}

fn kind(kind: DeviceType) -> &'static str {
    match kind {
        DeviceType::DiscreteGpu => "discrete GPU",
        DeviceType::IntegratedGpu => "integrated GPU",
        DeviceType::VirtualGpu => "virtual GPU",
        DeviceType::Cpu => "CPU",
        DeviceType::Other => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Mesh;
    use burn::backend::Wgpu;
    use burn::tensor::Tensor;
    use wgpu::DeviceType::{Cpu, DiscreteGpu, IntegratedGpu, Other, VirtualGpu};

    /// The place of the adapter that CubeCL 0.10 opens for a device: `select_from_adapter_list`.
    fn opened(types: &[DeviceType], device: &WgpuDevice) -> Option<usize> {
        let (n, wanted) = match device {
            WgpuDevice::DiscreteGpu(n) => (*n, DiscreteGpu),
            WgpuDevice::IntegratedGpu(n) => (*n, IntegratedGpu),
            WgpuDevice::VirtualGpu(n) => (*n, VirtualGpu),
            WgpuDevice::Cpu => (0, Cpu),
            other => panic!("{other:?}"),
        };
        let nth = |wanted| {
            (0..types.len())
                .filter(|place| types[*place] == wanted)
                .nth(n)
        };
        nth(wanted).or_else(|| nth(Other))
    }

    #[test]
    fn each_device_opens_its_own_adapter() {
        let check = |types: &[DeviceType], expected: &[usize]| {
            let found = openable(types);
            let places: Vec<usize> = found.iter().map(|(place, _)| *place).collect();
            assert_eq!(places, expected, "{types:?}");
            for (place, device) in found {
                assert_eq!(
                    opened(types, &device),
                    Some(place),
                    "{device:?} of {types:?}"
                );
            }
        };
        check(&[], &[]);
        check(&[Cpu], &[0]);
        check(&[Cpu, DiscreteGpu], &[1, 0]);
        check(
            &[IntegratedGpu, Cpu, DiscreteGpu, DiscreteGpu],
            &[2, 3, 0, 1],
        );
        check(&[VirtualGpu, IntegratedGpu, DiscreteGpu], &[2, 1, 0]);
        // The second software adapter cannot be opened.
        check(&[Cpu, Cpu], &[0]);
        // Those of unknown kind are opened in the place of kinds that are not there ...
        check(&[Other, Other, Cpu], &[0, 1, 2]);
        check(&[DiscreteGpu, Other], &[0, 1]);
        // ... and cannot be opened where all kinds are there.
        check(&[DiscreteGpu, IntegratedGpu, VirtualGpu, Other], &[0, 1, 2]);
        check(
            &[DiscreteGpu, IntegratedGpu, VirtualGpu, Other, Other],
            &[0, 1, 2, 4],
        );
    }

    #[test]
    fn names_in_specs() {
        assert!(<WgpuRuntime as MeshRuntime>::accepts("wgpu"));
        assert!(!<WgpuRuntime as MeshRuntime>::accepts("cuda"));
        for (name, api) in [("vulkan", Backend::Vulkan), ("metal", Backend::Metal)] {
            let expected = compiled(name) && AutoGraphicsApi::backend() == api;
            assert_eq!(
                <WgpuRuntime as MeshRuntime>::accepts(name),
                expected,
                "{name}"
            );
        }
    }

    /// Needs a Vulkan driver; `mesa-vulkan-drivers` has a software one, llvmpipe.
    #[test]
    fn llvmpipe_opens_and_computes() {
        let devices = WgpuRuntime::discover().expect("a Vulkan driver (mesa-vulkan-drivers)");
        let software = devices
            .iter()
            .find(|info| info.name.contains("llvmpipe"))
            .unwrap_or_else(|| panic!("no llvmpipe (mesa-vulkan-drivers) in {devices:?}"));
        assert_eq!(software.kind, "CPU");
        let spec = format!("wgpu:{0},{0}", software.index);
        let mesh = Mesh::<Wgpu>::open(&spec).expect("llvmpipe");
        assert_eq!(mesh.devices(), [WgpuDevice::Cpu, WgpuDevice::Cpu]);
        assert!(mesh.members()[0].name.contains("llvmpipe"));
        let sum = Tensor::<Wgpu, 1>::from_floats([1.0, 2.0, 4.0], &mesh.devices()[0]).sum();
        assert_eq!(sum.into_scalar(), 7.0);

        let count = devices.len();
        let same = Mesh::<Wgpu>::from_devices(vec![WgpuDevice::Cpu]).expect("llvmpipe");
        assert_eq!(same.members()[0], mesh.members()[0]);
        let default = vec![WgpuDevice::DefaultDevice];
        let default = Mesh::<Wgpu>::from_devices(default).expect("any adapter");
        assert_eq!(default.members()[0].label, "wgpu:DefaultDevice");
        let beyond = Mesh::<Wgpu>::open(&format!("wgpu:{count}"));
        assert!(
            matches!(beyond, Err(Error::NoSuchDevice { .. })),
            "{beyond:?}"
        );
        let beyond = Mesh::<Wgpu>::from_devices(vec![WgpuDevice::VirtualGpu(99)]);
        assert!(
            matches!(beyond, Err(Error::NotVisible { .. })),
            "{beyond:?}"
        );
    }

    #[test]
    fn aliases_that_are_not_compiled() {
        if compiled("vulkan") {
            assert!(!matches!(
                Mesh::<Wgpu>::open("vulkan:0"),
                Err(Error::BackendNotCompiled { .. })
            ));
        } else {
            let refused = Mesh::<Wgpu>::open("vulkan:0");
            assert!(
                matches!(refused, Err(Error::BackendNotCompiled { .. })),
                "{refused:?}"
            );
        }
    }
}
