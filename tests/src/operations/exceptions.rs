//! Operations that no case meets.

/// Names of operations, and why no program on Flex meets them.
pub const EXCEPTIONS: &[(&str, &str)] = &[
    (
        "BaseBool::Cast",
        "no function of Burn asks for it: bools become ints or floats",
    ),
    ("BaseBool::GatherNd", "Burn refuses it for bools"),
    ("BaseBool::ScatterNd", "Burn refuses it for bools"),
    ("NumericFloat::ArgTopK", "Flex does not have it"),
    (
        "NumericFloat::IntRandom",
        "no function of Burn asks for it: random floats are `Float::Random`",
    ),
    (
        "NumericFloat::Powi",
        "Burn's description of it takes two tensors of one type; `Float::Powf` is done instead",
    ),
    ("NumericInt::ArgTopK", "Flex does not have it"),
    (
        "Module::CtcLossBackward",
        "Flex does not have it: gradients go through what the loss is made of",
    ),
    (
        "Init",
        "only announces data from the host, which the decorator takes without it",
    ),
    (
        "Custom",
        "an operation of a backend extension, which the decorator refuses",
    ),
    ("Drop", "frees a tensor, and is not counted"),
];
