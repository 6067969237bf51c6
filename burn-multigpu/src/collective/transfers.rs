//! How data moves between each pair of members, found out once when the mesh opens.

use super::ops::{CollectiveOps, Transfer};
use burn::tensor::backend::Backend;
use std::fmt;

/// For each pair of members, how tensors get from one to the other.
///
/// ```
/// use burn::backend::Flex;
/// use burn_multigpu::Mesh;
/// use burn_multigpu::collective::Transfer;
///
/// let mesh = Mesh::<Flex>::open("flex:0,1")?;
/// assert_eq!(mesh.transfers().path(0, 1), Transfer::Same);
/// assert_eq!(mesh.transfers().to_string(), "same device, memory is shared: 0-1\n");
/// # Ok::<(), burn_multigpu::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transfers {
    members: usize,
    paths: Vec<Transfer>,
}

impl Transfers {
    /// Compares devices and, where they differ, asks the runtime by trying.
    pub(crate) fn probe<B: Backend>(devices: &[B::Device], ops: &dyn CollectiveOps<B>) -> Self {
        let path = |from: &B::Device, to: &B::Device| {
            if from == to {
                Transfer::Same
            } else if ops.peer(from, to) {
                Transfer::Peer
            } else {
                Transfer::Host
            }
        };
        Self {
            members: devices.len(),
            paths: devices
                .iter()
                .flat_map(|from| devices.iter().map(move |to| path(from, to)))
                .collect(),
        }
    }

    /// The path from one member to another, by their positions in the mesh.
    ///
    /// # Panics
    ///
    /// If a position is not in the mesh.
    #[must_use]
    pub fn path(&self, from: usize, to: usize) -> Transfer {
        assert!(
            from < self.members && to < self.members,
            "member out of range"
        );
        self.paths[from * self.members + to]
    }
}

impl fmt::Display for Transfers {
    /// One line per kind of path that occurs, with what it means.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.members == 1 {
            return writeln!(f, "one member: nothing moves");
        }
        for (kind, meaning) in [
            (Transfer::Same, "same device, memory is shared"),
            (Transfer::Peer, "device to device"),
            (Transfer::Host, "through host memory"),
        ] {
            let pairs: Vec<String> = (0..self.members)
                .flat_map(|from| (from + 1..self.members).map(move |to| (from, to)))
                .filter(|(from, to)| self.path(*from, *to) == kind)
                .map(|(from, to)| format!("{from}-{to}"))
                .collect();
            if !pairs.is_empty() {
                writeln!(f, "{meaning}: {}", pairs.join(", "))?;
            }
        }
        Ok(())
    }
}
