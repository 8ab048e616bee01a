//! Path verification before a real-time run: probe streams along the path, compared with the configuration.
//!
//! Two streams of datagrams. A thin one leaves the queue empty: nothing of it may be lost, change its order or its ECN
//! codepoint, and a datagram one byte longer than the MTU must not arrive. A thick one keeps the bottleneck's queue
//! full: it arrives at the bottleneck's rate, and its wait is what the buffer holds.

mod figures;

use crate::fault::{Fault, fault};
use crate::network::{self, Network};
use crate::plan::Plan;
use crate::sys::{self, Poll};
use crate::trees;
use dragstrip_qdisc::{Configuration as _, Framing};
use dragstrip_scenario::{LinkSpec, PathFacts, QdiscSpec, Scenario};
use figures::Arrived;
pub use figures::{Check, RoundTrips};
use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;

/// Maximum number of paths verified: hundreds of hosts mostly have alike ones.
const PATHS_MAX: usize = 16;
/// Port of the agent's own probe sockets, which are closed before any flow's socket exists.
const PORT: u16 = 9;
/// Datagrams of a thin stream: ten of each ECN codepoint.
const THIN: usize = 40;
/// Their bytes with all headers.
const THIN_FRAME_BYTES: u32 = 106;
/// Between two of them, if the bottleneck is not slower than that.
const GAP_NS: i64 = 500_000;
/// Duration for which a thick stream keeps the queue full, and its rate as a multiple of the bottleneck's.
const THICK_NS: i64 = 1_000_000_000;
const THICK_SHARE: f64 = 1.1;
/// Longest time to fill a buffer; a buffer that takes longer is not measured.
const FILL_NS_MAX: f64 = 2e9;
/// A stream has ended when nothing of it has arrived for this long, in addition to the path's own delay.
const QUIET_NS: i64 = 50_000_000;
/// IPv4 and UDP, and Ethernet before them.
const HEADERS: u32 = 28;
const ETHERNET: u32 = 14;
/// Accepted range of the measured rate, relative to the configured rate.
const RATE_LIMITS: [f64; 2] = [0.98, 1.01];
/// Frames, and share of it, by which a buffer may be off: one is on the wire, and what keeps it full comes in bursts.
const BUFFER_SLACK: (f64, f64) = (1.5, 0.02);
/// Bits of a traffic class that are ECN's (RFC 3168).
const ECN: u8 = 3;

/// Sends both streams along each flow's path and back; a fault where a path changes packets.
pub fn run(scenario: &Scenario, plan: &Plan, network: &Network) -> Result<Vec<Check>, Fault> {
    let mut checks = Vec::new();
    let (mut paths, mut bottlenecks) = (BTreeSet::new(), BTreeSet::new());
    let ends = scenario.flows.iter().map(|flow| (flow.sender.as_str(), flow.receiver.as_str()));
    for (from, to) in ends.flat_map(|(from, to)| [(from, to), (to, from)]) {
        if from == to || paths.len() == PATHS_MAX || !paths.insert((from, to)) {
            continue;
        }
        let path = Path::open((from, to), scenario, plan, network)?;
        path.thin(&mut checks)?;
        // In a tree the stream has the rate of its class only.
        if let Some(link) = path.bottleneck()
            && !trees::is_in(&link.qdisc)
            && bottlenecks.insert(link.name.as_str())
        {
            path.thick(link, &mut checks)?;
        }
    }
    Ok(checks)
}

/// A path with a socket at either end.
struct Path<'a> {
    name: String,
    from: String,
    facts: PathFacts,
    links: Vec<&'a LinkSpec>,
    /// The most that its slowest medium carries.
    medium_bps: Option<u64>,
    mtu_bytes: u32,
    near: OwnedFd,
    far: OwnedFd,
    target: Ipv4Addr,
    poll: Poll,
}

