//! Packets that were sent, until their fate is known.

use std::collections::VecDeque;

/// A time that never comes.
pub(crate) const NEVER: u64 = u64::MAX;
/// A packet that is missing for longer is forgotten, ns.
const FORGOTTEN_NS: u64 = 10_000_000_000;

/// A packet on its way. The receiver's side fills in its arrival.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    pub sent_ns: u64,
    /// `NEVER` until it arrives.
    pub arrived_ns: u64,
    /// Time of the first report that lacked it; `NEVER` before.
    pub missing_ns: u64,
    /// Row of its frame.
    pub row: usize,
    pub bytes: u16,
    pub marked: bool,
    /// The frame's last packet (RTP's marker bit).
    pub last: bool,
    pub acked: bool,
}

/// A report on packets `begin` to `end`, as of a time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Report {
    pub begin: u64,
    pub end: u64,
    pub at_ns: u64,
}

/// Sum of what a report has changed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct News {
    /// Bytes by which the highest acknowledged packet has advanced, lost ones included.
    pub bytes: u64,
    /// Packets acknowledged for the first time: bytes with CE, number, number with CE.
    pub marked_bytes: u64,
    pub packets: u64,
    pub marked: u64,
    /// Some packet is lost.
    pub lost: bool,
    /// Round trip without the receiver's time, and one-way delay, ns: of the highest packet.
    pub rtt_ns: u64,
    pub delay_ns: u64,
}

/// The packets of a sender, numbered from 1.
#[derive(Clone, Debug)]
pub(crate) struct Flight {
    packets: VecDeque<Packet>,
    /// Number of the first of them.
    first: u64,
    highest_acked: u64,
    bytes_in_flight: u64,
    /// Packets that a report lacked, in ascending order.
    missing: VecDeque<u64>,
    /// Time that a missing packet has before it counts as lost.
    reordering_ns: u64,
}

impl Flight {
    pub fn new() -> Self {
        Self {
            packets: VecDeque::new(),
            first: 1,
            highest_acked: 0,
            bytes_in_flight: 0,
            missing: VecDeque::new(),
            reordering_ns: 0,
        }
    }

    pub const fn bytes_in_flight(&self) -> u64 {
        self.bytes_in_flight
    }

    /// Adds a packet; returns its number.
    pub fn send(&mut self, packet: Packet) -> u64 {
        self.bytes_in_flight += u64::from(packet.bytes);
        self.packets.push_back(packet);
        self.first + self.packets.len() as u64 - 1
    }

    pub fn get_mut(&mut self, number: u64) -> Option<&mut Packet> {
        let index = number.checked_sub(self.first)?;
        self.packets.get_mut(index as usize)
    }

    /// Takes in a report; none if it is about packets that are forgotten. `reordering_max_ns` limits the reordering
    /// window (RFC 8985 §7.1: no more than a round trip).
    pub fn report(&mut self, now_ns: u64, report: Report, reordering_max_ns: u64) -> Option<News> {
        let newest = *self.get_mut(report.end)?;
        let held_ns = report.at_ns - newest.arrived_ns;
        let mut news = News {
            rtt_ns: (now_ns - newest.sent_ns).saturating_sub(held_ns),
            delay_ns: newest.arrived_ns - newest.sent_ns,
            ..News::default()
        };
        for number in report.begin.max(self.first)..=report.end {
            self.acknowledge(number, now_ns, report.at_ns, &mut news);
        }
        for number in self.highest_acked + 1..=report.end {
            let Some(packet) = self.get_mut(number) else { continue };
            news.bytes += u64::from(packet.bytes);
            if !packet.acked {
                packet.missing_ns = now_ns;
                self.missing.push_back(number);
            }
        }
        self.bytes_in_flight -= news.bytes;
        self.highest_acked = self.highest_acked.max(report.end);
        self.reordering_ns = self.reordering_ns.min(reordering_max_ns);
        news.lost = self.lose(now_ns);
        self.forget(now_ns);
        Some(news)
    }

    /// A packet that had arrived by `at_ns` is acknowledged.
    fn acknowledge(&mut self, number: u64, now_ns: u64, at_ns: u64, news: &mut News) {
        let mut reordering_ns = self.reordering_ns;
        let Some(packet) = self.get_mut(number) else { return };
        if packet.acked || packet.arrived_ns > at_ns {
            return;
        }
        packet.acked = true;
        if packet.missing_ns != NEVER {
            reordering_ns = reordering_ns.max(now_ns - packet.missing_ns);
        }
        news.packets += 1;
        if packet.marked {
            news.marked += 1;
            news.marked_bytes += u64::from(packet.bytes);
        }
        self.reordering_ns = reordering_ns;
    }

    /// Missing packets whose time is over are lost; true if there is one.
    fn lose(&mut self, now_ns: u64) -> bool {
        let mut is_lost = false;
        while let Some(&number) = self.missing.front() {
            let reordering_ns = self.reordering_ns;
            match self.get_mut(number) {
                Some(packet) if !packet.acked => {
                    if now_ns - packet.missing_ns < reordering_ns {
                        break;
                    }
                    is_lost = true;
                }
                Some(_) | None => {}
            }
            self.missing.pop_front();
        }
        is_lost
    }

    fn forget(&mut self, now_ns: u64) {
        while let Some(packet) = self.packets.front()
            && self.first <= self.highest_acked
            && (packet.acked || now_ns.saturating_sub(packet.sent_ns) > FORGOTTEN_NS)
        {
            self.packets.pop_front();
            self.first += 1;
        }
    }

    /// Gives up everything in flight.
    pub fn give_up(&mut self, now_ns: u64) {
        self.bytes_in_flight = 0;
        self.highest_acked = self.first + self.packets.len() as u64 - 1;
        self.forget(now_ns);
    }
}
