//! Burn's CPU backend. There is one CPU, and any number stands for a logical device of it.

use super::base::{DeviceInfo, MeshBackend};
use crate::error::Result;
use crate::mesh::spec::Members;
use burn::tensor::DType;
use burn_flex::{Flex, FlexDevice};
use std::sync::OnceLock;

impl MeshBackend for Flex {
    fn spec_name() -> &'static str {
        "flex"
    }

    /// One: more are asked for by number.
    fn discover() -> Result<Vec<DeviceInfo>> {
        Ok(vec![info(0)])
    }

    fn device(_index: usize) -> FlexDevice {
        FlexDevice
    }

    /// Whatever its other ints are.
    fn pool_index_dtype() -> DType {
        DType::I64
    }

    fn select(members: &Members) -> Result<Vec<DeviceInfo>> {
        match members {
            Members::All => Self::discover(),
            Members::Indices(indices) => Ok(indices.iter().map(|index| info(*index)).collect()),
        }
    }
}

pub(crate) fn info(index: usize) -> DeviceInfo {
    static NAME: OnceLock<String> = OnceLock::new();
    let name = NAME.get_or_init(|| {
        let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        model(&text).unwrap_or("CPU").to_string()
    });
    DeviceInfo::new(index, name, "CPU")
}

/// The name in the text of `/proc/cpuinfo`; not every architecture writes one.
fn model(cpuinfo: &str) -> Option<&str> {
    cpuinfo
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(key, value)| key.trim() == "model name" && !value.trim().is_empty())
        .map(|(_, value)| value.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_cpu_and_as_many_logical_devices_as_asked_for() {
        assert_eq!(Flex::discover().expect("a CPU").len(), 1);
        let chosen = Flex::select(&Members::Indices(vec![7, 0, 7])).expect("any number");
        let indices: Vec<usize> = chosen.iter().map(|info| info.index).collect();
        assert_eq!(indices, [7, 0, 7]);
        assert!(!chosen[0].name.is_empty());
    }

    #[test]
    fn names_of_cpus() {
        let x86 =
            "processor\t: 0\nmodel\t\t: 85\nmodel name\t: Some CPU @ 2.0GHz\n\nmodel name\t: B";
        assert_eq!(model(x86), Some("Some CPU @ 2.0GHz"));
        assert_eq!(
            model("processor : 0\nBogoMIPS : 48.00\nmodel name :\n"),
            None
        );
        assert_eq!(model(""), None);
    }
}
