//! The floor: what moving the packets costs when nothing else is done.
//!
//! Unavoidable work only: packets wait in FIFOs, links serialise and delay them, the bottleneck drops
//! what does not fit, the ACK returns in its data packet's record, a window opens and halves. No
//! retransmission, no SACK list, no delayed ACK, no RTT estimate, no recording.
//!
//! Two ways to hold the events, which must deliver the same packets (a test):
//! - *lazy*: five events per packet (sender's link done, arrival at the queue, bottleneck done,
//!   arrival at the receiver, ACK at the sender), but only a link's next one is pending.
//! - *fused*: a FIFO's departures follow from its arrivals, so they are computed, not scheduled;
//!   two events per packet remain (arrival at the queue, ACK at the sender).

use crate::options::{IP_PACKET_BYTES, MSS_BYTES, Options, Variant};
use crate::usage;
use crate::winner_tree::WinnerTree;

const NONE: u32 = u32::MAX;
/// RFC 6928.
const INITIAL_WINDOW: u64 = 10;
/// Every so often, a flow that has heard nothing since the last look starts afresh.
const TIMEOUT_NS: u64 = 1_000_000_000;

/// A packet on its way there, then its ACK on its way back: one cache line.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Packet {
    /// When it comes out of the FIFO it is in.
    due_ns: u64,
    /// Counts a flow's packets.
    sequence: u64,
    flow: u32,
    /// The packet behind it in its FIFO, or the next free record.
    next: u32,
}

/// Records of packets, and the free ones among them.
struct Arena {
    packets: Vec<Packet>,
    free: u32,
}

/// Packets in order of arrival, linked through their records.
#[derive(Clone, Copy)]
struct Fifo {
    head: u32,
    tail: u32,
}

/// The sender's window rule: slow start, then additive increase, halved once per round trip of loss.
struct Sender {
    window: u64,
    slow_start_until: u64,
    in_flight: u64,
    next_sequence: u64,
    next_ack: u64,
    /// Losses before this one belong to a halving already made.
    recover: u64,
    acked_since_growth: u64,
    last_ack_ns: u64,
}

/// The path's constants, in nanoseconds and packets.
struct Path {
    access_ns: u64,
    bottleneck_ns: u64,
    hop_delay_ns: u64,
    queue_packets: u64,
}

/// What a run did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Outcome {
    delivered: u64,
    dropped: u64,
    events: u64,
}

/// Runs the floor `--repeat` times; the answer is a JSON object.
pub fn command(options: &Options) -> String {
    let mut outcome = Outcome { delivered: 0, dropped: 0, events: 0 };
    let before_s = usage::cpu_s();
    for _ in 0..options.repeat {
        outcome = run(options);
    }
    let run_cpu_s = (usage::cpu_s() - before_s) / options.repeat as f64;
    serde_json::json!({
        "program": match options.variant {
            Variant::Lazy => "floor-lazy",
            Variant::Fused => "floor-fused",
        },
        "flows": options.flows,
        "cc": "aimd",
        "queue_packets": options.queue_packets(),
        "seconds": options.seconds,
        "repeat": options.repeat,
        "data_packets": outcome.delivered,
        "goodput_mbps":
            (outcome.delivered * MSS_BYTES * 8) as f64 / options.seconds as f64 / 1e6,
        "dropped": outcome.dropped,
        "events": outcome.events,
        "run_cpu_s": run_cpu_s,
        "peak_rss_kib": usage::peak_rss_kib(),
    })
    .to_string()
}

fn run(options: &Options) -> Outcome {
    match options.variant {
        Variant::Lazy => Lazy::new(options).run(),
        Variant::Fused => Fused::new(options).run(),
    }
}

/// Events at or before this entrant of the tree are the path's own; per-flow links come behind, so
/// that at equal times the bottleneck lets go before the next packet arrives.
const BOTTLENECK: usize = 0;
const BOTTLENECK_DELAY: usize = 1;
const TIMEOUT: usize = 2;
const FIRST_LINK: usize = 3;

