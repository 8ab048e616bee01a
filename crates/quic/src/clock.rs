//! The stacks' time: a base plus ours.
//!
//! The stacks compare instants and subtract them, and never look at a clock; so the base, which only the system can make,
//! does not matter.

#![expect(
    clippy::disallowed_types,
    reason = "the stacks take instants of std: here, and nowhere else, they are made of simulated time"
)]

use dragstrip_units::Instant;
use std::sync::LazyLock;
use std::time::Duration;

/// Time as the stacks take it.
pub(crate) type StackInstant = std::time::Instant;

/// Time of day as the stacks take it.
pub(crate) type StackTime = std::time::SystemTime;

static BASE: LazyLock<StackInstant> = LazyLock::new(StackInstant::now);

/// The stacks' form of an instant.
pub(crate) fn stack_time(now: Instant) -> StackInstant {
    *BASE + Duration::from_nanos(now.as_nanos())
}

/// Ours.
pub(crate) fn simulated_time(at: StackInstant) -> Instant {
    let since = at.saturating_duration_since(*BASE).as_nanos();
    Instant::from_nanos(u64::try_from(since).unwrap_or(u64::MAX))
}
