//! Cost of a packet at a rate, as the kernel's shapers count it (`psched_ratecfg`).

use dragstrip_units::{Duration, Rate};

/// Conversion of a packet's length to the bytes that a shaper charges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Framing {
    /// Bytes added to every packet (tc's `overhead`); may be negative.
    pub overhead: i32,
    /// Least bytes charged (tc's `mpu`).
    pub mpu: u32,
    /// Charge whole ATM cells: 48 bytes of payload cost 53 (tc's `linklayer atm`).
    pub atm: bool,
}

impl Framing {
    /// Bytes charged for a packet of `len`: overhead first, then the minimum, then cells.
    #[inline]
    #[must_use]
    pub const fn charged(self, len: u32) -> u32 {
        let mut bytes = len.saturating_add_signed(self.overhead);
        if bytes < self.mpu {
            bytes = self.mpu;
        }
        // In 32 bits, as `psched_l2t_ns` counts.
        if self.atm { bytes.div_ceil(48).wrapping_mul(53) } else { bytes }
    }
}

/// A rate as a type that cannot be zero. Validation has refused zero; one bit per second keeps this total.
pub(crate) fn rate(bps: u64) -> Rate {
    const ONE: Rate = match Rate::from_bits_per_second(1) {
        Some(rate) => rate,
        None => unreachable!(),
    };
    Rate::from_bits_per_second(bps).unwrap_or(ONE)
}

/// A rate as the kernel stores it: `time = (bytes × mult) >> shift` whole nanoseconds.
///
/// `mult` has 32 significant bits, so a cost is short by less than 2^-31 of itself plus the
/// nanosecond that is cut; tc passes whole bytes per second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TokenRate {
    mult: u64,
    shift: u32,
    framing: Framing,
}

impl TokenRate {
    /// The largest multiplier below 2^32, as `psched_ratecfg_precompute` finds it.
    pub(crate) fn new(rate: Rate, framing: Framing) -> Self {
        let bytes_per_second = (rate.bits_per_second() / 8).max(1);
        let mut factor: u64 = 1_000_000_000;
        let mut shift = 0;
        let mut mult = factor / bytes_per_second;
        while mult >> 31 == 0 && factor >> 63 == 0 {
            factor <<= 1;
            shift += 1;
            mult = factor / bytes_per_second;
        }
        Self { mult, shift, framing }
    }

    /// Nanoseconds that a packet of `len` costs.
    #[inline]
    pub(crate) fn cost_ns(&self, len: u32) -> i64 {
        ((u64::from(self.framing.charged(len)) * self.mult) >> self.shift) as i64
    }
}

/// The nanoseconds of a bucket of `bytes` as tc hands them to htb: whole psched ticks of 64 ns.
pub(crate) fn bucket_in_ticks(bytes: u64, rate: Rate) -> i64 {
    const TICK: u64 = 64;
    let (time, _) = rate.time_for_floor(bytes, 0);
    let ticks = Duration::as_nanos(time) / TICK;
    // htb takes the number of ticks as 32 bits.
    (ticks.min(u64::from(u32::MAX)) * TICK) as i64
}

#[cfg(test)]
mod tests {
    use super::{Framing, TokenRate, bucket_in_ticks};
    use dragstrip_units::Rate;

    fn rate(bps: u64) -> Rate {
        Rate::from_bits_per_second(bps).unwrap()
    }

    #[test]
    fn a_full_frame_at_one_megabit_takes_12_112_ms() {
        let rate = TokenRate::new(rate(1_000_000), Framing::default());
        assert_eq!(rate.cost_ns(1514), 12_112_000);
    }

    #[test]
    fn the_multiplier_is_exact_to_32_bits_from_8_bits_to_400_gigabits_per_second() {
        for bps in [8, 1_000, 56_000, 3_000_000, 10_000_000_000, 400_000_000_000] {
            let cost = TokenRate::new(rate(bps), Framing::default()).cost_ns(1514) as f64;
            let exact = 1514.0 * 1e9 / (bps / 8) as f64;
            assert!(cost <= exact && exact - cost < 1.0 + exact / f64::from(1_u32 << 30));
        }
    }

    #[test]
    fn atm_charges_whole_cells_after_the_overhead() {
        let adsl = Framing { overhead: 40, mpu: 0, atm: true };
        assert_eq!(adsl.charged(1514), 33 * 53);
        assert_eq!(adsl.charged(56), 2 * 53);
        assert_eq!(adsl.charged(57), 3 * 53);
        let ethernet = Framing { overhead: -14, mpu: 64, atm: false };
        assert_eq!(ethernet.charged(66), 64);
        assert_eq!(ethernet.charged(1514), 1500);
    }

    #[test]
    fn buckets_are_cut_to_ticks_of_64_ns() {
        assert_eq!(bucket_in_ticks(1600, rate(1_000_000)), 12_800_000);
        assert_eq!(bucket_in_ticks(1600, rate(3_000_000)), 66_666 * 64);
    }

    #[test]
    fn a_charge_beyond_32_bits_wraps_as_the_kernel_s() {
        let framing = Framing { overhead: 0, mpu: u32::MAX, atm: true };
        assert_eq!(
            u64::from(framing.charged(1)),
            u64::from(u32::MAX).div_ceil(48) * 53 % (1 << 32)
        );
    }
}
