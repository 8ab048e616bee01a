//! A run on one host of a lab: its sides, by its own clock.

use super::frames::Frame;
use super::line::Line;
use super::messages::{Ask, Open, Played};
use crate::conductor::{CLOCK_STEP_NS, rings};
use crate::event_loop::{ELSEWHERE, Elsewhere, drive};
use crate::fault::{Fault, fault};
use crate::load::Load;
use crate::netlink::Socket;
use crate::network::Place;
use crate::record;
use crate::side::{Notice, Order, Ring, Side, Wire};
use crate::sys::{self, Poll};
use dragstrip_recording::Writer;
use dragstrip_scenario::Transport;
use std::fs;
use std::io::Read;

/// Interval of progress reports.
const PROGRESS_NS: u64 = 100_000_000;

/// Prepares the sides, reports that, waits for the start, and runs them. `interfaces` are those of the plan's hops,
/// `wires` and `cables` those that packets pass.
pub fn play(
    open: &Open,
    interfaces: &[i32],
    wires: &[Wire],
    cables: &[String],
    line: &mut Line,
) -> Result<Vec<u8>, Fault> {
    let Open { scenario, plan, nodes, .. } = open;
    sys::set_timer_slack()?;
    let poll = Poll::new()?;
    let mut sides = sides(open, interfaces, wires, &poll)?;
    line.answer(Ok(b"true".to_vec()))?;
    let Some(start) = line.wait_for_start()? else { return fault("the run was called off") };
    poll.add(&line.wake, libc::EPOLLIN, ELSEWHERE)?;
    let mut tables = Writer::default();
    let (before, clock) = (Load::now(), sys::clock_offset());
    let carriers: Vec<_> = cables.iter().map(|name| (name, carrier_changes(name))).collect();
    let end_ns = scenario.duration_ns as i64;
    let mut elsewhere = Conductor { line, told_ns: 0 };
    let lateness = drive(&mut sides, &poll, (start, end_ns), &mut tables, &mut elsewhere)?;
    let load = before.until(Load::now());
    let step = sys::clock_offset() - clock;
    if step.abs() > CLOCK_STEP_NS {
        return fault(format!("its clock was set by {step} ns in the middle of the run"));
    }
    if let Some((name, _)) = carriers.iter().find(|(name, count)| carrier_changes(name) != *count) {
        return fault(format!(
            "{name}: its cable was cut, or it was set down, in the middle of the run"
        ));
    }
    let (mut reports, mut captured) = (Vec::new(), Vec::new());
    for side in &mut sides {
        reports.push((side.node(), side.finish(end_ns, &mut tables)?));
        captured.extend(side.captured(scenario.duration_ns)?);
    }
    debug_assert!(nodes.iter().all(|node| *node < plan.nodes.len()));
    let played = Played {
        reports,
        idle_share: load.idle_share,
        steal_share: load.steal_share,
        dropped: load.dropped,
        squeezed: load.squeezed,
        samples: lateness.samples,
        late: lateness.late,
        worst_ns: lateness.worst_ns,
    };
    Ok(record::answer(
        &tables.finish(),
        serde_json::to_value(played).unwrap_or_default(),
        &captured,
    ))
}

/// The kernel's count of carrier losses and recoveries at an interface.
fn carrier_changes(interface: &str) -> String {
    fs::read_to_string(format!("/sys/class/net/{interface}/carrier_changes")).unwrap_or_default()
}

