//! State of a connection that every stack needs, once: the congestion control's view and window, the segments that are
//! out, the send buffer, one timer, and the way to the wire. It is lent to the stack for the length of a call.
//!
//! | file | does | kernel |
//! |---|---|---|
//! | `ack.rs` | what an ACK brings: its flags, the peer's window | `tcp_ack_update_window` |
//! | `rtx_queue.rs` | drops what is cumulatively acknowledged | `tcp_clean_rtx_queue` |
//! | `sack.rs` | marks what SACK blocks report | `tcp_sacktag_write_queue` |
//! | `scoreboard.rs` | one record per segment that is out | `tcp_skb_cb` |
//! | `rate.rs` | stamps each segment with what was delivered when it left | `tcp_rate_skb_sent`, `tcp_rate_skb_delivered` |
//! | `buffer.rs` | the application's writes and the send buffer | `tcp_sendmsg_locked` |
//! | `timer.rs` | the one timer and the retransmission timeout | |
//! | `stack.rs` | what a stack is: its entry points | |
//! | `transmission.rs` | puts segments on the wire, new and again; the pacer's clock | `__tcp_transmit_skb` |
//!
//! Out of scope: a kernel's decisions, which are its stack's.

mod ack;
mod buffer;
mod rate;
mod rtx_queue;
mod sack;
mod scoreboard;
mod stack;
mod timer;
mod transmission;

pub(super) use ack::{Ack, AckFlags};
pub(crate) use buffer::Supply;
pub(super) use buffer::{Buffer, Wrote};
pub(super) use rate::{Draft, sent_after};
pub(super) use rtx_queue::Cleaned;
pub(super) use scoreboard::{Flight, Marks, Plain, Scoreboard, Sent};
pub(super) use stack::{Handshake, Push, Stack};
pub(super) use timer::Timer;
pub(super) use transmission::{Burst, Transmission};

use crate::ecn::{Agreed, Carries};
use crate::host::HostSettings;
use crate::receiver::Receiver;
use crate::segment::{Ecn, EcnBytes, Segment};
use crate::snapshot::LimitedBy;
use dragstrip_cc::{
    Algorithm, CaState, CongestionControl, EcnMode, Needs, PacingStatus, View, Window,
};
use dragstrip_units::{Duration, Instant};
use rate::RateState;
use sack::SackCache;
use std::mem::offset_of;
use std::sync::Arc;

/// The other half of the endpoint and the way out, lent for the length of a call.
pub(crate) struct Io<'a, O> {
    pub receiver: &'a mut Receiver,
    pub out: &'a mut O,
}

/// Counters for the recording.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counters {
    /// Data segments sent, retransmissions included.
    pub segments_sent: u64,
    /// Segments retransmitted.
    pub retransmits: u64,
    /// Retransmission timeouts.
    pub rto_count: u64,
    /// Window reductions begun (CWR, Recovery, Loss).
    pub reductions: u64,
}

/// The part of a sender that every stack has. Its order is that of use (see sockets.rs): what an end touches that only receives,
/// then what every ACK and every segment needs, and last what a recovery or a handshake needs.
#[derive(Clone, Debug)]
#[repr(C)]
pub(in crate::sender) struct Core {
    pub timer: Timer,
    pub agreed: Agreed,
    pub has_cong_control: bool,
    /// CWR is to be set on the next new segment.
    pub cwr_pending: bool,
    /// Age of the ACK in hand since its arrival, at `view.now`, ns; 0 without one.
    pub since_arrival_ns: u32,
    pub view: View,
    pub transmission: Transmission,
    pub window: Window,
    /// Receive window's right edge (`tcp_wnd_end`).
    pub window_end: u64,
    /// One past the sequence number of the segment that last set it (`snd_wl1`); a SYN counts for none.
    window_seq: u64,
    /// Shared by all connections of hosts that are set alike.
    pub settings: Arc<HostSettings>,
    rate: RateState,
    /// The last RTT sample given to the algorithm, µs.
    pub last_rtt_us: Option<u32>,
    /// RTT sample of the ACK just processed, µs, for the recording.
    pub new_rtt_us: Option<u32>,
    pub board: Scoreboard,
    pub buffer: Buffer,
    pub counters: Counters,
    pub cc: Algorithm,
    /// Made by the first SACK.
    sacks: Option<Box<SackCache>>,
}

