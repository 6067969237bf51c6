//! An operation as one member runs it.

use super::ir::tensors_mut;
use crate::layout::{Layout, overlap};
use burn::tensor::Slice;
use burn_ir::{BaseOperationIr, OperationIr};

/// The operation on a member's parts: shapes become those of the parts, and a slice takes what the
/// member has of its range. Everything else that an operation says is the same for all members.
pub(crate) fn localize(
    op: &OperationIr,
    inputs: &[Layout],
    outputs: &[Layout],
    member: usize,
) -> OperationIr {
    let mut local = op.clone();
    localize_ranges(&mut local, inputs, outputs, member);
    let (operands, results) = tensors_mut(&mut local);
    for (tensor, layout) in operands
        .into_iter()
        .zip(inputs)
        .chain(results.into_iter().zip(outputs))
    {
        if let Layout::Sharded { dim, bounds } = layout {
            tensor.shape.as_mut_slice()[*dim] = bounds.size(member);
        }
    }
    local
}

/// Ranges along the dimension that is cut, counted from where the member's part starts.
fn localize_ranges(op: &mut OperationIr, inputs: &[Layout], outputs: &[Layout], member: usize) {
    let (OperationIr::BaseFloat(op) | OperationIr::BaseInt(op) | OperationIr::BaseBool(op)) = op
    else {
        return;
    };
    let (ranges, shape) = match op {
        BaseOperationIr::Slice(desc) => (&mut desc.ranges, &desc.tensor.shape),
        BaseOperationIr::SliceAssign(desc) => (&mut desc.ranges, &desc.tensor.shape),
        _ => return,
    };
    let (Some(Layout::Sharded { dim, bounds }), Some(Layout::Sharded { .. })) =
        (inputs.first(), outputs.first())
    else {
        return;
    };
    if let Some(range) = ranges.get_mut(*dim) {
        let (asked, own) = (range.to_range(shape[*dim]), bounds.range(member));
        *range = Slice::from(overlap(&asked, &own));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Bounds;
    use burn::tensor::{DType, Shape};
    use burn_ir::{SliceOpIr, TensorId, TensorIr, TensorStatus};

    #[test]
    fn a_slice_takes_what_the_member_has() {
        let tensor = TensorIr {
            id: TensorId::new(1),
            shape: Shape::new([10, 4]),
            status: TensorStatus::ReadOnly,
            dtype: DType::F32,
        };
        let ranges = vec![Slice::new(2, Some(7), 1), Slice::new(0, Some(2), 1)];
        let desc = SliceOpIr::create(tensor, ranges, || TensorId::new(2));
        let op = OperationIr::BaseFloat(BaseOperationIr::Slice(desc));
        let bounds = Bounds::even(10, 3);
        let from = Layout::Sharded {
            dim: 0,
            bounds: bounds.clone(),
        };
        let to = Layout::Sharded {
            dim: 0,
            bounds: bounds.within(&(2..7)),
        };
        let starts = [(2, 4), (0, 3), (0, 0)];
        for (member, (start, end)) in starts.into_iter().enumerate() {
            let local = localize(
                &op,
                std::slice::from_ref(&from),
                std::slice::from_ref(&to),
                member,
            );
            let OperationIr::BaseFloat(BaseOperationIr::Slice(desc)) = local else {
                unreachable!("a slice stays a slice")
            };
            assert_eq!(desc.ranges[0], Slice::new(start, Some(end), 1));
            assert_eq!(desc.ranges[1], Slice::new(0, Some(2), 1));
            assert_eq!(desc.tensor.shape[0], bounds.size(member));
            assert_eq!(desc.out.shape.as_slice(), [(end - start) as usize, 2]);
        }
    }
}
