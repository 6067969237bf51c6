//! Whether a runtime copies between two of its devices: asked by doing it once.

use burn::tensor::backend::Backend;
use burn_backend::tensor::Device;

/// For runtimes without such copies.
#[allow(dead_code, reason = "used by some backends only")]
pub(super) fn none<B: Backend>(_from: &Device<B>, _to: &Device<B>) -> bool {
    false
}

/// CubeCL's CUDA runtime copies with NCCL, which is a library of its own and may be missing, and
/// which fails for devices that cannot reach each other.
#[cfg(feature = "cuda")]
pub(super) fn nccl<B: Backend>(from: &Device<B>, to: &Device<B>) -> bool {
    crate::mesh::cuda_libraries().nccl && copies::<B>(from, to)
}

/// Copies a few numbers and compares them. A copy that hangs or panics on one of the runtime's
/// threads must not take the caller with it, so this runs on a thread that can be left behind.
#[cfg(feature = "cuda")]
fn copies<B: Backend>(from: &Device<B>, to: &Device<B>) -> bool {
    use super::ops::read;
    use burn::tensor::TensorData;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    let (sender, result) = channel();
    let (from, to) = (from.clone(), to.clone());
    let names = format!("{from:?} to {to:?}");
    let spawned = std::thread::Builder::new()
        .name("mesh-peer-probe".to_string())
        .spawn(move || {
            let sent = TensorData::from([1.0f32, 2.0, 3.0, 4.0]);
            let tensor = B::float_from_data(sent.clone(), &from);
            let received = read::<B>(B::float_to_device(tensor, &to));
            let _ = sender.send(received.is_ok_and(|data| data == sent));
        });
    let works = spawned.is_ok()
        && result
            .recv_timeout(Duration::from_secs(20))
            .unwrap_or(false);
    if !works {
        log::warn!("no direct copies from {names}: data goes through host memory");
    }
    works
}
