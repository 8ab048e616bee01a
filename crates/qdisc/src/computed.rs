//! The closed form of a tail-drop FIFO: every departure is known on arrival.
//!
//! Nothing that arrives later can change when a packet leaves a FIFO in front of a line or of a
//! token bucket, so no event per packet is needed: the simulator asks once, on arrival, and the
//! answer is the departure or the drop. What still waits is a ring of the instants at which packets
//! leave the queue, popped when somebody looks.
//!
//! A packet whose time has come has left: at an equal instant departures go before arrivals.
//! `model/computed.rs` holds this against the same discipline driven event by event.

use crate::contract::Backlog;
use crate::disciplines::fifo::Limit;
use crate::disciplines::{Discipline, htb, tbf};
use crate::line::Line;
use dragstrip_units::{Instant, Rate, make_room};
use std::collections::VecDeque;

/// Server that takes packets out of the queue.
#[derive(Clone, Debug)]
pub enum Server {
    /// Nothing holds a packet back: it leaves when it arrives.
    Instant,
    /// A transmitter: a packet leaves at the **end** of its transmission time. The one in
    /// transmission has left the queue.
    Wire {
        /// Bits per second on the line.
        rate: Rate,
        /// Bytes the line adds to every packet.
        overhead: u32,
    },
    /// An htb class: a packet leaves at the **start** of its transmission time.
    Htb(htb::Shaper),
    /// A token bucket filter: a packet leaves when the bucket holds its cost; one longer than the bucket
    /// is dropped.
    Tbf(tbf::Shaper),
}

#[derive(Clone, Debug)]
enum Shaper {
    Htb(htb::Shaper),
    Tbf(tbf::Shaper),
}

/// A packet in the queue: 12 bytes.
#[derive(Clone, Copy, Debug)]
#[repr(C, packed(4))]
struct Waiting {
    /// Time at which it leaves the queue.
    leaves: Instant,
    len: u32,
}

/// Departure times of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// It leaves the queue; with a line, the start of its transmission.
    pub out_of_queue: Instant,
    /// It leaves altogether: with a line, the end of its transmission.
    pub leaves: Instant,
}

/// The packets that wait.
#[derive(Clone, Debug)]
struct Queue {
    limit: Limit,
    waiting: VecDeque<Waiting>,
    bytes: u64,
}

impl Queue {
    #[inline]
    fn backlog(&mut self, now: Instant) -> Backlog {
        while let Some(&Waiting { leaves, len }) = self.waiting.front() {
            if leaves > now {
                break;
            }
            self.waiting.pop_front();
            self.bytes -= u64::from(len);
        }
        Backlog { bytes: self.bytes, packets: self.waiting.len() as u32 }
    }
}

/// A tail-drop FIFO whose departures are computed on arrival. What a link of a host does without is a pointer away: a network has a
/// thousand of those, and few others.
#[derive(Clone, Debug)]
pub struct ComputedFifo {
    line: Option<Line>,
    shaper: Option<Box<Shaper>>,
    /// None where the waiting packets need not be known, neither for a limit nor for the caller.
    queue: Option<Box<Queue>>,
}

impl ComputedFifo {
    /// A queue with this limit and server. `observed`: [`Self::backlog`] will be asked; without it
    /// a queue that has no limit keeps no record of what waits.
    #[must_use]
    pub fn new(limit: Limit, server: Server, observed: bool) -> Self {
        let (shaper, line) = match server {
            Server::Instant => (None, None),
            Server::Wire { rate, overhead } => (None, Some(Line::new(rate, overhead))),
            Server::Htb(shaper) => (Some(Shaper::Htb(shaper)), None),
            Server::Tbf(shaper) => (Some(Shaper::Tbf(shaper)), None),
        };
        let is_tracked = observed || limit != Limit::None;
        Self {
            line,
            shaper: shaper.map(Box::new),
            queue: is_tracked
                .then(|| Box::new(Queue { limit, waiting: VecDeque::new(), bytes: 0 })),
        }
    }

    /// `discipline` in closed form, where there is one: a FIFO, bare or behind a token bucket. `line` is the
    /// transmitter behind it (rate, and bytes added to every packet); `observed`: its backlog will
    /// be asked for. Only of a discipline that no packet has passed yet.
    #[must_use]
    pub fn of(discipline: &Discipline, line: Option<(Rate, u32)>, observed: bool) -> Option<Self> {
        let (limit, server) = if let Some(fifo) = discipline.fifo() {
            (fifo.limit(), Server::Instant)
        } else if let Discipline::Tbf(tbf) = discipline {
            (tbf.limit(), Server::Tbf(tbf.shaper().clone()))
        } else if let Discipline::Htb(htb) = discipline {
            (htb.leaf().fifo()?.limit(), Server::Htb(htb.shaper().clone()))
        } else {
            return None;
        };
        let computed = Self::new(limit, server, observed);
        Some(match line {
            Some((rate, overhead)) => computed.with_line(rate, overhead),
            None => computed,
        })
    }

    /// The same with a transmitter behind the shaper: the shaper is asked for a packet only when the line
    /// is free, and departures are the ends of transmissions.
    #[must_use]
    pub fn with_line(mut self, rate: Rate, overhead: u32) -> Self {
        self.line = Some(Line::new(rate, overhead));
        self
    }

