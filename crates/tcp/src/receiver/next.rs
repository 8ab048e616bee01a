//! The common case of data: the next segment comes while nothing is queued, the window has been measured and
//! offered, and the application reads at once. What the general way does then, as a straight line.
//!
//! Kernel: header prediction (`tcp_rcv_established`).

use super::{Received, Receiver};
use crate::segment::Segment;
use dragstrip_units::Instant;

impl Receiver {
    /// True when [`Self::take_next`] may take the segment. It is then accepted, and changes no echo.
    #[inline]
    pub fn is_next(&self, segment: &Segment) -> bool {
        self.predicts
            && segment.seq == self.rcv_nxt
            && self.reassembly.is_empty()
            && self.unread.is_none()
            && self.window.is_settled(segment.end_seq())
            && self.outdated_by_ms(segment) == 0
    }

    /// Takes the next segment, as [`Self::on_data`] would.
    #[inline]
    pub fn take_next(
        &mut self,
        segment: &Segment,
        now: Instant,
        srtt_us_x8: u32,
        rto_ticks: u64,
    ) -> Received {
        self.take_timestamp(segment);
        self.reassembly.forget_duplicate();
        let before = self.rcv_nxt;
        self.rcv_nxt = segment.end_seq();
        let tick = self.acks.host.ticks.at(now);
        let longest = self.acks.segment_size();
        self.acks.estimate(segment, tick, self.window.offered(), rto_ticks);
        if self.acks.segment_size() > longest {
            self.window.measure_share(segment.len);
        }
        if self.window.is_new_echo(segment) {
            self.window.measure_echo(
                self.acks.host.ticks.stamp_ms(now),
                self.rcv_nxt,
                segment,
                before,
            );
        }
        self.window.adjust_space(now, self.rcv_nxt, 0);
        let opened = self.window.has_opened(self.rcv_nxt, 0, self.acks.segment_size());
        let unacked = self.rcv_nxt - self.last_acked;
        Received {
            new_bytes: u64::from(segment.len),
            acknowledge: self.acks.decide_read(now, tick, unacked, opened, srtt_us_x8),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ecn::Agreed;
    use crate::options::Options;
    use crate::profile::Settings;
    use crate::segment::{Ecn, Flags, Timestamps};
    use dragstrip_units::{Duration, Stream};

    fn receiver(settings: &Settings, ecn: Agreed) -> Receiver {
        let mut receiver = Receiver::new(&settings.clone().shared());
        let options = Options::of(settings);
        receiver.initial_window(options.timestamps);
        receiver.establish(Instant::ZERO, ecn, &options, 1_448, settings.mss());
        receiver
    }

    /// Most of it in order and full, some of it short, pushed, late, lost or sent again.
    fn segment(stream: &mut Stream, receiver: &Receiver, now_ms: u32, stamped: bool) -> Segment {
        let roll = |stream: &mut Stream, of: u64| stream.next_u64() % of;
        let rcv_nxt = receiver.rcv_nxt();
        let seq = match roll(stream, 40) {
            0 => rcv_nxt + 1_448 * (1 + roll(stream, 5)),
            1 => rcv_nxt.saturating_sub(roll(stream, 3_000)),
            _ => rcv_nxt,
        };
        let len = if roll(stream, 20) == 0 { 1 + roll(stream, 2_000) as u16 } else { 1_448 };
        let flags = Flags::ACK.with_if(Flags::PSH, roll(stream, 30) == 0);
        let mut segment = Segment::new(seq, len, flags);
        if stamped {
            let ecr = now_ms.saturating_sub(20 + roll(stream, 2) as u32);
            segment.set_timestamps(Timestamps { val: now_ms, ecr });
        }
        segment
    }

    /// Returns the number of segments of a run that were taken as the next one.
    fn count_fast_path(settings: &Settings, agreed: Agreed, seed: u64) -> u32 {
        let mut stream = Stream::named(seed, "next");
        let mut receiver = receiver(settings, agreed);
        let (mut now, mut taken) = (Instant::ZERO, 0);
        for step in 0..3_000_u64 {
            now += Duration::from_nanos(1_000 + stream.next_u64() % 300_000);
            if step % 701 == 700 {
                now += Duration::from_millis(stream.next_u64() % 400);
            }
            if receiver.deadline() <= now && receiver.on_deadline(now, 200) {
                receiver.acknowledgement(now, 0);
            }
            let now_ms = (now.as_nanos() / 1_000_000) as u32;
            let segment = segment(&mut stream, &receiver, now_ms, settings.timestamps);
            let ecn = if stream.next_u64().is_multiple_of(50) { Ecn::Ce } else { Ecn::Ect0 };
            let srtt_us_x8 = (stream.next_u64() % 2) as u32 * 160_000;
            let mut general = receiver.clone();
            let expected = general.on_data(&segment, ecn, now, false, srtt_us_x8, 200);
            if receiver.is_next(&segment) {
                taken += 1;
                assert!(receiver.accepts(&segment) && !receiver.flushes(&segment));
                assert!(!receiver.echo_changes(&segment, ecn));
                let received = receiver.take_next(&segment, now, srtt_us_x8, 200);
                assert_eq!(received, expected, "step {step}");
                assert_eq!(format!("{receiver:?}"), format!("{general:?}"), "step {step}");
            }
            receiver = general;
            if expected.acknowledge {
                receiver.acknowledgement(now, 0);
            }
        }
        taken
    }

    #[test]
    fn the_next_segment_changes_what_any_other_way_would() {
        let linux = Settings::linux_6();
        let locked = Settings::linux_6().with_receive_buffer(30_000);
        let plain = Settings { timestamps: false, ..Settings::linux_6() };
        let unscaled = Settings { window_scaling: false, ..Settings::linux_6() };
        for settings in [linux, locked, plain, unscaled] {
            for seed in 0..6 {
                assert!(count_fast_path(&settings, Agreed::None, seed) > 500, "seed {seed}");
            }
        }
    }

    #[test]
    fn what_flags_echo_and_what_other_kernels_do_is_not_predicted() {
        assert_eq!(count_fast_path(&Settings::linux_6(), Agreed::Classic, 1), 0);
        assert_eq!(count_fast_path(&Settings::linux_2_6_27(), Agreed::None, 1), 0);
        assert_eq!(count_fast_path(&Settings::freebsd_9(), Agreed::None, 1), 0);
    }
}
