//! The engine and the collectives on the software Vulkan device, where CubeCL kernels do the
//! reduction. Needs the Debian package mesa-vulkan-drivers.

use crate::device::{collectives, convolutions_with_batch_norm_train, trains_as_one_device};
use burn::backend::Wgpu;
use burn::backend::wgpu::CubeBackend;
use burn::tensor::Tensor;
use burn_multigpu::{Mesh, MeshBackend, MultiGpu};
use burn_multigpu_tests::within;

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

/// More than any device has, in one tensor.
#[test]
fn memory_that_runs_out_is_an_error_that_names_the_member() {
    within(60, || {
        let mesh = mesh::<Plain>(2);
        let device = mesh.device();
        let ones = Tensor::<MultiGpu<Plain>, 2>::ones([1 << 20, 1 << 18], &device);
        let error = ones.sum().try_into_data().unwrap_err().to_string();
        assert!(
            error.contains("member ") && error.contains("(wgpu:0)"),
            "{error}"
        );

        let again = self::mesh::<Plain>(2);
        let x = Tensor::<MultiGpu<Plain>, 1>::from_floats([1.0, 2.0], &again.device());
        assert_eq!(x.sum().into_scalar(), 3.0);
    });
}
