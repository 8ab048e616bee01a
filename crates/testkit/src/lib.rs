//! Models, random scenarios and fixtures that the other crates test with.
//!
//! What lives here: what more than one crate's tests need. What must not: anything that shipped code
//! depends on; this crate is only ever a development dependency.
