//! The congestion window and the two growth rules every classic algorithm is built from.

use crate::{Growth, Rules};

/// The state that an algorithm may change, in packets as the kernel counts them.
#[derive(Clone, Debug)]
pub struct Window {
    /// Congestion window (`snd_cwnd`).
    pub cwnd: u32,
    /// Slow-start threshold (`snd_ssthresh`); [`Window::INFINITE`] before the first reduction.
    pub ssthresh: u32,
    /// Fraction of the next additive step (`snd_cwnd_cnt`).
    pub cwnd_cnt: u32,
    /// Upper bound (`snd_cwnd_clamp`).
    pub clamp: u32,
    /// Pacing rate, bytes per second (`sk_pacing_rate`); `u64::MAX` until first computed.
    pub pacing_rate: u64,
    /// Unit of growth.
    pub(crate) growth: Growth,
    /// The same in the congestion avoidance of some modules ([`Rules::module_growth`]).
    pub(crate) module_growth: Growth,
    /// Slow start still holds when the window has just reached the threshold: 2.2 and 2.6 compare by `<=`,
    /// kernels since 4.0 by `<`.
    pub(crate) slow_start_at_threshold: bool,
}

impl Window {
    /// `TCP_INFINITE_SSTHRESH`.
    pub const INFINITE: u32 = 0x7fff_ffff;

    /// The window at the end of the handshake, by the rules of Linux 6.1.
    #[must_use]
    pub const fn new(initial_cwnd: u32) -> Self {
        Self {
            cwnd: initial_cwnd,
            ssthresh: Self::INFINITE,
            cwnd_cnt: 0,
            clamp: u32::MAX,
            pacing_rate: u64::MAX,
            growth: Growth::Packets,
            module_growth: Growth::Packets,
            slow_start_at_threshold: false,
        }
    }

    /// The same by these rules.
    #[must_use]
    pub const fn with_rules(initial_cwnd: u32, rules: &Rules) -> Self {
        Self {
            growth: rules.growth,
            module_growth: rules.module_growth,
            slow_start_at_threshold: rules.slow_start_at_threshold,
            ..Self::new(initial_cwnd)
        }
    }

    /// The highest threshold that ends slow start now: the window; one packet less where slow start still holds at
    /// the threshold.
    #[inline]
    #[must_use]
    pub const fn ending_threshold(&self) -> u32 {
        self.cwnd - self.slow_start_at_threshold as u32
    }

    /// `tcp_in_slow_start`: below the threshold; in some kernels also at it.
    #[inline]
    #[must_use]
    pub const fn in_slow_start(&self) -> bool {
        // The threshold is at most `INFINITE`, so one more does not overflow.
        self.cwnd < self.ssthresh + self.slow_start_at_threshold as u32
    }

    /// `tcp_slow_start`: grow by every packet delivered, up to the threshold; what is left over
    /// is for congestion avoidance. There is no limit on a stretch ACK. Where ACKs are counted the threshold is no
    /// limit either, and nothing is left over.
    #[inline]
    pub fn slow_start(&mut self, acked: u32) -> u32 {
        match self.growth {
            Growth::Packets => {
                let cwnd = (self.cwnd + acked).min(self.ssthresh);
                let avoidance_packets = acked - (cwnd - self.cwnd);
                self.cwnd = cwnd.min(self.clamp);
                avoidance_packets
            }
            Growth::Acks => {
                self.cwnd = (self.cwnd + acked).min(self.clamp);
                0
            }
        }
    }

    /// Grows by slow start where it is in it; the answer is what congestion avoidance may grow by.
    #[inline]
    pub fn beyond_slow_start(&mut self, acked: u32) -> u32 {
        if self.in_slow_start() { self.slow_start(acked) } else { acked }
    }

    /// The same for modules that may count ACKs: one of them, and nothing of one that slow start has used.
    #[inline]
    pub fn beyond_slow_start_by_module(&mut self, acked: u32) -> u32 {
        match self.module_growth {
            Growth::Packets => self.beyond_slow_start(acked),
            Growth::Acks if self.in_slow_start() => {
                self.slow_start(acked);
                0
            }
            Growth::Acks => 1,
        }
    }

