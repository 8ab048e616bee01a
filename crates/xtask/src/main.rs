//! Maintenance commands: generate, new-algorithm, tidy.
fn main() {}
