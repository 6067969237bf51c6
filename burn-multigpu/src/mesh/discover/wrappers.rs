//! Decorators: their devices are those of the backend inside.

use super::base::{DeviceInfo, MeshBackend};
use crate::error::Result;
use crate::mesh::spec::Members;
use burn::backend::Autodiff;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::tensor::DType;

macro_rules! forward_to {
    ($inner:ident) => {
        fn spec_name() -> &'static str {
            $inner::spec_name()
        }

        fn accepts(name: &str) -> bool {
            $inner::accepts(name)
        }

        fn discover() -> Result<Vec<DeviceInfo>> {
            $inner::discover()
        }

        fn device(index: usize) -> Self::Device {
            <$inner as MeshBackend>::device(index)
        }

        fn select(members: &Members) -> Result<Vec<DeviceInfo>> {
            $inner::select(members)
        }

        fn memory_free(index: usize) -> Option<u64> {
            $inner::memory_free(index)
        }

        fn pool_index_dtype() -> DType {
            $inner::pool_index_dtype()
        }
    };
}

impl<B: MeshBackend, C: CheckpointStrategy> MeshBackend for Autodiff<B, C> {
    forward_to!(B);
}

#[cfg(all(feature = "cubecl", feature = "fusion"))]
impl<B: MeshBackend + burn_fusion::FusionBackend> MeshBackend for burn_fusion::Fusion<B> {
    forward_to!(B);
}
