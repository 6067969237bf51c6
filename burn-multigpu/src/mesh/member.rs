//! What a mesh knows of each of its devices.

use super::discover::DeviceInfo;
use crate::table::columns;
use serde::Serialize;

/// One device of a mesh, as it was when the mesh opened.
///
/// ```
/// use burn::backend::Flex;
/// use burn_multigpu::Mesh;
///
/// let mesh = Mesh::<Flex>::open("flex:0,1")?;
/// for member in mesh.members() {
///     println!("{} is {} ({:?})", member.label, member.name, member.bus_id);
/// }
/// assert_eq!(mesh.members()[1].position, 1);
/// # Ok::<(), burn_multigpu::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Member {
    /// Its place in the mesh, from 0.
    pub position: usize,
    /// Its backend: `cuda`.
    pub backend: String,
    /// How a spec names it: `cuda:1`. Two members with one label share a device.
    pub label: String,
    /// The name that the driver gives it.
    pub name: String,
    /// Its memory in bytes, where the backend tells.
    pub memory_total: Option<u64>,
    /// How much of that was free when the mesh opened.
    pub memory_free: Option<u64>,
    /// Where it sits: the name that no variable renumbers.
    pub bus_id: Option<String>,
}

impl Member {
    /// The member that a device makes, at position 0 until a mesh places it.
    pub(super) fn new(backend: &str, info: DeviceInfo) -> Self {
        Self {
            position: 0,
            backend: backend.to_string(),
            label: format!("{backend}:{}", info.index),
            name: info.name,
            memory_total: info.memory_total,
            memory_free: info.memory_free,
            bus_id: info.bus_id,
        }
    }
}

/// What is told of a member.
pub(crate) const HEAD: [&str; 6] = [
    "#",
    "device",
    "name",
    "memory (GiB)",
    "free (GiB)",
    "bus id",
];
/// Which of that are numbers.
pub(crate) const RIGHT: [bool; 6] = [true, false, false, true, true, false];

/// It for each member; `-` where a backend does not tell.
pub(crate) fn rows(members: &[Member]) -> impl Iterator<Item = Vec<String>> {
    members.iter().map(|member| {
        vec![
            member.position.to_string(),
            member.label.clone(),
            member.name.clone(),
            gib(member.memory_total),
            gib(member.memory_free),
            member.bus_id.clone().unwrap_or_else(|| "-".to_string()),
        ]
    })
}

/// A table of members, one a line, columns aligned.
pub(super) fn table(members: &[Member]) -> String {
    let head = HEAD.map(str::to_string).to_vec();
    let lines: Vec<Vec<String>> = std::iter::once(head).chain(rows(members)).collect();
    columns(&RIGHT, &lines)
}

fn gib(bytes: Option<u64>) -> String {
    const GIB: f64 = (1u64 << 30) as f64;
    bytes.map_or("-".to_string(), |bytes| {
        format!("{:.1}", bytes as f64 / GIB)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let gpu = |index, name: &str, bus: &str| DeviceInfo {
            memory_total: Some(150_754_820_096),
            memory_free: Some(1 << 30),
            bus_id: Some(bus.to_string()),
            ..DeviceInfo::new(index, name, "discrete GPU")
        };
        let mut members = vec![
            Member::new("cuda", gpu(0, "NVIDIA H200", "0000:1b:00.0")),
            Member::new("cuda", gpu(11, "Carte graphique n° 2", "0000:2c:00.0")),
            Member::new("flex", DeviceInfo::new(0, "CPU", "CPU")),
        ];
        for (position, member) in members.iter_mut().enumerate() {
            member.position = position;
        }
        let expected = "\
#  device   name                  memory (GiB)  free (GiB)  bus id
0  cuda:0   NVIDIA H200                  140.4         1.0  0000:1b:00.0
1  cuda:11  Carte graphique n° 2         140.4         1.0  0000:2c:00.0
2  flex:0   CPU                              -           -  -";
        assert_eq!(table(&members), expected);
    }
}
