//! Handles, threads, several meshes, tensors that outlive theirs.

use super::{M, open};
use burn::backend::Flex;
use burn::tensor::backend::DeviceOps;
use burn::tensor::{Tensor, TensorData};
use burn_multigpu::{Mesh, MeshDevice};
use burn_multigpu_tests::within;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Threads are counted by their names: only one test at a time starts any with these.
static COUNTS: Mutex<()> = Mutex::new(());

fn counts() -> MutexGuard<'static, ()> {
    COUNTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How many threads of this process work for a device of this label.
#[cfg(target_os = "linux")]
fn threads(label: &str) -> usize {
    std::fs::read_dir("/proc/self/task")
        .unwrap()
        .filter_map(|task| std::fs::read_to_string(task.unwrap().path().join("comm")).ok())
        .filter(|name| name.trim_end().ends_with(label))
        .count()
}

/// Waits for so many: a thread takes its name only once it runs.
#[cfg(target_os = "linux")]
fn has_threads(label: &str, count: usize) {
    let deadline = Instant::now() + Duration::from_secs(5);
    while threads(label) != count {
        assert!(Instant::now() < deadline, "{label}: {}", threads(label));
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn x(device: &MeshDevice<Flex>) -> Tensor<M, 1> {
    Tensor::from_floats([1.0, 2.0, 3.0], device)
}

#[test]
#[cfg(target_os = "linux")]
fn the_last_handle_ends_the_threads() {
    let _counts = counts();
    let mesh = open("flex:70,71");
    assert_eq!(threads("flex:70"), 0, "none before the first use");
    let device = mesh.device();
    has_threads("flex:70", 1);
    has_threads("flex:71", 1);
    assert_eq!(mesh.device(), device, "one device for one mesh");
    drop(mesh);
    let tensor = x(&device) * 2.0;
    drop(device);
    assert_eq!(threads("flex:70"), 1, "a tensor is a handle as well");
    assert_eq!(tensor.to_data().to_vec::<f32>().unwrap(), [2.0, 4.0, 6.0]);
    drop(tensor);
    assert_eq!((threads("flex:70"), threads("flex:71")), (0, 0));
}

#[test]
fn the_device_alone_keeps_the_mesh() {
    let device = Mesh::<Flex>::open("flex:0,1").unwrap().device();
    assert_eq!(x(&device).sum().into_scalar(), 6.0);
}

#[test]
fn two_meshes_over_the_same_devices() {
    let (a, b) = (open("flex:0,1"), open("flex:0,1,2"));
    let (on_a, on_b) = (x(&a.device()), x(&b.device()));
    assert_ne!(a.device(), b.device());
    assert_ne!(a.device().id(), b.device().id());
    let moved = (on_a * 2.0).to_device(&b.device());
    assert_eq!(moved.device(), b.device());
    let sum = (moved + on_b).into_data();
    assert_eq!(sum.to_vec::<f32>().unwrap(), [3.0, 6.0, 9.0]);
}

#[test]
fn a_device_is_found_by_its_id() {
    use burn_multigpu::backend::MeshDevice;
    type D = MeshDevice<Flex>;
    let mesh = open("flex:0,1");
    let device = mesh.device();
    let found = <D as burn_multigpu_tests::Device>::from_id(device.id());
    assert_eq!(found, device);
    assert_eq!(format!("{found:?}"), "Mesh(flex:0,flex:1)");
    let id = device.id();
    drop((mesh, device, found));
    let gone = <D as burn_multigpu_tests::Device>::from_id(id);
    let message = within(10, move || {
        let made = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| x(&gone)));
        *made.unwrap_err().downcast::<String>().unwrap()
    });
    assert!(
        message.contains("has ended: its last handle was dropped"),
        "{message}"
    );
}

#[test]
fn the_default_device_opens_what_there_is() {
    // Without MULTIGPU_DEVICES that is the one CPU.
    let device = MeshDevice::<Flex>::default();
    assert_eq!(x(&device).sum().into_scalar(), 6.0);
    assert_eq!(x(&device).device(), device);
    assert_eq!(device, Default::default());
}

#[test]
fn tensors_that_outlive_a_closed_mesh_give_an_error() {
    within(10, || {
        let mesh = open("flex:0,1");
        let device = mesh.device();
        let before = x(&device) + 1.0;
        mesh.close();
        let error = before.clone().try_into_data().unwrap_err().to_string();
        assert!(
            error.contains("the mesh flex:0,flex:1 was closed"),
            "{error}"
        );
        // Going on with it does not hang either.
        let after = (before * 2.0).matmul_like(&device);
        let error = after.try_into_data().unwrap_err().to_string();
        assert!(error.contains("was closed"), "{error}");
        mesh.close();
    });
}

trait MatmulLike {
    fn matmul_like(self, device: &MeshDevice<Flex>) -> Tensor<M, 2>;
}

impl MatmulLike for Tensor<M, 1> {
    fn matmul_like(self, device: &MeshDevice<Flex>) -> Tensor<M, 2> {
        let w = Tensor::<M, 2>::from_data(TensorData::new(vec![1.0f32; 6], [3, 2]), device);
        self.unsqueeze::<2>().matmul(w)
    }
}

#[test]
fn many_threads_may_use_one_mesh() {
    within(60, || {
        let mesh = open("flex:0,1,2");
        let device = mesh.device();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let device = device.clone();
                scope.spawn(move || {
                    for round in 0..50 {
                        let data = TensorData::new(vec![(thread * round) as f32; 10], [5, 2]);
                        let t = Tensor::<M, 2>::from_data(data, &device);
                        let sum = (t.clone() + t).sum().into_scalar();
                        assert_eq!(sum, (thread * round * 20) as f32);
                    }
                });
            }
        });
    });
}
