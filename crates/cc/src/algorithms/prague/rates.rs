//! Rates in place of short windows (`cwnd_mode` 1 of module 0.7): with up to four packets a window's steps are too coarse, so the
//! rate is what grows and is reduced, and the window follows it.
//!
//! ```text
//!   per ACK     rate += (unmarked · 1500 / V) / (packets that the rate sends in V),   V = max(T, RTT)
//!   at a mark   rate ← (1 − α/2) rate, 12,500 bytes/s at least;   at a loss half
//!   pacing      3 % more in the first half of V, as much less in the second
//! ```
//!
//! The module multiplies by RTTs of 1/8 µs and shifts by 23 bits, 2²³ for the 8·10⁶ of a second, so its windows are 4.6 % below
//! what the rate would fill. It shrinks segments where two of them do not fit into V; here they stay full.

use super::{ALPHA_BITS, MTU, RATE_MIN, UNIT};
use crate::Window;

/// Bits that stand for the 8·10⁶ eighths of a µs in a second.
const SECOND: u32 = 23;
/// The RTT that windows are computed from is smoothed over 2 to this power rounds (`HSRTT_SHIFT`).
const SRTT_SHIFT: u32 = 7;
/// Windows of up to so many bytes have a rate instead (`prague_cwnd_transit` of `MTU_SYS`).
const WINDOW_MAX: u64 = 4 * MTU;
/// Part of the rate that pacing adds and takes away, /128 (`RATE_OFFSET`).
const OFFSET: u64 = 4;

/// A flow's rate, and whether it is in force.
#[derive(Clone, Debug)]
pub(super) struct Rates {
    /// Bytes per second, headers included (`rate_bytes`).
    pub bytes: u64,
    /// ... before the last loss.
    before_loss: u64,
    /// RTT in 1/8 µs, times 2⁷ (`hsrtt_us`).
    srtt: u64,
    /// The window is short (`cwnd_mode`).
    pub short_window: bool,
}

/// The product with an RTT in 1/8 µs: bytes, /2 to the power `bits`.
fn in_rtt(rate: u64, rtt_x8: u64, bits: u32) -> u64 {
    ((u128::from(rate) * u128::from(rtt_x8)) >> (SECOND - bits)) as u64
}

impl Rates {
    /// The state at the start of a connection; 0 for an RTT that is not known yet.
    pub fn new(srtt_us_x8: u32) -> Self {
        let srtt = if srtt_us_x8 > 0 { srtt_us_x8 } else { 8 };
        Self {
            bytes: RATE_MIN,
            before_loss: 0,
            srtt: u64::from(srtt) << SRTT_SHIFT,
            short_window: false,
        }
    }

    /// The window that the rate fills, /2²⁰ packets (`prague_pacing_rate_to_frac_cwnd`).
    pub fn window(&self, mtu: u64) -> u64 {
        in_rtt(self.bytes, self.srtt >> SRTT_SHIFT, UNIT).div_ceil(mtu)
    }

    /// Grows by packets that were not marked; `rtt_x8` is V.
    pub fn grow(&mut self, unmarked: u32, rtt_x8: u64, mtu: u64) {
        let step = ((u64::from(unmarked) * MTU) << SECOND) / rtt_x8;
        let packets =
            (u128::from(self.bytes) * u128::from(rtt_x8)).div_ceil((mtu << SECOND).into());
        let packets = (packets as u64).max(1);
        self.bytes += (step + packets / 2) / packets;
    }

    /// A mark; α in /2²⁴.
    pub fn reduce(&mut self, alpha: u64) {
        let given_up = (u128::from(self.bytes) * u128::from(alpha)) >> (ALPHA_BITS + 1);
        self.bytes = (self.bytes - given_up as u64).max(RATE_MIN);
    }

    /// A loss.
    pub fn remember(&mut self) {
        self.before_loss = self.bytes;
    }

    /// A loss, while the rate is in force.
    pub fn halve(&mut self) {
        self.bytes -= self.bytes / 2;
    }

    /// The loss was none.
    pub fn undo(&mut self) {
        self.bytes = self.bytes.max(self.before_loss);
    }

    /// The rate of pacing, in the first or the second half of V.
    pub fn paced(&self, second_half: bool) -> u64 {
        let offset = (OFFSET * self.bytes) >> 7;
        if second_half { self.bytes - offset } else { self.bytes + offset }
    }

    /// A round has ended.
    pub fn end_round(&mut self, srtt_us_x8: u32) {
        self.srtt = self.srtt + u64::from(srtt_us_x8) - (self.srtt >> SRTT_SHIFT);
    }

    /// An ACK has been processed.
    pub fn judge(&mut self, window: &Window, mtu: u64) {
        self.short_window = u64::from(window.cwnd) * mtu <= WINDOW_MAX;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 250 kB/s and 10 ms: 2500 bytes, of which 8·10⁶ / 2²³ are left.
    #[test]
    fn a_window_is_what_the_rate_fills() {
        let mut rates = Rates::new(80_000);
        rates.bytes = 250_000;
        let packets = rates.window(1_500) as f64 / f64::from(1 << UNIT);
        assert!((packets - 2_500.0 / 1_500.0 * 8e6 / f64::from(1 << 23)).abs() < 1e-5, "{packets}");
        // The RTT that counts follows over 128 rounds.
        (0..128).for_each(|_| rates.end_round(160_000));
        let later = rates.window(1_500) as f64 / f64::from(1 << UNIT);
        let left = (0..128).fold(1.0, |left, _| left * 127.0 / 128.0);
        assert!((later / packets - (2.0 - left)).abs() < 0.01, "{later}");
    }

    #[test]
    fn marks_leave_100_kbit_s_and_a_loss_can_be_undone() {
        let mut rates = Rates::new(80_000);
        rates.bytes = 20_000;
        rates.remember();
        rates.halve();
        assert_eq!(rates.bytes, 10_000);
        rates.undo();
        assert_eq!(rates.bytes, 20_000);
        rates.reduce(1 << ALPHA_BITS);
        assert_eq!(rates.bytes, RATE_MIN);
    }

    #[test]
    fn pacing_probes_around_the_rate() {
        let mut rates = Rates::new(80_000);
        rates.bytes = 1_280_000;
        assert_eq!([rates.paced(false), rates.paced(true)], [1_320_000, 1_240_000]);
    }
}