    /// A packet of `len` arrives at `now`, which never decreases across calls. Returns when it
    /// leaves (never decreasing either), or `None` when it is dropped.
    #[inline]
    pub fn offer(&mut self, len: u32, now: Instant) -> Option<Instant> {
        self.schedule(len, now).map(|departure| departure.leaves)
    }

    /// The same, with the time at which it leaves the queue for the line.
    #[inline(always)]
    pub fn schedule(&mut self, len: u32, now: Instant) -> Option<Departure> {
        if let Some(queue) = &mut self.queue {
            let backlog = queue.backlog(now);
            if !queue.limit.admits(len, backlog) {
                return None;
            }
        }
        let free = self.line.as_ref().map_or(Instant::ZERO, Line::free);
        let out_of_queue = match self.shaper.as_deref_mut() {
            None => now.max(free),
            Some(Shaper::Htb(shaper)) => {
                let start = now.max(free).max(shaper.ready());
                shaper.charge(len, start);
                start
            }
            Some(Shaper::Tbf(shaper)) => {
                if !shaper.passes(len) {
                    return None;
                }
                let start = now.max(free).max(shaper.ready(len));
                shaper.charge(len, start);
                start
            }
        };
        if let Some(queue) = &mut self.queue
            && out_of_queue > now
        {
            make_room(&mut queue.waiting);
            queue.waiting.push_back(Waiting { leaves: out_of_queue, len });
            queue.bytes += u64::from(len);
        }
        let leaves = match &mut self.line {
            Some(line) => line.send(len, out_of_queue),
            None => out_of_queue,
        };
        Some(Departure { out_of_queue, leaves })
    }

    /// Returns the backlog still waiting at `now`. `now` never decreases, across calls of [`Self::offer`] too.
    ///
    /// # Panics
    /// In debug builds, when the queue has no limit and was made unobserved.
    pub fn backlog(&mut self, now: Instant) -> Backlog {
        debug_assert!(self.queue.is_some(), "this queue was made unobserved");
        self.queue.as_mut().map(|queue| queue.backlog(now)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::{ComputedFifo, Limit, Server};
    use crate::disciplines::{htb, tbf};
    use dragstrip_units::{Instant, Rate};

    fn megabit() -> Rate {
        Rate::from_bits_per_second(1_000_000).unwrap()
    }

    fn departures_us(queue: &mut ComputedFifo, packets: u32) -> Vec<u64> {
        (0..packets)
            .map_while(|_| queue.offer(1514, Instant::ZERO))
            .map(Instant::as_micros_floor)
            .collect()
    }

    #[test]
    fn htb_lets_two_frames_go_back_to_back_then_one_every_12_112_ms() {
        let shaper = htb::Shaper::new(htb::Config::with_rate(megabit()));
        let mut queue = ComputedFifo::new(Limit::None, Server::Htb(shaper), false);
        assert_eq!(departures_us(&mut queue, 6), [0, 0, 11_424, 23_536, 35_648, 47_760]);
    }

    #[test]
    fn tbf_lets_one_frame_go_and_the_next_when_the_bucket_holds_it() {
        let config = tbf::Config { rate: megabit(), burst: 1600, peak: None };
        let server = Server::Tbf(tbf::Shaper::new(config));
        let mut queue = ComputedFifo::new(Limit::None, server, false);
        assert_eq!(departures_us(&mut queue, 4), [0, 11_424, 23_536, 35_648]);
        assert_eq!(queue.offer(1601, Instant::ZERO), None);
    }

    #[test]
    fn a_wire_is_left_at_the_end_of_transmission_and_stores_one_packet_beside_the_queue() {
        let server = Server::Wire { rate: megabit(), overhead: 0 };
        let mut queue = ComputedFifo::new(Limit::Packets(2), server, true);
        assert_eq!(departures_us(&mut queue, 5), [12_112, 24_224, 36_336]);
        let at = |us: u64| Instant::from_nanos(us * 1_000);
        assert_eq!(queue.backlog(at(12_111)).packets, 2);
        assert_eq!(queue.backlog(at(12_112)).packets, 1);
        assert_eq!(queue.backlog(at(24_224)).bytes, 0);
    }

    #[test]
    fn bfifo_of_a_tenth_of_a_mebibyte_holds_69_frames_and_then_an_ack() {
        let shaper = htb::Shaper::new(htb::Config::with_rate(megabit()));
        let mut queue = ComputedFifo::new(Limit::Bytes(104_857), Server::Htb(shaper), true);
        // Two leave at once on the burst; 69 wait, the last of them for 68 frame times after the 11.424 ms.
        let departures = departures_us(&mut queue, 100);
        assert_eq!(departures.len(), 2 + 69);
        assert_eq!(departures[70], 11_424 + 68 * 12_112);
        assert!(queue.offer(66, Instant::ZERO).is_some());
        assert_eq!(queue.backlog(Instant::ZERO).bytes, 69 * 1514 + 66);
    }

    #[test]
    fn a_line_behind_a_faster_shaper_holds_packets_in_the_queue() {
        let ten = Rate::from_bits_per_second(10_000_000).unwrap();
        let shaper = htb::Shaper::new(htb::Config::with_rate(ten));
        let mut queue =
            ComputedFifo::new(Limit::Packets(2), Server::Htb(shaper), true).with_line(megabit(), 0);
        assert_eq!(departures_us(&mut queue, 5), [12_112, 24_224, 36_336]);
    }
}