/// A side for each node of this host that has something to do.
fn sides<'a>(
    open: &'a Open,
    interfaces: &[i32],
    wires: &[Wire],
    poll: &Poll,
) -> Result<Vec<Side<'a>>, Fault> {
    let Open { scenario, plan, nodes, capture, .. } = open;
    let node_name = |node: usize| plan.nodes.get(node).map(|node| node.name.as_str());
    let tcp = scenario.flows.iter().filter(|flow| matches!(flow.transport, Transport::Tcp { .. }));
    let mut hosts: Vec<&str> =
        tcp.flat_map(|flow| [flow.sender.as_str(), flow.receiver.as_str()]).collect();
    hosts.retain(|host| nodes.iter().any(|node| node_name(*node) == Some(host)));
    hosts.sort_unstable();
    hosts.dedup();
    let rings = rings(scenario, &hosts)?;
    let none = Ring { packets: 0, emptied_ns: scenario.record.interval_ns };
    let ends = scenario.flows.iter().flat_map(|flow| [&flow.sender, &flow.receiver]);
    let busy: Vec<&String> = ends.chain(scenario.probes.iter().map(|probe| &probe.from)).collect();
    let near_ends = open.near_ends.iter().map(|(from, link, interface)| {
        Ok((*from, link.as_str(), sys::interface_index(interface)?))
    });
    let near_ends = near_ends.collect::<Result<Vec<_>, Fault>>()?;
    let mut sides = Vec::new();
    for &node in nodes {
        let Some(name) = node_name(node) else { return fault("a node that the plan has not") };
        let near_end = |link: &str| {
            near_ends
                .iter()
                .find(|(from, near_link, _)| *from == node && *near_link == link)
                .map(|end| end.2)
        };
        let captures = capture
            .as_ref()
            .map_or_else(Vec::new, |capture_request| capture_request.at(name, near_end));
        if busy.iter().any(|busy| *busy == name)
            || plan.hops.iter().any(|hop| hop.from == node)
            || !captures.is_empty()
        {
            let place = Place { namespace: None, netlink: Socket::new()? };
            let ring = rings.get(name).copied().unwrap_or(none);
            let number = sides.len();
            let mut side =
                Side::open(number, (node, place), scenario, plan, interfaces, ring, poll)?;
            if let Some(wanted) = capture {
                side.capture(wanted, &captures, wires)?;
            }
            sides.push(side);
        }
    }
    Ok(sides)
}

/// The conductor at the other end of the line.
struct Conductor<'l> {
    line: &'l mut Line,
    told_ns: u64,
}

impl Elsewhere for Conductor<'_> {
    fn tell(&mut self, notice: Notice) -> Result<(), Fault> {
        self.line.send(b'n', &notice)
    }

    fn orders(&mut self) -> Result<Vec<Order>, Fault> {
        let mut woken = [0; 64];
        let _ = self.line.wake.read(&mut woken); // one byte for each frame; none left is fine
        let mut orders = Vec::new();
        while let Some(frame) = self.line.next_now() {
            match frame.kind {
                b'o' => orders.push(frame.parsed()?.0),
                kind => return fault(format!("{:?} in the middle of a run", char::from(kind))),
            }
        }
        Ok(orders)
    }

    fn progress(&mut self, now_ns: u64, _arrived_bytes: u64) {
        if now_ns >= self.told_ns + PROGRESS_NS {
            self.told_ns = now_ns;
            let _ = self.line.send(b'p', &now_ns); // nobody listens any more: the line ends the run
        }
    }
}

impl Line {
    /// Waits for the start time by this host's clock; none if the run does not start.
    fn wait_for_start(&mut self) -> Result<Option<i64>, Fault> {
        while let Some(frame) = self.next() {
            if let Frame { kind: b'q', .. } = frame {
                return Ok(match frame.parsed::<Ask>()?.0 {
                    Ask::Go { start } => Some(start),
                    Ask::Time
                    | Ask::Facts { .. }
                    | Ask::Carried { .. }
                    | Ask::Routes { .. }
                    | Ask::Ping { .. }
                    | Ask::Apply(_)
                    | Ask::Open(_)
                    | Ask::Revert
                    | Ask::Clean => None,
                });
            }
        }
        Ok(None)
    }
}

/// The host's clock as an answer.
pub fn time() -> Vec<u8> {
    sys::now().to_string().into_bytes()
}
