//! Ports of flows, by their numbers: the first flow has these, the next the ones behind.

/// The port of the first flow's server.
pub const FIRST_PORT: u16 = 5001;
/// The port of its client.
pub const FIRST_CLIENT_PORT: u16 = 30_001;
