//! The sending half: what was sent, what came back, what may be sent next.
//!
//! | file | does | kernel |
//! |---|---|---|
//! | `ack.rs` | one ACK, step by step | `tcp_ack` |
//! | `sack.rs` | marks what SACK blocks tell | `tcp_sacktag_write_queue` |
//! | `local_queue.rs` | a full queue of the host's own | 2.6.27 `tcp_transmit_skb` |
//! | `no_sack.rs` | what duplicate ACKs tell without SACK | `tcp_add_reno_sack` ... |
//! | `rack.rs` | declares losses by time | `tcp_recovery.c` |
//! | `recovery.rs` | states, PRR, undo | `tcp_fastretrans_alert` ... |
//! | `frto.rs` | a timeout as 2.6 judged it | 2.6.27 `tcp_process_frto` ... |
//! | `bsd.rs` | detection, recovery and transmission of 4.4BSD's line | FreeBSD's `tcp_do_segment` ... |
//! | `halving.rs` | FACK and rate halving, the states of 2.6 | 2.6.27 `tcp_fastretrans_alert` ... |
//! | `inflation.rs` | the same in Linux 2.2 | 2.2 `tcp_fast_retrans` ... |
//! | `timers.rs` | RTO, F-RTO entry, tail loss probe | `tcp_timer.c` |
//! | `rate.rs` | delivery-rate samples | `tcp_rate.c` |
//! | `rtt.rs` | RTT estimate and minimum | `tcp_rtt_estimator` |
//! | `transmit.rs` | sends and retransmits within window, pacing, TSQ | `tcp_output.c` |
//! | `buffer.rs` | the application's writes and the send buffer | `tcp_sndbuf_expand` ... |

mod ack;
mod bsd;
mod buffer;
mod frto;
mod halving;
mod inflation;
mod local_queue;
mod no_sack;
mod rack;
mod rate;
mod recovery;
mod rtt;
mod sack;
mod scoreboard;
mod timers;
mod transmit;

pub(crate) use buffer::Supply;

use crate::metrics::{Ending, Metrics};
use crate::profile::{RecoveryStyle, RttSampling, Settings};
use crate::receiver::Receiver;
use crate::segment::{Flags, Outbox, Segment};
use crate::ticks::Ticks;
use bsd::Bsd;
use buffer::Buffer;
use dragstrip_cc::{Algorithm, CongestionControl, PacingStatus, View, Window};
use dragstrip_units::Instant;
use halving::Halving;
use inflation::Inflation;
use rack::Rack;
use rate::RateState;
use recovery::Recovery;
use rtt::{RttEstimator, WindowedMin};
use sack::SackCache;
use scoreboard::Scoreboard;
use std::sync::Arc;
use timers::Timers;
use transmit::Transmission;

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

/// The sending half of an endpoint.
#[derive(Clone, Debug)]
#[repr(C)] // what every segment needs lies together: see sockets.rs
pub(crate) struct Sender {
    timers: Timers,
    pub view: View,
    transmission: Transmission,
    pub window: Window,
    /// Receive window's right edge (`tcp_wnd_end`).
    window_end: u64,
    /// One past the sequence number of the segment that last set it (`snd_wl1`); a SYN counts for none.
    window_seq: u64,
    /// Shared by all connections of hosts that are set alike.
    pub settings: Arc<Settings>,
    rate: RateState,
    rtt: RttEstimator,
    min_rtt: WindowedMin,
    /// The last RTT sample given to the algorithm, µs.
    pub last_rtt_us: Option<u32>,
    /// RTT sample of the ACK just processed, µs, for the recording.
    pub new_rtt_us: Option<u32>,
    rack: Rack,
    board: Scoreboard,
    buffer: Buffer,
    sacks: SackCache,
    pub counters: Counters,
    ticks: Ticks,
    recovery: Recovery,
    pub cc: Algorithm,
    has_cong_control: bool,
    /// Both sides agreed on ECN.
    ecn: bool,
    halving: Halving,
    bsd: Bsd,
    inflation: Inflation,
    /// What the host knew of the peer before.
    recalled: Metrics,
}

