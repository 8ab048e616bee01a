//! TCP-LP: Reno that gives way as soon as its packets take longer one way.
//!
//! - **Paper**: Kuzmanovic and Knightly, "TCP-LP: Low-Priority Service via End-Point Congestion Control", IEEE/ACM ToN
//!   14(4), 2006.
//! - **Equations**: one-way delay `d` from timestamps, smoothed by 1/8; early congestion where
//!   `d ≥ d_min + 15 % (d_max − d_min)`: `cwnd / 2`, and 1 if that comes again within three times the time since the packet
//!   was sent. Growth is Reno's, and none within that time.
//! - **States**: those of Reno, and:
//!
//! ```text
//!   grows ──early congestion: cwnd / 2──▶ waits, 3 · (now − tsecr) ──▶ grows
//!                                           └── early congestion: cwnd = 1
//! ```
//! - **Departs from the paper**, as Linux does: the delay counts from the peer's timestamp clock, which since 4.10 begins at a random
//!   number of 32 bits for each connection (`secure_tcp_ts_off`), while the smoothed delay keeps 29 bits of it. For seven of eight connections it is
//!   below every threshold for ever, and TCP-LP **is** Reno; the others halve their window at the first sample. The number is drawn here from the
//!   flow's seed.
//! - **Not modelled**: `net.ipv4.tcp_timestamps = 2`, without that number.
//! - **Source of the details**: Linux 6.1 `tcp_lp.c`. The module has no parameters.

use crate::algorithms::reno;
use crate::{
    About, Ack, CongestionControl, Needs, Parameters, Response, Rules, Signal, Stamps, Unit,
    Variable, View, Window,
};
use dragstrip_units::Stream;

/// Ticks of a second: unit of delays (`LP_RESOL`), and of timestamps (`TCP_TS_HZ`).
const RESOLUTION: u32 = 1_000;

/// Its row in the registry.
pub const ABOUT: About = About {
    name: "lp",
    file: file!(),
    models: "Linux 6.1, tcp_lp.c",
    module: Some("tcp_lp"),
    signal: Signal::Delay,
    settles: false,
    parameters: &[],
    variables: &[
        Variable::new(
            "remote_hz",
            Unit::Count,
            "steps of the peer's timestamps in a second of ours",
        ),
        Variable::new(
            "delay",
            Unit::Count,
            "smoothed one-way delay, ms, with the distance of both clocks",
        ),
    ],
    needs: Needs { dice: true, ..Needs::NOTHING },
};

/// Linux's TCP-LP. It has no parameters.
#[derive(Clone, Debug)]
pub struct Lp {
    /// Initial value of the peer's timestamps.
    offset: u32,
    /// Smoothed one-way delay in 1/8 ms (`sowd`).
    delay_x8: u32,
    least: u32,
    /// The greatest but one.
    greatest: u32,
    reserve: u32,
    remote_hz: u32,
    /// The last ACK's timestamps.
    remote: u32,
    local: u32,
    /// Time of the last reduction of the window, ms; 0: never.
    last_drop: u32,
    /// ms.
    inference: u32,
    within_inference: bool,
}

impl Lp {
    /// Returns the algorithm with a random initial value of the peer's timestamps.
    #[must_use]
    pub fn new(_parameters: &Parameters<'_>, _rules: &Rules, mut stream: Stream) -> Self {
        Self::with_offset(stream.next_u32())
    }

    fn with_offset(offset: u32) -> Self {
        Self {
            offset,
            delay_x8: 0,
            least: u32::MAX,
            greatest: 0,
            reserve: 0,
            remote_hz: 0,
            remote: 0,
            local: 0,
            last_drop: 0,
            inference: 0,
            within_inference: false,
        }
    }

    /// `tcp_lp_remote_hz_estimator`. The fraction of the average is lost each time, so that only errors of 64 and more raise it.
    fn estimate_hz(&mut self, val: u32, ecr: u32) {
        let has_previous = self.remote != 0 && self.local != 0;
        if has_previous && val != self.remote && ecr != self.local {
            let stepped = RESOLUTION.wrapping_mul(val.wrapping_sub(self.remote));
            let measured = i64::from(stepped / ecr.wrapping_sub(self.local));
            let average = i64::from(self.remote_hz << 6);
            let next =
                if average > 0 { average + measured - (average >> 6) } else { measured << 6 };
            self.remote_hz = (next >> 6) as u32;
        }
        (self.remote, self.local) = (val, ecr);
    }

    /// `tcp_lp_rtt_sample`; in 32 bits as there.
    fn sample(&mut self, val: u32, ecr: u32) {
        self.estimate_hz(val, ecr);
        if self.remote_hz == 0 {
            return;
        }
        let delay = val.wrapping_mul(RESOLUTION / self.remote_hz).wrapping_sub(ecr);
        if delay == 0 {
            return;
        }
        self.least = self.least.min(delay);
        if delay > self.greatest {
            self.greatest =
                if delay <= self.reserve || self.reserve == 0 { delay } else { self.reserve };
            self.reserve = self.reserve.max(delay);
        }
        self.delay_x8 = match self.delay_x8 {
            0 => delay << 3,
            old => old.wrapping_add(delay.wrapping_sub(old >> 3)),
        };
    }

