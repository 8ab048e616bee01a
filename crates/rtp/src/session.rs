//! Both ends of a video: the encoder's clock, the queue in front of the pacer, and the path of a report.

use crate::flight::{Flight, NEVER, Packet, Report};
use crate::receiver::Receiver;
use crate::scream::{Feedback, Limits, Scream};
use dragstrip_scenario::{Application, RtpEcn};
use dragstrip_units::Stream;
use std::collections::VecDeque;

/// RTP's header, bytes (RFC 3550 §5.1): the least packet.
const RTP_HEADER_BYTES: u32 = 12;
/// Without reports for so long, or for two round trips, everything in flight is given up, ns.
const SILENCE_NS: u64 = 500_000_000;
const SECOND_NS: u64 = 1_000_000_000;

/// A frame as the encoder hands it over. Times are ns.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// Time of its capture.
    pub captured_ns: u64,
    /// Its bytes, headers of RTP included.
    pub bytes: u32,
    /// Packets that it is sent in.
    pub packets: u32,
    /// Target bit rate at that time, bit/s.
    pub target_bps: u64,
    /// Reference window, bytes.
    pub window_bytes: u64,
    /// Smoothed round trip; none before the first report.
    pub smoothed_rtt_ns: Option<u64>,
    /// Latest queue delay as the sender estimates it.
    pub queue_delay_ns: u64,
}

/// Receiver of a session's frames, packets and reports.
pub trait Outlet {
    /// Takes a frame; returns the number that `packet` calls it by.
    fn frame(&mut self, frame: &Frame) -> usize;
    /// Sends packet `number` of this payload towards the receiver; it belongs to the frame `row`.
    fn packet(&mut self, number: u64, bytes: u16, row: usize);
    /// Sends report `number` of this payload towards the sender.
    fn report(&mut self, number: u64, bytes: u16);
}

/// A frame in the queue.
#[derive(Clone, Copy, Debug)]
struct Queued {
    row: usize,
    captured_ns: u64,
    left: u32,
}

/// A video over RTP while it lasts. Times are ns of one clock that never goes back.
#[derive(Clone, Debug)]
pub struct Session {
    scream: Scream,
    packet_bytes: u32,
    fps: u64,
    variation: f64,
    random: Stream,
    ecn: RtpEcn,
    began_ns: u64,
    frames: u64,
    queue: VecDeque<Queued>,
    flight: Flight,
    /// Earliest time of the next packet.
    paced_ns: u64,
    /// Since when reports are awaited; `NEVER` while nothing is in flight.
    awaited_ns: u64,
    receiver: Receiver,
    /// Reports under way, and the number of the first.
    reports: VecDeque<Report>,
    first_report: u64,
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

fn nanoseconds(seconds: f64) -> u64 {
    (seconds * 1e9) as u64
}

impl Session {
    /// The session that an application is, with random numbers of its own; none for any other application.
    #[must_use]
    pub fn new(application: &Application, random: Stream) -> Option<Self> {
        let Application::Rtp { min_bps, max_bps, fps, packet_bytes, variation, ecn } = *application
        else {
            return None;
        };
        let limits = Limits {
            min_bps: min_bps as f64,
            max_bps: max_bps as f64,
            mss: f64::from(packet_bytes),
            frame_period: 1.0 / f64::from(fps),
            is_l4s: ecn == RtpEcn::L4s,
        };
        Some(Self {
            scream: Scream::new(limits),
            packet_bytes,
            fps: u64::from(fps),
            variation,
            random,
            ecn,
            began_ns: 0,
            frames: 0,
            queue: VecDeque::new(),
            flight: Flight::new(),
            paced_ns: 0,
            awaited_ns: NEVER,
            receiver: Receiver::new(),
            reports: VecDeque::new(),
            first_report: 1,
        })
    }

    /// ECN of its packets.
    #[must_use]
    pub const fn ecn(&self) -> RtpEcn {
        self.ecn
    }

    /// The rate control.
    #[must_use]
    pub const fn scream(&self) -> &Scream {
        &self.scream
    }

    /// Begins: the first frame is captured now.
    pub fn begin(&mut self, now_ns: u64) {
        self.began_ns = now_ns;
    }

    /// Time of the next step.
    #[must_use]
    pub fn deadline_ns(&self) -> u64 {
        let packet_ns = if self.may_send() { self.paced_ns } else { NEVER };
        let silence_ns = self.awaited_ns.saturating_add(self.patience_ns());
        self.frame_ns().min(packet_ns).min(silence_ns).min(self.receiver.deadline_ns())
    }

    /// A deadline has come.
    pub fn on_time(&mut self, now_ns: u64, out: &mut impl Outlet) {
        if self.awaited_ns.saturating_add(self.patience_ns()) <= now_ns {
            self.awaited_ns = NEVER;
            self.flight.give_up(now_ns);
            self.scream.silence(seconds(now_ns - self.began_ns));
        }
        if self.receiver.deadline_ns() <= now_ns {
            self.send_report(now_ns, out);
        }
        while self.frame_ns() <= now_ns {
            self.capture(now_ns, out);
        }
        while self.may_send() && self.paced_ns <= now_ns {
            self.send(now_ns, out);
        }
    }

