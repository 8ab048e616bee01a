//! Entries of the table of hops: a stage, or an end of a path.

/// With this bit the port at the end of a path.
pub(crate) const END: u32 = 1 << 31;

/// With this one the processor of the host at which a path begins or ends.
pub(crate) const PROCESSOR: u32 = 1 << 30;

/// With this one the network card of the host at which a path ends.
pub(crate) const CARD: u32 = 1 << 29;

/// With any of these bits no stage.
pub(crate) const NOT_A_STAGE: u32 = END | PROCESSOR | CARD;
