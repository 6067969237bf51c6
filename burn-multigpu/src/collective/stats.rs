//! What the collectives of a mesh did: bytes per member, reductions, kernel launches.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Counters of one mesh, shared by all that reduce over it.
#[derive(Debug)]
pub(crate) struct Counters {
    sent: Vec<AtomicU64>,
    received: Vec<AtomicU64>,
    all_reduces: AtomicU64,
    buckets: AtomicU64,
    kernel_sums: AtomicU64,
    kernel_packs: AtomicU64,
    host_sums: AtomicU64,
}

impl Counters {
    pub(crate) fn new(members: usize) -> Self {
        let zeros = || (0..members).map(|_| AtomicU64::new(0)).collect();
        Self {
            sent: zeros(),
            received: zeros(),
            all_reduces: AtomicU64::new(0),
            buckets: AtomicU64::new(0),
            kernel_sums: AtomicU64::new(0),
            kernel_packs: AtomicU64::new(0),
            host_sums: AtomicU64::new(0),
        }
    }

    pub(crate) fn moved(&self, from: usize, to: usize, bytes: usize) {
        if from != to {
            self.sent[from].fetch_add(bytes as u64, Relaxed);
            self.received[to].fetch_add(bytes as u64, Relaxed);
        }
    }

    pub(crate) fn all_reduce(&self, buckets: usize) {
        self.all_reduces.fetch_add(1, Relaxed);
        self.buckets.fetch_add(buckets as u64, Relaxed);
    }

    #[cfg(feature = "cubecl")]
    pub(crate) fn kernel_sum(&self) {
        self.kernel_sums.fetch_add(1, Relaxed);
    }

    #[cfg(feature = "cubecl")]
    pub(crate) fn kernel_pack(&self) {
        self.kernel_packs.fetch_add(1, Relaxed);
    }

    pub(crate) fn host_sum(&self) {
        self.host_sums.fetch_add(1, Relaxed);
    }

    pub(crate) fn snapshot(&self) -> CollectiveStats {
        let load = |list: &[AtomicU64]| list.iter().map(|n| n.load(Relaxed)).collect();
        CollectiveStats {
            sent: load(&self.sent),
            received: load(&self.received),
            all_reduces: self.all_reduces.load(Relaxed),
            buckets: self.buckets.load(Relaxed),
            kernel_sums: self.kernel_sums.load(Relaxed),
            kernel_packs: self.kernel_packs.load(Relaxed),
            host_sums: self.host_sums.load(Relaxed),
        }
    }
}

/// What the collectives of a mesh did since it was opened.
///
/// Bytes count what one member takes from another, also where both stand for the same physical
/// device and nothing is copied.
///
/// ```
/// use burn::backend::Flex;
/// use burn::tensor::Tensor;
/// use burn_multigpu::Mesh;
/// use burn_multigpu::collective::{ReduceOp, all_reduce};
///
/// let mesh = Mesh::<Flex>::open("flex:0,1")?;
/// let tensors = mesh.devices().iter().map(|device| Tensor::<Flex, 1>::ones([1000], device));
/// all_reduce(&mesh, tensors.collect(), &ReduceOp::Sum)?;
/// let stats = mesh.stats().collectives;
/// // Each sends half of its 4000 bytes, and the half that it has added up.
/// assert_eq!(stats.sent, [4000, 4000]);
/// # Ok::<(), burn_multigpu::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CollectiveStats {
    /// Bytes that others took from each member.
    pub sent: Vec<u64>,
    /// Bytes that each member took from others.
    pub received: Vec<u64>,
    /// Number of all-reduces, whatever the number of tensors in each.
    pub all_reduces: u64,
    /// Number of buckets in those all-reduces.
    pub buckets: u64,
    /// Sums done by a CubeCL kernel on a device.
    pub kernel_sums: u64,
    /// Pack and unpack operations done by CubeCL kernels.
    pub kernel_packs: u64,
    /// Sums done in plain Rust, on backends without CubeCL.
    pub host_sums: u64,
}

impl fmt::Display for CollectiveStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} all-reduces of {} buckets; sums: {} by kernel, {} in plain Rust",
            self.all_reduces, self.buckets, self.kernel_sums, self.host_sums
        )?;
        for (member, (sent, received)) in self.sent.iter().zip(&self.received).enumerate() {
            writeln!(f, "member {member}: {sent} bytes sent, {received} received")?;
        }
        Ok(())
    }
}