    /// A packet has arrived at the receiver; its frame, unless it has come before or far too late.
    pub fn on_packet(
        &mut self,
        now_ns: u64,
        number: u64,
        marked: bool,
        out: &mut impl Outlet,
    ) -> Option<usize> {
        let packet = self.flight.get_mut(number)?;
        if packet.arrived_ns != NEVER {
            return None;
        }
        packet.arrived_ns = now_ns;
        packet.marked = marked;
        let (row, last) = (packet.row, packet.last);
        if self.receiver.arrive(now_ns, number, last) {
            self.send_report(now_ns, out);
        }
        Some(row)
    }

    /// A report has arrived at the sender.
    pub fn on_report(&mut self, now_ns: u64, number: u64, out: &mut impl Outlet) {
        let Some(index) = number.checked_sub(self.first_report) else { return };
        if index as usize >= self.reports.len() {
            return;
        }
        let report = self.reports[index as usize];
        self.reports.drain(..=index as usize);
        self.first_report = number + 1;
        let reordering_max_ns = self.scream.smoothed_rtt().map_or(0, nanoseconds);
        let Some(news) = self.flight.report(now_ns, report, reordering_max_ns) else { return };
        self.awaited_ns = if self.flight.bytes_in_flight() > 0 { now_ns } else { NEVER };
        let feedback = Feedback {
            bytes: news.bytes as f64,
            marked_bytes: news.marked_bytes as f64,
            packets: news.packets as f64,
            marked: news.marked as f64,
            lost: news.lost,
            rtt: seconds(news.rtt_ns),
            one_way: seconds(news.delay_ns),
        };
        self.scream.report(seconds(now_ns - self.began_ns), &feedback);
        self.on_time(now_ns, out);
    }

    fn patience_ns(&self) -> u64 {
        self.scream.smoothed_rtt().map_or(0, nanoseconds).saturating_mul(2).max(SILENCE_NS)
    }

    fn frame_ns(&self) -> u64 {
        let since = u128::from(self.frames) * u128::from(SECOND_NS) / u128::from(self.fps);
        self.began_ns.saturating_add(u64::try_from(since).unwrap_or(NEVER))
    }

    fn capture(&mut self, now_ns: u64, out: &mut impl Outlet) {
        self.frames += 1;
        let target_bps = self.scream.target_bps();
        let mut size = target_bps / 8.0 / self.fps as f64;
        if self.variation > 0.0 {
            // Uniform from -1 to 1.
            let draw = f64::from(self.random.next_u32()) / f64::from(u32::MAX) * 2.0 - 1.0;
            size *= 1.0 + self.variation * draw;
        }
        let bytes = (size as u32).max(RTP_HEADER_BYTES);
        let frame = Frame {
            captured_ns: now_ns,
            bytes,
            packets: bytes.div_ceil(self.packet_bytes),
            target_bps: target_bps as u64,
            window_bytes: self.scream.reference_window() as u64,
            smoothed_rtt_ns: self.scream.smoothed_rtt().map(nanoseconds),
            queue_delay_ns: nanoseconds(self.scream.queue_delay()),
        };
        let row = out.frame(&frame);
        self.queue.push_back(Queued { row, captured_ns: now_ns, left: bytes });
        let oldest_ns = self.queue.front().map_or(now_ns, |queued| queued.captured_ns);
        self.scream.frame(f64::from(bytes), seconds(now_ns - oldest_ns));
    }

    /// Size of the packet in front.
    fn next_bytes(&self) -> Option<u32> {
        Some(self.queue.front()?.left.min(self.packet_bytes))
    }

    /// True when a packet waits and the window has room for it.
    fn may_send(&self) -> bool {
        let in_flight = self.flight.bytes_in_flight();
        self.next_bytes().is_some_and(|bytes| {
            in_flight == 0 || (in_flight + u64::from(bytes)) as f64 <= self.scream.send_window()
        })
    }

    fn send(&mut self, now_ns: u64, out: &mut impl Outlet) {
        let (Some(bytes), Some(queued)) = (self.next_bytes(), self.queue.front_mut()) else {
            return;
        };
        queued.left -= bytes;
        let (row, last) = (queued.row, queued.left == 0);
        if last {
            self.queue.pop_front();
        }
        let size = bytes.max(RTP_HEADER_BYTES) as u16;
        let packet = Packet {
            sent_ns: now_ns,
            arrived_ns: NEVER,
            missing_ns: NEVER,
            row,
            bytes: size,
            marked: false,
            last,
            acked: false,
        };
        let number = self.flight.send(packet);
        out.packet(number, size, row);
        if self.awaited_ns == NEVER {
            self.awaited_ns = now_ns;
        }
        self.scream.sent(self.flight.bytes_in_flight() as f64);
        let gap = f64::from(size) * 8.0 / self.scream.pacing_bps();
        self.paced_ns = now_ns + nanoseconds(gap).max(1);
    }

    fn send_report(&mut self, now_ns: u64, out: &mut impl Outlet) {
        let (report, bytes) = self.receiver.report(now_ns);
        self.reports.push_back(report);
        out.report(self.first_report + self.reports.len() as u64 - 1, bytes);
    }
}
