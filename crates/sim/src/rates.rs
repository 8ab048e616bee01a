//! Rates of a scenario.

use dragstrip_units::Rate;

/// The rate of this many bits per second.
pub(crate) fn rate(bps: u64) -> Rate {
    // Validation has refused zero; one bit per second keeps the type total.
    Rate::from_bits_per_second(bps).unwrap_or(ONE_BIT_PER_SECOND)
}

const ONE_BIT_PER_SECOND: Rate = match Rate::from_bits_per_second(1) {
    Some(rate) => rate,
    None => unreachable!(),
};
