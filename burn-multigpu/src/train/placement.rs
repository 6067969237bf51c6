//! Which member keeps which optimizer state.

/// Where the states of the optimizer (the moments of Adam, for one) are kept.
///
/// ```
/// use burn::train::{LearnerOptimizerRecord, LearningComponentsTypes};
/// use burn_multigpu::train::StatePerParameter;
/// use burn_multigpu::{MultiGpuStrategy, OptimizerPlacement};
///
/// // With any model and any optimizer that keeps a state for each parameter.
/// fn sharded<LC: LearningComponentsTypes>(strategy: MultiGpuStrategy<LC>) -> MultiGpuStrategy<LC>
/// where
///     LearnerOptimizerRecord<LC>: StatePerParameter,
/// {
///     strategy.optimizer_placement(OptimizerPlacement::Sharded)
/// }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OptimizerPlacement {
    /// On every member, which all make the same update from the same reduced gradients. Parameters
    /// are never sent.
    #[default]
    Replicated,
    /// Each parameter's on one member: it gets the reduced gradient, makes the update and sends the
    /// parameter to the others. As many bytes travel, and each member keeps about one `N`th of the
    /// states, which Adam has two of per parameter (S. Rajbhandari et al., "ZeRO: Memory
    /// Optimizations Toward Training Trillion Parameter Models", 2020, stage 1).
    ///
    /// For optimizers that treat every parameter by itself, as all of Burn's but L-BFGS do.
    Sharded,
}

/// An owner for each tensor of the given sizes, so that the members' sums are about equal: the
/// largest first, to the member that has the least (R. Graham, "Bounds on multiprocessing timing
/// anomalies", 1969).
pub(super) fn owners(sizes: &[usize], members: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    order.sort_by_key(|tensor| std::cmp::Reverse(sizes[*tensor]));
    let mut loads = vec![0usize; members];
    let mut owners = vec![0; sizes.len()];
    for tensor in order {
        let least = (0..members)
            .min_by_key(|member| loads[*member])
            .unwrap_or(0);
        owners[tensor] = least;
        loads[least] += sizes[tensor];
    }
    owners
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Graham's bound: no member has more than the mean and one largest tensor.
        #[test]
        fn loads_are_balanced(sizes in prop::collection::vec(0usize..1000, 0..40), members in 1usize..9) {
            let owners = owners(&sizes, members);
            prop_assert_eq!(owners.len(), sizes.len());
            let load = |member| -> usize {
                sizes.iter().zip(&owners).filter(|(_, o)| **o == member).map(|(s, _)| s).sum()
            };
            let mean = sizes.iter().sum::<usize>().div_ceil(members);
            let largest = sizes.iter().max().copied().unwrap_or(0);
            for member in 0..members {
                prop_assert!(load(member) <= mean + largest);
            }
        }
    }

    #[test]
    fn the_first_member_owns_something() {
        assert_eq!(owners(&[3, 9, 4], 5), [2, 0, 1]);
    }
}
