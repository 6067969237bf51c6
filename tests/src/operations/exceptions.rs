//! Operations that no case meets.

/// Names of operations, and why no program can meet them on Flex.
pub const EXCEPTIONS: &[(&str, &str)] = &[];