impl<'a> Path<'a> {
    fn open(
        (from, to): (&str, &str),
        scenario: &'a Scenario,
        plan: &Plan,
        network: &Network,
    ) -> Result<Self, Fault> {
        let facts = scenario.path_facts([(from, to)], THIN_FRAME_BYTES);
        let facts = facts.map_err(|problem| Fault::Failed(problem.to_string()))?.remove(0);
        let (from_node, to_node) = (plan.node(from)?, plan.node(to)?);
        let home = network::own_namespace()?;
        let socket = |node: usize| -> Result<OwnedFd, Fault> {
            network.places[node].enter()?;
            let socket = sys::socket(libc::AF_INET, libc::SOCK_DGRAM, 0)?;
            for (level, option, value) in [
                (libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1),
                (libc::IPPROTO_IP, libc::IP_RECVTOS, 1),
                (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_DO),
                // As much as the machine allows.
                (libc::SOL_SOCKET, libc::SO_RCVBUF, 1 << 24),
                (libc::SOL_SOCKET, libc::SO_SNDBUF, 1 << 24),
            ] {
                sys::set_option(&socket, level, option, &value, "a socket for datagrams")?;
            }
            sys::bind(&socket, plan.nodes[node].address, PORT)?;
            Ok(socket)
        };
        let (near, far) = (socket(from_node)?, socket(to_node)?);
        sys::enter(&home)?;
        let poll = Poll::new()?;
        poll.add(&far, libc::EPOLLIN, 0)?;
        let on_path = |link: &&LinkSpec| facts.forward.contains(&link.name);
        let links: Vec<&LinkSpec> = scenario.links.iter().filter(on_path).collect();
        let media = links.iter().filter(|link| link.medium.is_some());
        let medium_bps = media.filter_map(|link| scenario.link_facts(link).fastest_bps).min();
        Ok(Self {
            name: format!("{from} to {to}"),
            from: from.to_owned(),
            links,
            medium_bps,
            facts,
            mtu_bytes: plan.mtu_bytes(from_node, to_node),
            near,
            far,
            target: plan.nodes[to_node].address,
            poll,
        })
    }