/// Five events per packet, one pending per non-empty link.
struct Lazy {
    flows: usize,
    duration_ns: u64,
    path: Path,
    arena: Arena,
    senders: Vec<Sender>,
    /// Bottleneck, its delay, an unused one, then per flow: access links, their delays, ACK paths.
    links: Vec<Fifo>,
    waiting: u64,
    tree: WinnerTree,
    outcome: Outcome,
}

impl Lazy {
    fn new(options: &Options) -> Self {
        let flows = options.flows as usize;
        let entrants = FIRST_LINK + 3 * flows;
        let mut tree = WinnerTree::new(entrants);
        tree.set(TIMEOUT, TIMEOUT_NS);
        // A flow starts with an event on its ACK path that finds no packet there.
        for flow in 0..flows {
            tree.set(FIRST_LINK + 2 * flows + flow, options.start_ns(flow as u64));
        }
        Self {
            flows,
            duration_ns: options.duration_ns(),
            path: Path::new(options),
            arena: Arena::new(),
            senders: (0..flows).map(|_| Sender::new()).collect(),
            links: vec![Fifo::EMPTY; entrants],
            waiting: 0,
            tree,
            outcome: Outcome { delivered: 0, dropped: 0, events: 0 },
        }
    }

    fn run(mut self) -> Outcome {
        while let Some((now_ns, link)) = self.tree.first() {
            if now_ns >= self.duration_ns {
                break;
            }
            self.outcome.events += 1;
            match link {
                BOTTLENECK => self.bottleneck_done(now_ns),
                BOTTLENECK_DELAY => self.arrive_at_receiver(now_ns),
                TIMEOUT => self.look_for_timeouts(now_ns),
                _ => self.flow_event(now_ns, link - FIRST_LINK),
            }
        }
        self.outcome
    }

    #[inline]
    fn flow_event(&mut self, now_ns: u64, index: usize) {
        if index < self.flows {
            self.access_done(now_ns, index);
        } else if index < 2 * self.flows {
            self.arrive_at_queue(now_ns, index - self.flows);
        } else {
            self.ack_at_sender(now_ns, index - 2 * self.flows);
        }
    }

    /// Puts `packet` into a link that delays only.
    #[inline]
    fn delay(&mut self, link: usize, packet: u32, due_ns: u64) {
        self.arena.packets[packet as usize].due_ns = due_ns;
        if self.links[link].push(&mut self.arena, packet) {
            self.tree.set(link, due_ns);
        }
    }

    /// Takes the packet that is due out of a link that delays only.
    #[inline]
    fn leave(&mut self, link: usize) -> u32 {
        let packet = self.links[link].pop(&mut self.arena);
        match self.links[link].head {
            NONE => self.tree.clear(link),
            next => self.tree.set(link, self.arena.packets[next as usize].due_ns),
        }
        packet
    }

    /// Takes the packet that has been sent out of a transmitter, and starts the next one.
    #[inline]
    fn transmitted(&mut self, link: usize, now_ns: u64, each_ns: u64) -> u32 {
        let packet = self.links[link].pop(&mut self.arena);
        if self.links[link].head == NONE {
            self.tree.clear(link);
        } else {
            self.tree.set(link, now_ns + each_ns);
        }
        packet
    }

    fn access_done(&mut self, now_ns: u64, flow: usize) {
        let packet = self.transmitted(FIRST_LINK + flow, now_ns, self.path.access_ns);
        self.delay(FIRST_LINK + self.flows + flow, packet, now_ns + self.path.hop_delay_ns);
    }

    fn arrive_at_queue(&mut self, now_ns: u64, flow: usize) {
        let packet = self.leave(FIRST_LINK + self.flows + flow);
        // The packet in transmission has left the queue.
        if self.waiting > self.path.queue_packets {
            self.outcome.dropped += 1;
            self.arena.release(packet);
            return;
        }
        self.waiting += 1;
        if self.links[BOTTLENECK].push(&mut self.arena, packet) {
            self.tree.set(BOTTLENECK, now_ns + self.path.bottleneck_ns);
        }
    }