impl Sender {
    pub fn new(settings: &Arc<Settings>, cc: Algorithm) -> Self {
        let mss = settings.mss();
        let view = View {
            now: Instant::ZERO,
            hz: settings.hz,
            snd_una: 0,
            snd_nxt: 0,
            mss,
            packets_out: 0,
            sacked_out: 0,
            lost_out: 0,
            retrans_out: 0,
            max_packets_out: 0,
            is_cwnd_limited: false,
            // The SYN counts as delivered.
            delivered: 1,
            lost: 0,
            delivered_at: Instant::ZERO,
            app_limited: 0,
            srtt_us_x8: 0,
            min_rtt_us: u32::MAX,
            state: dragstrip_cc::CaState::Open,
            prior_cwnd: 0,
            last_data_sent: Instant::ZERO,
            departure: Instant::ZERO,
            pacing_status: PacingStatus::None,
            pacing_shift: 10,
            gso_max_bytes: 65_536 - 320 - 1,
            initial_cwnd: settings.initial_cwnd,
            limited: settings.profile.congestion.limited,
            prior_in_flight: 0,
            max_burst: settings.initial_reordering(),
            abc_limit: settings.bsd.abc_limit,
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
            sacks: SackCache::default(),
            rack: Rack::new(),
            rate: RateState::default(),
            recovery: Recovery::new(settings.initial_reordering()),
            halving: Halving::new(
                settings.profile.recovery == RecoveryStyle::RateHalving { fack: true },
            ),
            bsd: Bsd::default(),
            inflation: Inflation::default(),
            rtt: RttEstimator::default(),
            min_rtt: WindowedMin::new(),
            timers: Timers::new(settings),
            transmission: Transmission::default(),
            counters: Counters::default(),
            last_rtt_us: None,
            new_rtt_us: None,
            settings: Arc::clone(settings),
            ticks: settings.ticks(),
            ecn: false,
            recalled: Metrics::default(),
        }
    }

    /// The handshake is over with `segment`: the peer's window is known, and the RTT of the SYN if it was not
    /// retransmitted (`tcp_init_transfer`).
    pub fn establish(
        &mut self,
        now: Instant,
        segment: &Segment,
        syn_rtt_us: Option<u32>,
        syn_retransmits: u32,
    ) {
        self.view.now = now;
        self.window_end = u64::from(segment.window);
        self.window_seq = segment.seq + u64::from(!segment.flags.has(Flags::SYN));
        self.buffer.max_window = u64::from(segment.window);
        self.view.delivered_at = now;
        self.bsd.note_window(segment.window);
        match syn_rtt_us {
            _ if self.settings.profile.rtt_sampling == RttSampling::LastTicks => {
                self.note_lost_syns(syn_retransmits);
            }
            Some(rtt) if self.settings.profile.rtt_sampling == RttSampling::BsdTicks => {
                self.last_rtt_us = Some(rtt);
                let rtt = Instant::from_nanos(u64::from(rtt) * 1_000);
                self.take_rtt_bsd(self.ticks.at(rtt) + 1);
            }
            Some(rtt) => self.take_rtt(rtt, rtt, false),
            None => self.fall_back_to_cautious_rto(),
        }
        self.recall_rtt();
        // RFC 5681 §3.1: after a lost SYN the window starts at one segment; Linux asks for two losses.
        let allowed = match self.settings.profile.recovery {
            RecoveryStyle::RackPrr | RecoveryStyle::RateHalving { .. } => 1,
            RecoveryStyle::Bsd | RecoveryStyle::Inflation => 0,
        };
        if syn_retransmits > allowed {
            self.window.cwnd = 1;
        }
        if self.cc.about().needs.pacing {
            self.view.pacing_status = PacingStatus::Needed;
        }
        self.transmission.validated_at = now;
        self.cc.init(&self.view, &mut self.window);
        if !self.has_cong_control {
            self.update_pacing_rate();
        }
    }

    /// What is known of the peer is where the connection begins (`tcp_init_metrics`).
    pub fn recall(&mut self, metrics: Metrics) {
        self.recalled = metrics;
        if metrics.reordering > 0 && metrics.reordering != self.recovery.reordering {
            self.recovery.reordering = metrics.reordering;
            // tcp_disable_fack: holes are no longer taken for losses.
            self.halving.fack = false;
        }
        if metrics.ssthresh > 0 {
            self.window.ssthresh = metrics.ssthresh.min(self.window.clamp);
        }
    }

