//! Models, random scenarios and fixtures that the other crates test with.
//!
//! Scope: code that more than one crate's tests need. Out of scope: anything that shipped code depends on; this crate
//! is only ever a development dependency.
//!
//! | file | gives |
//! |---|---|
//! | `scenarios.rs` | a proptest strategy of valid scenarios of every kind |
//! | `extremes.rs` | ... of one flow at the ends of every range, and what its path can carry at most |
//! | `links.rs` | ... of links: every queue discipline, every impairment |
//! | `traffic.rs` | ... of hosts, flows and pings |
//! | `path.rs` | scenarios written down by tests: hosts, links, flows, a dumbbell |

mod extremes;
mod links;
pub mod path;
mod scenarios;
mod traffic;

use proptest::test_runner::{Config, TestRng, TestRunner};

pub use extremes::{extremes, payload_bytes_max};
pub use scenarios::{Budget, on_stack, scenarios};

/// A runner whose cases are the same every time: a red test must be red again. Each `stream` has cases of its own.
#[must_use]
pub fn runner(config: Config, stream: u8) -> TestRunner {
    let rng = TestRng::from_seed(config.rng_algorithm, &[stream; 32]);
    TestRunner::new_with_rng(Config { failure_persistence: None, ..config }, rng)
}