    fn bottleneck_done(&mut self, now_ns: u64) {
        self.waiting -= 1;
        let packet = self.transmitted(BOTTLENECK, now_ns, self.path.bottleneck_ns);
        self.delay(BOTTLENECK_DELAY, packet, now_ns + self.path.hop_delay_ns);
    }

    fn arrive_at_receiver(&mut self, now_ns: u64) {
        let packet = self.leave(BOTTLENECK_DELAY);
        self.outcome.delivered += 1;
        let flow = self.arena.packets[packet as usize].flow as usize;
        let due_ns = now_ns + 2 * self.path.hop_delay_ns;
        self.delay(FIRST_LINK + 2 * self.flows + flow, packet, due_ns);
    }

    fn ack_at_sender(&mut self, now_ns: u64, flow: usize) {
        let link = FIRST_LINK + 2 * self.flows + flow;
        if self.links[link].head == NONE {
            self.tree.clear(link);
        } else {
            let packet = self.leave(link);
            self.senders[flow].acked(self.arena.packets[packet as usize].sequence, now_ns);
            self.arena.release(packet);
        }
        self.send(now_ns, flow);
    }

    fn send(&mut self, now_ns: u64, flow: usize) {
        while let Some(sequence) = self.senders[flow].next() {
            let packet = self.arena.take(sequence, flow);
            if self.links[FIRST_LINK + flow].push(&mut self.arena, packet) {
                self.tree.set(FIRST_LINK + flow, now_ns + self.path.access_ns);
            }
        }
    }

    fn look_for_timeouts(&mut self, now_ns: u64) {
        for flow in 0..self.flows {
            if self.senders[flow].timed_out(now_ns) {
                self.send(now_ns, flow);
            }
        }
        self.tree.set(TIMEOUT, now_ns + TIMEOUT_NS);
    }
}

/// Two events per packet: departures from the FIFOs are computed when the packet enters them.
struct Fused {
    flows: usize,
    duration_ns: u64,
    path: Path,
    arena: Arena,
    senders: Vec<Sender>,
    /// When each access link has sent all it holds.
    access_free_ns: Vec<u64>,
    bottleneck_free_ns: u64,
    /// Three unused ones, then per flow: the ways to the queue, the ways from there back.
    links: Vec<Fifo>,
    tree: WinnerTree,
    outcome: Outcome,
}

impl Fused {
    fn new(options: &Options) -> Self {
        let flows = options.flows as usize;
        let entrants = FIRST_LINK + 2 * flows;
        let mut tree = WinnerTree::new(entrants);
        tree.set(TIMEOUT, TIMEOUT_NS);
        for flow in 0..flows {
            tree.set(FIRST_LINK + flows + flow, options.start_ns(flow as u64));
        }
        Self {
            flows,
            duration_ns: options.duration_ns(),
            path: Path::new(options),
            arena: Arena::new(),
            senders: (0..flows).map(|_| Sender::new()).collect(),
            access_free_ns: vec![0; flows],
            bottleneck_free_ns: 0,
            links: vec![Fifo::EMPTY; entrants],
            tree,
            outcome: Outcome { delivered: 0, dropped: 0, events: 0 },
        }
    }

    fn run(mut self) -> Outcome {
        while let Some((now_ns, link)) = self.tree.first() {
            if now_ns >= self.duration_ns {
                break;
            }
            self.outcome.events += 1;
            if link == TIMEOUT {
                self.look_for_timeouts(now_ns);
            } else if link - FIRST_LINK < self.flows {
                self.arrive_at_queue(now_ns, link - FIRST_LINK);
            } else {
                self.ack_at_sender(now_ns, link - FIRST_LINK - self.flows);
            }
        }
        self.outcome
    }