    /// True when the delay is below the threshold (`LP_WITHIN_THR`).
    fn is_within_threshold(&self) -> bool {
        let range = self.greatest.wrapping_sub(self.least);
        self.delay_x8 >> 3 < self.least.wrapping_add(range.wrapping_mul(15) / 100)
    }
}

impl CongestionControl for Lp {
    fn ssthresh(&mut self, _view: &View, window: &mut Window) -> u32 {
        reno::half(window)
    }

    #[inline]
    fn cong_avoid(&mut self, view: &View, window: &mut Window, acked: u32) -> Response {
        if !self.within_inference {
            reno::grow(view, window, acked);
        }
        Response::None
    }

    fn acked(&mut self, view: &View, window: &mut Window, ack: &Ack) {
        let Some(Stamps { val, ecr }) = view.stamps else { return };
        let now = (view.now.as_micros_floor() / 1_000) as u32;
        if ack.rtt_us.is_some_and(|rtt| rtt > 0) {
            self.sample(val.wrapping_add(self.offset), ecr);
        }
        let age = now.wrapping_sub(ecr);
        if (age as i32) > 0 {
            self.inference = age.wrapping_mul(3);
        }
        self.within_inference =
            self.last_drop != 0 && now.wrapping_sub(self.last_drop) < self.inference;
        if self.is_within_threshold() {
            return;
        }
        self.least = self.delay_x8 >> 3;
        self.greatest = self.delay_x8 >> 2;
        self.reserve = self.delay_x8 >> 2;
        window.cwnd = if self.within_inference { 1 } else { (window.cwnd >> 1).max(1) };
        self.last_drop = now;
    }

    fn variables(&self, _view: &View, _window: &Window, tell: &mut dyn FnMut(&'static str, f64)) {
        tell("remote_hz", f64::from(self.remote_hz));
        tell("delay", f64::from(self.delay_x8) / 8.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{at_ms, view};

    const WAY_MS: u64 = 20;

    /// ACKs every 10 ms of packets sent every 10 ms, from the sixth on each `growth` ms longer on its way than the one before; the window after each.
    fn windows(offset: u32, growth: u64, count: u64) -> Vec<u32> {
        let (mut lp, mut window) = (Lp::with_offset(offset), Window::new(40));
        let ack = Ack { packets: 1, rtt_us: Some(40_000), in_flight: 40 };
        (0..count)
            .map(|number| {
                let sent_ms = 1_000 + 10 * number;
                let arrived = sent_ms + WAY_MS + growth * number.saturating_sub(4);
                let stamps = Stamps { val: arrived as u32, ecr: sent_ms as u32 };
                let view = View { now: at_ms(arrived + WAY_MS), stamps: Some(stamps), ..view() };
                lp.acked(&view, &mut window, &ack);
                window.cwnd
            })
            .collect()
    }

    /// With one clock: the first delay is its own threshold, and 15 % of all of it the next one.
    #[test]
    fn the_first_delay_halves_the_window_and_the_same_again_does_not() {
        assert_eq!(windows(0, 0, 5), [40, 20, 20, 20, 20]);
    }

    /// 7/8 of all offsets lose bits in the smoothed delay, which is below every threshold then.
    #[test]
    fn the_clocks_distance_decides() {
        for (offset, end) in
            [(1 << 24, 20), (1 << 28, 20), (1 << 29, 40), (1 << 31, 40), (u32::MAX - 99, 40)]
        {
            assert_eq!(windows(offset, 0, 50).last(), Some(&end), "{offset}");
        }
    }

    /// A way that grows makes the peer's clock look faster than a millisecond, and the delay nonsense.
    #[test]
    fn a_queue_that_grows_leaves_one_packet() {
        let cwnds = windows(0, 1, 20);
        assert_eq!((cwnds[4], cwnds[19]), (20, 1), "{cwnds:?}");
    }

    #[test]
    fn nothing_grows_within_the_inference() {
        let (mut lp, mut window) = (Lp::with_offset(0), Window { ssthresh: 2, ..Window::new(10) });
        lp.within_inference = true;
        let _ = lp.cong_avoid(&view(), &mut window, 10);
        assert_eq!(window.cwnd, 10);
        lp.within_inference = false;
        let _ = lp.cong_avoid(&view(), &mut window, 10);
        assert_eq!(window.cwnd, 11);
    }

    #[test]
    fn without_timestamps_it_is_reno() {
        let (mut lp, mut window) = (Lp::with_offset(0), Window::new(40));
        let ack = Ack { packets: 1, rtt_us: Some(40_000), in_flight: 40 };
        for ms in 0..100 {
            lp.acked(&View { now: at_ms(1_000 + ms), ..view() }, &mut window, &ack);
        }
        assert_eq!(window.cwnd, 40);
    }
}