    /// The link that limits it, if a rate does.
    fn bottleneck(&self) -> Option<&'a LinkSpec> {
        self.facts.rate_bps?;
        let name = self.facts.bottleneck.as_ref()?;
        self.links.iter().copied().find(|link| link.name == *name)
    }

    /// Random numbers decide what of it is lost, or when it arrives.
    fn draws(&self) -> bool {
        self.links.iter().any(|link| {
            link.qdisc.facts().draws || link.netem.as_ref().is_some_and(|netem| netem.facts().draws)
        })
    }

    /// One way, on average, and what chance may add to it.
    fn delay_ns(&self) -> i64 {
        let chance = |link: &LinkSpec| {
            link.netem.as_ref().map_or(0, |netem| 4 * netem.jitter_ns + netem.slot_wait_ns())
        };
        self.facts.idle_rtt_ns as i64
            + self.links.iter().map(|link| chance(link) as i64).sum::<i64>()
    }

    fn note(
        &self,
        quantity: &'static str,
        unit: &'static str,
        asked: f64,
        measured: f64,
        limits: [f64; 2],
    ) -> Check {
        let [measured, least, most] = [measured, limits[0], limits[1]].map(f64::round);
        Check { path: self.name.clone(), what: quantity, unit, asked, measured, least, most }
    }

    /// A datagram of so many bytes, IP header included, with its number and the time.
    fn send(&self, number: usize, bytes: u32) -> bool {
        let mut content = vec![0; (bytes - HEADERS) as usize];
        content[..8].copy_from_slice(&(number as u64).to_le_bytes());
        content[8..16].copy_from_slice(&sys::now().to_le_bytes());
        sys::send_to(&self.near, &content, self.target, PORT).is_some()
    }

    /// Takes what has arrived, after waiting a millisecond at most.
    fn hear(&self, arrivals: &mut Vec<Arrived>) -> Result<(), Fault> {
        let mut buffer = [0; 16];
        self.poll.wait(&mut Vec::new(), 1)?;
        while let Some(got) = sys::receive_stamped(&self.far, &mut buffer) {
            let word = |at: usize| buffer[at..at + 8].try_into().unwrap_or_default();
            arrivals.push(Arrived {
                number: u64::from_le_bytes(word(0)) as usize,
                sent_ns: i64::from_le_bytes(word(8)),
                time_ns: got.time_ns,
                bytes: got.bytes as u32 + HEADERS,
                class: got.class,
            });
        }
        Ok(())
    }

    /// Takes the rest of a stream.
    fn hear_out(&self, arrivals: &mut Vec<Arrived>) -> Result<(), Fault> {
        let patience_ns = QUIET_NS + self.delay_ns() + self.medium_ns(self.mtu_bytes + ETHERNET);
        let mut last = (arrivals.len(), sys::now());
        while sys::now() - last.1 < patience_ns {
            self.hear(arrivals)?;
            if arrivals.len() > last.0 {
                last = (arrivals.len(), sys::now());
            }
        }
        Ok(())
    }

    /// Time that a medium takes for a frame, as far as its most says: text for a modem shrinks, and stations wait for each
    /// other.
    fn medium_ns(&self, frame_bytes: u32) -> i64 {
        const TIMES: i64 = 8;
        self.medium_bps.map_or(0, |bps| TIMES * frame_ns(frame_bytes, bps))
    }

    fn thin(&self, checks: &mut Vec<Check>) -> Result<(), Fault> {
        let shaped_ns = self.facts.rate_bps.map_or(0, |bps| 2 * frame_ns(THIN_FRAME_BYTES, bps));
        let gap_ns = GAP_NS.max(shaped_ns).max(self.medium_ns(THIN_FRAME_BYTES));
        let mut arrivals = Vec::new();
        for number in 0..THIN {
            let class = (number % 4) as i32;
            sys::set_option(&self.near, libc::IPPROTO_IP, libc::IP_TOS, &class, "IP_TOS")?;
            let due = sys::now() + gap_ns;
            self.send(number, THIN_FRAME_BYTES - ETHERNET);
            while sys::now() < due {
                self.hear(&mut arrivals)?;
            }
        }
        self.hear_out(&mut arrivals)?;
        if arrivals.is_empty() {
            return fault(format!("{}: none of {THIN} datagrams arrived", self.name));
        }
        if let Some(packet) =
            arrivals.iter().find(|packet| packet.class != Some(packet.number as u8 & ECN))
        {
            let (sent_ecn, came) = (packet.number as u8 & ECN, packet.class);
            let came = came.map_or_else(|| "none".to_owned(), |class| class.to_string());
            return fault(format!("{}: ECN codepoint {sent_ecn} arrives as {came}", self.name));
        }
        checks.push(self.note("ECN changed", "packets", 0.0, 0.0, [0.0; 2]));
        if !self.draws() {
            for (event, count) in [
                ("lost", figures::lost_count(THIN, &arrivals)),
                ("duplicates", figures::duplicates(&arrivals)),
                ("reordered", figures::reordered(&arrivals)),
            ] {
                checks.push(self.note(event, "packets", 0.0, count as f64, [0.0; 2]));
            }
            self.longest(checks)?;
        }
        Ok(())
    }

    /// A packet of the MTU arrives, one that is longer does not.
    fn longest(&self, checks: &mut Vec<Check>) -> Result<(), Fault> {
        let mut arrivals = Vec::new();
        for bytes in [self.mtu_bytes, self.mtu_bytes + 1] {
            self.send(0, bytes);
        }
        self.hear_out(&mut arrivals)?;
        let longest = arrivals.iter().map(|arrival| arrival.bytes).max().unwrap_or_default();
        if longest != self.mtu_bytes {
            let Self { name, mtu_bytes, .. } = self;
            return fault(format!(
                "{name}: the longest packet that arrives has {longest} bytes, the MTU is {mtu_bytes}"
            ));
        }
        let mtu = f64::from(longest);
        checks.push(self.note("MTU", "bytes", mtu, mtu, [mtu; 2]));
        Ok(())
    }

    /// Keeps the queue of `link`, the bottleneck, full for a while.
    fn thick(&self, link: &LinkSpec, checks: &mut Vec<Check>) -> Result<(), Fault> {
        let rate_bps = self.facts.rate_bps.unwrap_or_default() as f64;
        let frame_bytes = self.mtu_bytes + ETHERNET;
        let charged_bytes = charged(link, frame_bytes);
        let frame_ns = f64::from(charged_bytes) * 8e9 / rate_bps;
        let room = room(link, frame_bytes).filter(|room| *room * frame_ns <= FILL_NS_MAX);
        let first = room.unwrap_or_default() + 0.02 * THICK_NS as f64 / frame_ns + 2.0;
        let mut arrivals = Vec::new();
        let (mut sent_count, start) = (0, sys::now());
        loop {
            let time_ns = sys::now() - start;
            if time_ns > THICK_NS {
                break;
            }
            let due = first + THICK_SHARE * time_ns as f64 / frame_ns;
            while (sent_count as f64) < due && self.send(sent_count, self.mtu_bytes) {
                sent_count += 1;
            }
            self.hear(&mut arrivals)?;
        }
        self.hear_out(&mut arrivals)?;
        let measured = figures::rate_bps(&arrivals, charged_bytes).unwrap_or_default();
        let limits_bps = RATE_LIMITS.map(|limit| limit * rate_bps);
        checks.push(self.note("rate", "bit/s", rate_bps, measured, limits_bps));
        let waiting = figures::waiting(&arrivals, frame_ns);
        // A sender's own queue is filled no further than its socket's buffer.
        if let (Some(room), Some(waiting), true) =
            (room, waiting, link.from != self.from && !self.draws())
        {
            let (frames, share) = BUFFER_SLACK;
            let slack = frames + share * room;
            let [expected_bytes, buffer_bytes, slack] =
                [room, waiting, slack].map(|count| count * f64::from(frame_bytes));
            checks.push(self.note(
                "buffer",
                "bytes",
                expected_bytes,
                buffer_bytes,
                [expected_bytes - slack, expected_bytes + slack],
            ));
        }
        Ok(())
    }
}