    #[inline]
    fn delay(&mut self, link: usize, packet: u32, due_ns: u64) {
        self.arena.packets[packet as usize].due_ns = due_ns;
        if self.links[link].push(&mut self.arena, packet) {
            self.tree.set(link, due_ns);
        }
    }

    #[inline]
    fn leave(&mut self, link: usize) -> u32 {
        let packet = self.links[link].pop(&mut self.arena);
        match self.links[link].head {
            NONE => self.tree.clear(link),
            next => self.tree.set(link, self.arena.packets[next as usize].due_ns),
        }
        packet
    }

    fn arrive_at_queue(&mut self, now_ns: u64, flow: usize) {
        let packet = self.leave(FIRST_LINK + flow);
        // All packets take equally long, so the time until the link is free counts them.
        let busy_ns = self.bottleneck_free_ns.saturating_sub(now_ns);
        if busy_ns.div_ceil(self.path.bottleneck_ns) > self.path.queue_packets {
            self.outcome.dropped += 1;
            self.arena.release(packet);
            return;
        }
        self.bottleneck_free_ns = now_ns + busy_ns + self.path.bottleneck_ns;
        // The receiver would see it one hop on; nothing there needs an event of its own.
        let at_receiver_ns = self.bottleneck_free_ns + self.path.hop_delay_ns;
        self.outcome.delivered += u64::from(at_receiver_ns < self.duration_ns);
        let due_ns = at_receiver_ns + 2 * self.path.hop_delay_ns;
        self.delay(FIRST_LINK + self.flows + flow, packet, due_ns);
    }

    fn ack_at_sender(&mut self, now_ns: u64, flow: usize) {
        let link = FIRST_LINK + self.flows + flow;
        if self.links[link].head == NONE {
            self.tree.clear(link);
        } else {
            let packet = self.leave(link);
            self.senders[flow].acked(self.arena.packets[packet as usize].sequence, now_ns);
            self.arena.release(packet);
        }
        self.send(now_ns, flow);
    }

    fn send(&mut self, now_ns: u64, flow: usize) {
        while let Some(sequence) = self.senders[flow].next() {
            let packet = self.arena.take(sequence, flow);
            let sent_ns = self.access_free_ns[flow].max(now_ns) + self.path.access_ns;
            self.access_free_ns[flow] = sent_ns;
            self.delay(FIRST_LINK + flow, packet, sent_ns + self.path.hop_delay_ns);
        }
    }

    fn look_for_timeouts(&mut self, now_ns: u64) {
        for flow in 0..self.flows {
            if self.senders[flow].timed_out(now_ns) {
                self.send(now_ns, flow);
            }
        }
        self.tree.set(TIMEOUT, now_ns + TIMEOUT_NS);
    }
}

impl Path {
    fn new(options: &Options) -> Self {
        let bottleneck_ns = IP_PACKET_BYTES * 8_000_000_000 / options.rate_bps();
        assert!(bottleneck_ns >= 10, "above 100 Gbit/s a packet takes less than the floor's clock");
        Self {
            access_ns: bottleneck_ns / 10,
            bottleneck_ns,
            hop_delay_ns: options.hop_delay_ns(),
            queue_packets: options.queue_packets(),
        }
    }
}

impl Arena {
    const fn new() -> Self {
        Self { packets: Vec::new(), free: NONE }
    }

    #[inline]
    fn take(&mut self, sequence: u64, flow: usize) -> u32 {
        let packet = Packet { due_ns: 0, sequence, flow: flow as u32, next: NONE };
        if self.free == NONE {
            self.packets.push(packet);
            return (self.packets.len() - 1) as u32;
        }
        let index = self.free;
        self.free = self.packets[index as usize].next;
        self.packets[index as usize] = packet;
        index
    }

    #[inline]
    fn release(&mut self, index: u32) {
        self.packets[index as usize].next = self.free;
        self.free = index;
    }
}

impl Fifo {
    const EMPTY: Self = Self { head: NONE, tail: NONE };

