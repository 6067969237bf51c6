//! What the integration tests share: small models, a plain single-device trainer as the judge, and
//! comparisons.

pub mod book;
pub mod compare;
pub mod models;
pub mod operations;
pub mod programs;
pub mod single;
pub mod trainee;

pub use burn_std::device::Device;

use std::sync::{Once, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Burn's random generators belong to the process. Tests that draw hold this for reading; those
/// that depend on what is drawn hold it for writing.
static RANDOM: RwLock<()> = RwLock::new(());

/// For tests that draw random numbers and do not care which.
pub fn draws() -> RwLockReadGuard<'static, ()> {
    RANDOM
        .read()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// For tests whose result depends on the random stream.
pub fn owns_random() -> RwLockWriteGuard<'static, ()> {
    RANDOM
        .write()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Makes `f64` the float type of the whole process. Must come before the first tensor.
pub fn use_f64() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        use burn::tensor::{DType, set_default_dtypes};
        let device = burn::backend::flex::FlexDevice;
        let set = set_default_dtypes::<burn::backend::Flex>(&device, DType::F64, DType::I64);
        assert!(
            set.is_ok(),
            "a tensor was made before the float type was set"
        );
    });
}

/// Runs a function on a thread of its own and fails if it takes longer than this many seconds: for
/// what must not hang.
pub fn within<T: Send + 'static>(seconds: u64, function: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, receiver) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        let _ = sender.send(function());
    });
    match receiver.recv_timeout(std::time::Duration::from_secs(seconds)) {
        Ok(value) => value,
        Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {
            panic!("still running after {seconds} s")
        }
        Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => match thread.join() {
            Err(panic) => std::panic::resume_unwind(panic),
            Ok(()) => unreachable!("the sender is dropped only by a panic"),
        },
    }
}
