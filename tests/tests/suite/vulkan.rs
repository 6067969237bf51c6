//! The engine and the collectives on the software Vulkan device, where CubeCL kernels do the
//! reduction. Needs the Debian package mesa-vulkan-drivers.

use crate::device::{collectives, convolutions_with_batch_norm_train, trains_as_one_device};
use burn::backend::Wgpu;
use burn::backend::wgpu::CubeBackend;
use burn_multigpu::{Mesh, MeshBackend};

/// Burn's wgpu backend without its fusion.
type Plain = CubeBackend<cubecl::wgpu::WgpuRuntime, f32, i32, u32>;

fn mesh<B: MeshBackend>(members: usize) -> Mesh<B> {
    let spec = format!("wgpu:{}", vec!["0"; members].join(","));
    Mesh::open(&spec).expect("a Vulkan device: apt-get install mesa-vulkan-drivers")
}

/// Kernels did the sums, not the host.
fn in_kernels<B: MeshBackend>(mesh: &Mesh<B>) {
    let stats = mesh.stats().collectives;
    assert!(stats.kernel_sums > 0 && stats.kernel_packs > 0, "{stats}");
    assert_eq!(stats.host_sums, 0);
}

#[test]
fn collectives_run_in_kernels() {
    collectives::<Plain>(mesh);
}

#[test]
fn collectives_run_in_kernels_below_fusion() {
    collectives::<Wgpu>(mesh);
}

#[test]
fn the_engine_trains_as_one_device() {
    let mesh = mesh::<Plain>(3);
    trains_as_one_device(&mesh);
    in_kernels(&mesh);
}

#[test]
fn the_engine_trains_as_one_device_with_fusion() {
    let mesh = mesh::<Wgpu>(2);
    trains_as_one_device(&mesh);
    in_kernels(&mesh);
}

#[test]
fn convolutions_with_batch_norm() {
    let mesh = mesh::<Wgpu>(2);
    convolutions_with_batch_norm_train(&mesh);
    in_kernels(&mesh);
}