/// The part that an end touches which only receives, beside its receiver.
const _: () = assert!(offset_of!(Core, view) + offset_of!(View, delivered) <= 88);
/// The part that every ACK touches, beside the algorithm and the stack: nine cache lines.
const _: () = assert!(offset_of!(Core, cc) <= 9 * 64);

impl Core {
    pub fn new(settings: &Arc<HostSettings>, cc: Algorithm) -> Self {
        let mss = settings.mss();
        let view = View {
            limited: settings.profile.congestion.limited,
            max_burst: settings.initial_reordering(),
            abc_limit: settings.bsd.abc_limit,
            ..View::new(settings.hz, mss, settings.initial_cwnd)
        };
        let window = Window::with_rules(settings.initial_cwnd, &settings.profile.congestion);
        Self {
            has_cong_control: cc.has_cong_control(),
            buffer: Buffer::new(settings, cc.sndbuf_factor()),
            cc,
            view,
            window,
            window_end: 0,
            window_seq: 0,
            board: Scoreboard::new(mss),
            sacks: None,
            rate: RateState::default(),
            timer: Timer::new(settings),
            transmission: Transmission::default(),
            counters: Counters::default(),
            last_rtt_us: None,
            new_rtt_us: None,
            settings: Arc::clone(settings),
            cwr_pending: false,
            agreed: Agreed::None,
            since_arrival_ns: 0,
        }
    }

    /// Applies the result of the handshake; `tells_bytes`: also that segments carry the AccECN option.
    pub fn agree(&mut self, options: &crate::options::Options, ecn: Agreed, tells_bytes: bool) {
        self.agreed = ecn;
        self.view.ecn = ecn != Agreed::None;
        if (self.settings.sack, self.settings.timestamps) != (options.sack, options.timestamps) {
            Arc::make_mut(&mut self.settings).agree(options.sack, options.timestamps);
        }
        let mut mss =
            self.settings.mss().min(options.advmss - if options.timestamps { 12 } else { 0 });
        if tells_bytes {
            mss -= EcnBytes::of_handshake().room(); // on every segment
        }
        self.view.mss = mss;
        self.buffer.set_mss(u64::from(mss));
        self.board = Scoreboard::new(mss);
    }

    /// The handshake ends with `segment`.
    pub fn open(&mut self, now: Instant, segment: &Segment) {
        self.view.now = now;
        self.note_first_window(segment);
        self.view.delivered_at = now;
    }

    /// The algorithm begins (`tcp_init_congestion_control`): the RTT of the SYN has been taken.
    pub fn start_congestion_control(&mut self) {
        // What L4STeam calls prague-reno is not paced.
        let Needs { pacing, ecn, .. } = self.cc.about().needs;
        if self.settings.paced || pacing && (ecn != EcnMode::L4s || self.view.ecn) {
            self.view.pacing_status = PacingStatus::Needed;
        }
        if self.cc.wants_flights() {
            self.board.keep_flights();
        }
        self.cc.init(&self.view, &mut self.window);
        self.has_cong_control = self.cc.has_cong_control();
        if !self.has_cong_control {
            self.update_pacing_rate();
        }
    }

    /// The codepoint of a segment.
    #[inline]
    pub fn codepoint(&self, carries: Carries) -> Ecn {
        self.agreed.codepoint(carries)
    }

    #[inline]
    pub fn now_us(&self) -> u64 {
        self.view.now.as_micros_floor()
    }