    /// `tcp_cong_avoid_ai`: one more packet per `w` packets delivered.
    #[inline]
    pub fn additive_increase(&mut self, w: u32, acked: u32) {
        if self.growth == Growth::Acks {
            return self.increase_by_ack(w);
        }
        // A divisor that has shrunk since the last ACK pays out first, one packet at most.
        if self.cwnd_cnt >= w {
            self.cwnd_cnt = 0;
            self.cwnd += 1;
        }
        self.cwnd_cnt += acked;
        if self.cwnd_cnt >= w {
            let delta = self.cwnd_cnt / w;
            self.cwnd_cnt -= delta * w;
            self.cwnd += delta;
        }
        self.cwnd = self.cwnd.min(self.clamp);
    }

    /// The same where ACKs are counted (2.6): the counter is compared before it is incremented, so that a step
    /// takes `w` + 1 of them.
    fn increase_by_ack(&mut self, w: u32) {
        if self.cwnd_cnt >= w {
            self.cwnd = (self.cwnd + 1).min(self.clamp);
            self.cwnd_cnt = 0;
        } else {
            self.cwnd_cnt += 1;
        }
    }

    /// `tcp_current_ssthresh`: what would be remembered as the threshold now.
    #[must_use]
    pub fn current_ssthresh(&self, state: crate::CaState) -> u32 {
        match state {
            crate::CaState::Cwr | crate::CaState::Recovery => self.ssthresh,
            crate::CaState::Open | crate::CaState::Disorder | crate::CaState::Loss => {
                self.ssthresh.max((self.cwnd >> 1) + (self.cwnd >> 2))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Window;
    use crate::testing::{OLD_RULES, RULES};
    use crate::{Growth, Rules};

    #[test]
    fn a_stretch_ack_in_slow_start_counts_whole_and_hands_on_the_rest() {
        let mut window = Window::new(10);
        window.ssthresh = 30;
        assert_eq!(window.slow_start(40), 20);
        assert_eq!(window.cwnd, 30);
    }

    #[test]
    fn reno_grows_by_one_after_a_window_of_packets() {
        let mut window = Window::new(10);
        for _ in 0..5 {
            window.additive_increase(10, 2);
        }
        assert_eq!((window.cwnd, window.cwnd_cnt), (11, 0));
    }

    /// `tcp_cong_avoid_ai`'s callers in Linux 2.6.27 count ACKs, not packets.
    #[test]
    fn counted_by_ack_a_step_takes_one_ack_more_than_the_window() {
        let mut window = Window::with_rules(10, &OLD_RULES);
        for _ in 0..10 {
            window.additive_increase(10, 1);
        }
        assert_eq!((window.cwnd, window.cwnd_cnt), (10, 10));
        window.additive_increase(10, 1);
        assert_eq!((window.cwnd, window.cwnd_cnt), (11, 0));
    }

    /// An ACK of two packets is one to a module before 5.7, and nothing of it is left over from slow start; the kernel's own
    /// growth counts packets in both.
    #[test]
    fn modules_count_acks_where_their_rule_is_so_and_packets_otherwise() {
        for (module_growth, beyond, left_over) in [(Growth::Acks, 1, 0), (Growth::Packets, 2, 1)] {
            let rules = Rules { module_growth, ..RULES };
            let mut window = Window { ssthresh: 10, ..Window::with_rules(10, &rules) };
            assert_eq!(window.beyond_slow_start_by_module(2), beyond, "{module_growth:?}");
            assert_eq!(window.beyond_slow_start(2), 2, "{module_growth:?}");
            window.ssthresh = 11;
            assert_eq!(window.beyond_slow_start_by_module(2), left_over, "{module_growth:?}");
            assert_eq!(window.cwnd, 11, "{module_growth:?}");
        }
    }

    /// `tcp_in_slow_start` (6.1: below the threshold) and 2.6.27's `snd_cwnd <= snd_ssthresh`.
    #[test]
    fn at_the_threshold_slow_start_holds_only_where_it_is_said_so() {
        let window = Window { ssthresh: 10, ..Window::new(10) };
        assert!(!window.in_slow_start());
        let mut window = Window { ssthresh: 10, ..Window::with_rules(10, &OLD_RULES) };
        assert!(window.in_slow_start());
        window.cwnd = 11;
        assert!(!window.in_slow_start());
        window.ssthresh = Window::INFINITE;
        assert!(window.in_slow_start());
    }

    #[test]
    fn a_shrunken_divisor_pays_out_first() {
        let mut window = Window::new(10);
        window.additive_increase(100, 50);
        window.additive_increase(20, 2);
        assert_eq!((window.cwnd, window.cwnd_cnt), (11, 2));
    }
}