    /// Appends; the answer is whether the FIFO was empty.
    #[inline]
    fn push(&mut self, arena: &mut Arena, packet: u32) -> bool {
        arena.packets[packet as usize].next = NONE;
        let was_empty = self.head == NONE;
        if was_empty {
            self.head = packet;
        } else {
            arena.packets[self.tail as usize].next = packet;
        }
        self.tail = packet;
        was_empty
    }

    #[inline]
    fn pop(&mut self, arena: &mut Arena) -> u32 {
        let packet = self.head;
        self.head = arena.packets[packet as usize].next;
        packet
    }
}

impl Sender {
    const fn new() -> Self {
        Self {
            window: INITIAL_WINDOW,
            slow_start_until: u64::MAX,
            in_flight: 0,
            next_sequence: 0,
            next_ack: 0,
            recover: 0,
            acked_since_growth: 0,
            last_ack_ns: 0,
        }
    }

    /// The sequence number of the packet that the window lets go now.
    #[inline]
    fn next(&mut self) -> Option<u64> {
        if self.in_flight >= self.window {
            return None;
        }
        self.in_flight += 1;
        self.next_sequence += 1;
        Some(self.next_sequence - 1)
    }

    /// Nothing overtakes on a FIFO, so a gap before `sequence` is loss.
    #[inline]
    fn acked(&mut self, sequence: u64, now_ns: u64) {
        self.last_ack_ns = now_ns;
        if sequence < self.next_ack {
            return; // given up by a timeout
        }
        let lost = sequence - self.next_ack;
        self.in_flight -= lost + 1;
        self.next_ack = sequence + 1;
        if lost > 0 && sequence >= self.recover {
            self.window = (self.window / 2).max(2);
            self.slow_start_until = self.window;
            self.recover = self.next_sequence;
        } else if self.window < self.slow_start_until {
            self.window += 1;
        } else {
            self.acked_since_growth += 1;
            if self.acked_since_growth >= self.window {
                self.acked_since_growth = 0;
                self.window += 1;
            }
        }
    }

    /// Starts afresh if packets are out and nothing has been heard for a whole timeout.
    fn timed_out(&mut self, now_ns: u64) -> bool {
        let silent = self.in_flight > 0 && self.last_ack_ns + TIMEOUT_NS <= now_ns;
        if silent {
            self.slow_start_until = (self.window / 2).max(2);
            self.window = 1;
            self.in_flight = 0;
            self.next_ack = self.next_sequence;
            self.recover = self.next_sequence;
        }
        silent
    }
}

#[cfg(test)]
mod tests {
    use super::{Packet, run};
    use crate::options::{Options, Variant};

    fn options(flows: u64, mbps: u64, rtt_ms: u64, seconds: u64) -> Options {
        Options { flows, mbps, rtt_ms, seconds, ..Options::default() }
    }

    #[test]
    fn both_variants_deliver_the_same_packets() {
        for (flows, mbps, rtt_ms, seconds) in
            [(1, 100, 20, 20), (10, 100, 20, 20), (30, 100, 300, 20), (100, 1000, 20, 3)]
        {
            let lazy = options(flows, mbps, rtt_ms, seconds);
            let fused = Options { variant: Variant::Fused, ..lazy.clone() };
            let (lazy, fused) = (run(&lazy), run(&fused));
            assert_eq!((lazy.delivered, lazy.dropped), (fused.delivered, fused.dropped));
            assert!(lazy.dropped > 0, "{flows} flows must have filled the queue");
        }
    }

    #[test]
    fn the_bottleneck_is_kept_busy() {
        // 100 Mbit/s carries 8333 packets of 1500 bytes a second; one second of 20 is for slow start.
        let delivered = run(&options(1, 100, 20, 20)).delivered;
        assert!((19 * 8333..=20 * 8334).contains(&delivered), "{delivered}");
    }

    #[test]
    fn a_packet_is_one_cache_line() {
        assert_eq!((size_of::<Packet>(), align_of::<Packet>()), (64, 64));
    }
}