    /// What this connection tells the next one (`tcp_update_metrics`).
    pub fn remember(&self, metrics: &mut Metrics) {
        metrics.update(&Ending {
            cwnd: self.window.cwnd,
            ssthresh: self.window.ssthresh,
            open: self.view.state == dragstrip_cc::CaState::Open,
            backed_off: self.recovery.timeouts > 0,
            reordering: self.recovery.reordering,
            reordering_setting: self.settings.reordering,
            srtt_us_x8: self.view.srtt_us_x8,
            mdev_us_x4: self.rtt.mdev_us_x4(),
        });
    }

    /// The RTT of the SYN, a small packet on an empty path, may be far too short: what is known of the path counts if it is more.
    fn recall_rtt(&mut self) {
        let Metrics { srtt_us_x8, rttvar_us_x4, .. } = self.recalled;
        if srtt_us_x8 > 0 && self.view.srtt_us_x8 > 0 {
            self.rtt.raise(srtt_us_x8, rttvar_us_x4, self.timers.min_us());
            self.view.srtt_us_x8 = self.rtt.srtt_us_x8;
            self.set_rto();
        }
    }

    /// What both sides agreed on in the handshake.
    pub fn agree(&mut self, options: &crate::endpoint::Options, ecn: bool) {
        self.ecn = ecn;
        if (self.settings.sack, self.settings.timestamps) != (options.sack, options.timestamps) {
            let settings = Arc::make_mut(&mut self.settings);
            settings.sack = options.sack;
            settings.timestamps = options.timestamps;
        }
        let mss = self.settings.mss().min(options.advmss - if options.timestamps { 12 } else { 0 });
        self.view.mss = mss;
        self.buffer.set_mss(u64::from(mss));
        self.board = Scoreboard::new(mss);
    }

    pub fn ecn(&self) -> bool {
        self.ecn
    }

    /// What the application has for us.
    pub fn supply(&mut self, supply: Supply) {
        self.buffer.supply(supply);
    }

    /// Everything written is acknowledged.
    pub fn is_drained(&self) -> bool {
        self.buffer.is_finished(self.view.snd_una)
    }

    /// The next instant at which [`Self::on_deadline`] has something to do.
    #[inline]
    pub fn deadline(&self) -> Instant {
        self.timers.deadline().min(self.transmission.wakeup)
    }

    /// A timer or the pacer is due.
    pub fn on_deadline<O: Outbox>(&mut self, now: Instant, io: &mut Io<'_, O>) {
        self.view.now = now;
        if self.transmission.wakeup <= now {
            self.transmission.wakeup = Instant::NEVER;
            self.resume(io);
        }
        if self.timers.deadline() <= now {
            self.on_timer(io);
        }
    }

    /// The application may have more to send.
    pub fn push<O: Outbox>(&mut self, now: Instant, io: &mut Io<'_, O>) {
        self.view.now = now;
        self.refill(io);
    }

    pub fn rto_ticks(&self) -> u64 {
        self.timers.rto_ticks
    }

    pub fn bytes_written(&self) -> u64 {
        self.buffer.written
    }

    /// Whether ACKs can tell us anything.
    #[inline]
    pub fn has_outstanding(&self) -> bool {
        self.view.snd_nxt > 0
    }

    /// What holds the sender back just now.
    pub fn limited_by(&self) -> crate::LimitedBy {
        if self.in_flight() >= self.window.cwnd {
            crate::LimitedBy::Cwnd
        } else if self.transmission.rwnd_limited {
            crate::LimitedBy::Rwnd
        } else if self.buffer.written == self.view.snd_nxt {
            if self.buffer.blocked { crate::LimitedBy::Sndbuf } else { crate::LimitedBy::App }
        } else {
            crate::LimitedBy::Cwnd
        }
    }

    #[inline]
    fn now_us(&self) -> u64 {
        self.view.now.as_micros_floor()
    }

    /// Whole ticks since `sent_us`.
    #[inline]
    fn ticks_since(&self, sent_us: u64) -> u64 {
        self.ticks.at(self.view.now) - self.ticks.at(Instant::from_nanos(sent_us * 1_000))
    }

    #[inline]
    fn in_flight(&self) -> u32 {
        self.view.in_flight()
    }

    /// `tcp_in_cwnd_reduction`.
    #[inline]
    fn in_reduction(&self) -> bool {
        matches!(self.view.state, dragstrip_cc::CaState::Cwr | dragstrip_cc::CaState::Recovery)
    }
}