/// Time of a frame at a rate.
fn frame_ns(frame_bytes: u32, bps: u64) -> i64 {
    i64::from(frame_bytes) * 8_000_000_000 / bps.max(1) as i64
}

/// Bytes that a frame is charged at a link's rate.
fn charged(link: &LinkSpec, frame_bytes: u32) -> u32 {
    if link.rate_bps.is_some() {
        return frame_bytes + link.overhead_bytes;
    }
    let QdiscSpec::Htb(spec) = &link.qdisc else { return frame_bytes };
    let (overhead, mpu, atm) = (spec.overhead_bytes, spec.mpu_bytes, spec.linklayer_atm);
    Framing { overhead, mpu, atm }.charged(frame_bytes)
}

/// Frames that may wait at a link's queue, if it drops at its tail.
fn room(link: &LinkSpec, frame_bytes: u32) -> Option<f64> {
    let classes = link.qdisc.classes();
    let queue = classes.first().map_or(&link.qdisc, |class| class.child);
    if !matches!(queue, QdiscSpec::Pfifo(_) | QdiscSpec::Bfifo(_) | QdiscSpec::Tbf(_)) {
        return None;
    }
    let buffer = queue.facts().buffer;
    let frames = buffer.bytes.map(|bytes| bytes / u64::from(frame_bytes));
    frames.into_iter().chain(buffer.packets.map(u64::from)).min().map(|frames| frames as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(rate_bps: Option<u64>, queue: &str) -> LinkSpec {
        let text = r#"{"name": "r-d", "from": "r", "to": "d"}"#;
        let plain: LinkSpec = serde_json::from_str(text).unwrap();
        LinkSpec { rate_bps, overhead_bytes: 24, qdisc: QdiscSpec::parse(queue).unwrap(), ..plain }
    }

    #[test]
    fn a_frame_costs_what_the_shaper_adds_to_it() {
        assert_eq!(charged(&link(Some(1), "pfifo limit 9"), 1514), 1538);
        let atm = "htb rate 1mbit overhead 10 linklayer atm leaf pfifo limit 9";
        assert_eq!(charged(&link(None, atm), 1514), 32 * 53);
        assert_eq!(charged(&link(None, "tbf rate 1mbit burst 2kb limit 9kb"), 1514), 1514);
    }

    #[test]
    fn a_buffer_is_whole_frames_and_known_for_tail_drop_alone() {
        assert_eq!(room(&link(Some(1), "bfifo limit 30kb"), 1514), Some(20.0));
        assert_eq!(room(&link(None, "htb rate 1mbit leaf pfifo limit 9"), 1514), Some(9.0));
        assert_eq!(room(&link(None, "fq_codel"), 1514), None);
    }
}
