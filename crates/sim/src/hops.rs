//! Entries of the table of hops: a stage, or an end of a path.

/// With this bit the port at the end of a path.
pub(crate) const END: u32 = 1 << 31;

/// With this one the processor of the host at which a path begins or ends.
pub(crate) const PROCESSOR: u32 = 1 << 30;