    /// The tick that it is.
    #[inline]
    pub fn tick(&self) -> u64 {
        self.settings.ticks.at(self.jiffy())
    }

    /// Time of the tick counter and its timers: they know nothing of an ACK's arrival.
    #[inline]
    pub fn jiffy(&self) -> Instant {
        self.view.now + Duration::from_nanos(u64::from(self.since_arrival_ns))
    }

    /// Whole ticks since `sent_us`.
    #[inline]
    pub fn ticks_since(&self, sent_us: u64) -> u64 {
        self.tick() - self.settings.ticks.at(Instant::from_nanos(sent_us * 1_000))
    }

    /// Age of the timestamp echoed by the ACK in hand, ms; `None` without timestamps.
    #[inline]
    pub fn echo_age_ms(&self) -> Option<u32> {
        let echo = self.view.stamps?.ecr;
        Some(self.settings.ticks.stamp_ms(self.view.now).saturating_sub(echo))
    }

    #[inline]
    pub fn in_flight(&self) -> u32 {
        self.view.in_flight()
    }

    /// `tcp_in_cwnd_reduction`.
    #[inline]
    pub fn in_reduction(&self) -> bool {
        matches!(self.view.state, CaState::Cwr | CaState::Recovery)
    }

    pub fn set_state(&mut self, state: CaState) {
        self.cc.set_state(&self.view, &mut self.window, state);
        self.view.state = state;
    }

    /// A reduction begins: the algorithm says to which threshold.
    pub fn reduce_threshold(&mut self) {
        self.window.ssthresh = self.cc.ssthresh(&self.view, &mut self.window);
        self.counters.reductions += 1;
    }

    /// Bytes written and not yet sent.
    #[inline]
    pub fn unsent(&self) -> u64 {
        self.buffer.written - self.view.snd_nxt
    }

    /// Bytes that the receiver has room for beyond what was sent.
    #[inline]
    pub fn room(&self) -> u64 {
        self.window_end.saturating_sub(self.view.snd_nxt)
    }

    /// Clears the account of retransmissions in the last recovery.
    pub fn forget_retransmissions(&mut self) {
        for number in self.board.head()..self.board.tail() {
            self.board.marks_mut(number).clear(Marks::LOST.with(Marks::RETRANS));
        }
        self.view.lost_out = 0;
        self.view.retrans_out = 0;
    }

    /// `tcp_update_pacing_rate`: what a loss-based algorithm would send at, with headroom.
    #[inline]
    pub fn update_pacing_rate(&mut self) {
        let (view, window, settings) = (&self.view, &mut self.window, &self.settings);
        let ratio = if window.cwnd < window.ssthresh / 2 {
            settings.pacing_ss_ratio
        } else {
            settings.pacing_ca_ratio
        };
        let mut rate = u64::from(view.mss) * ((1_000_000 / 100) << 3) * u64::from(ratio);
        rate *= u64::from(window.cwnd.max(view.packets_out));
        if view.srtt_us_x8 > 0 {
            rate /= u64::from(view.srtt_us_x8);
        }
        window.pacing_rate = rate;
    }

    /// Returns the current limit of the sender.
    pub fn limit(&self) -> LimitedBy {
        if self.in_flight() >= self.window.cwnd {
            LimitedBy::Cwnd
        } else if self.transmission.rwnd_limited {
            LimitedBy::Rwnd
        } else if self.unsent() == 0 {
            // An application that has more writes as soon as the socket takes it.
            if self.buffer.waiting() > 0 { LimitedBy::Sndbuf } else { LimitedBy::App }
        } else if self.transmission.small_queue_limited {
            LimitedBy::SmallQueue
        } else if self.view.pacing_status == PacingStatus::Needed
            && self.view.departure > self.view.now
        {
            LimitedBy::Pacing
        } else {
            LimitedBy::Cwnd
        }
    }
}
