//! The path of a shell: the carrier between the two ends' devices, until the programs have ended.

use super::exit::{self, Exit};
use super::recorder::{Head, Message, PATH_NS, PathState, Tee, WayState};
use crate::fault::{Fault, refusal};
use crate::forward::{Carrier, Devices};
use crate::{network, sys};
use dragstrip_recording::Queues;
use dragstrip_scenario::{FULL_FRAME_BYTES, Scenario};
use dragstrip_sim::Way;
use dragstrip_units::Instant;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// Longest time for which packets are carried after the command has ended.
const DRAIN_NS: u64 = 5_000_000_000;
const DRAIN_STEP_NS: u64 = 20_000_000;

/// Reason for which the forwarder stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The programs have ended.
    Ended,
    /// Their time is over.
    TimedOut,
}

/// Devices of the two ends.
pub struct Ends {
    /// Device of the first host and of the second.
    devices: [OwnedFd; 2],
    files: [RawFd; 2],
    /// Way out for packets that may open something outside.
    exit: Option<Exit>,
    /// Addresses of the first host.
    inside: [IpAddr; 2],
    /// Links of the way back.
    back: Vec<String>,
    /// Copies packets for a recorder.
    tee: Option<Tee>,
    /// Time at which the recorder is told about the path again.
    report_due_ns: u64,
}

impl Ends {
    fn copy(&mut self, now: Instant, host: usize, outgoing: bool, bytes: &[u8]) {
        if let Some(tee) = &mut self.tee {
            let length = bytes.len() as u32;
            tee.copy(Head { at_ns: now.as_nanos(), host, outgoing, length, bytes });
        }
    }
}

impl Devices for Ends {
    fn files(&self) -> &[RawFd] {
        &self.files
    }

    fn write(&mut self, way: Way, bytes: &[u8]) -> bool {
        match &self.exit {
            Some(exit) if way == Way::BACK && exit::may_open(bytes, &self.inside) => {
                exit.hand_over(bytes)
            }
            Some(_) | None => sys::write(&self.devices[way.opposite().0], bytes).is_some(),
        }
    }

    fn entered(&mut self, way: Way, now: Instant, bytes: &[u8]) {
        self.copy(now, way.0, true, bytes);
    }

    fn left(&mut self, way: Way, now: Instant, bytes: &[u8]) {
        self.copy(now, way.opposite().0, false, bytes);
    }

    fn header_bytes(&self) -> usize {
        0
    }
}

/// The path, with its two ends.
pub type Path = Carrier<Ends>;

/// The path of `scenario` between the hosts `ends`, of which the first has the addresses `inside`.
pub fn open(
    scenario: &Scenario,
    ends: [&str; 2],
    devices: [OwnedFd; 2],
    exit: Option<Exit>,
    inside: [IpAddr; 2],
) -> Result<Path, Fault> {
    let back = match scenario.path_facts([(ends[0], ends[1])], FULL_FRAME_BYTES) {
        Ok(facts) => facts.iter().flat_map(|facts| facts.back.clone()).collect(),
        Err(problem) => return refusal("links", "", problem.to_string()),
    };
    let files = [devices[0].as_raw_fd(), devices[1].as_raw_fd()];
    let ends_devices = Ends { devices, files, exit, inside, back, tee: None, report_due_ns: 0 };
    Carrier::new(scenario, &[ends], ends_devices)
}

impl Path {
    /// Carries packets until `ended` can be read or the time is over.
    pub fn run(&mut self, ended: &OwnedFd, limit_ns: u64) -> Stop {
        let epoch_ns = sys::process::monotonic();
        self.begin(epoch_ns);
        if let Some(tee) = &mut self.devices.tee {
            tee.tell(Message::Begin(epoch_ns));
        }
        let limit = Instant::from_nanos(limit_ns).min(self.end());
        loop {
            if self.now() >= limit {
                return Stop::TimedOut;
            }
            if self.wait(ended.as_raw_fd(), limit) {
                self.drain(limit);
                return Stop::Ended;
            }
            self.round();
            self.report();
        }
    }

    /// Copies all packets from now on.
    pub fn copy_to(&mut self, tee: Tee) {
        self.devices.tee = Some(tee);
    }

    /// Ends the copies at the path's time; returns the rows of its queues.
    pub fn end_copies(&mut self) -> &Queues {
        let now_ns = self.now().as_nanos();
        if let Some(tee) = self.devices.tee.take() {
            tee.end(now_ns);
        }
        self.recorded_queues()
    }

    /// Tells the recorder once a second about the path.
    fn report(&mut self) {
        let now_ns = self.now().as_nanos();
        if now_ns < self.devices.report_due_ns || self.devices.tee.is_none() {
            return;
        }
        self.devices.report_due_ns = now_ns + PATH_NS;
        let state = self.state();
        if let Some(tee) = &mut self.devices.tee {
            tee.hand_over(now_ns);
            tee.tell(Message::Path(state));
        }
    }

    /// Counters of both directions.
    fn state(&self) -> PathState {
        let mut state = PathState::default();
        for (way, totals) in state.ways.iter_mut().zip(&self.ledger().totals) {
            *way = WayState {
                bytes_out: totals.bytes_out,
                drops: totals.drops.values().sum(),
                marks: totals.marks,
                backlog_bytes: 0,
            };
        }
        let queues = self.recorded_queues();
        let times = queues.time_ns.values();
        for row in (0..times.len()).rev().take_while(|row| times.last() == Some(&times[*row])) {
            let name = &queues.link.names()[queues.link.index()[row] as usize];
            let link = name.strip_suffix(":netem").unwrap_or(name);
            let way = usize::from(self.devices.back.iter().any(|back| back == link));
            state.ways[way].backlog_bytes += queues.backlog_bytes.values()[row] as u64;
        }
        state
    }

    /// Carries what this thread's namespace, the client's, still has to send, for a while: a kernel sends on for a program that
    /// has ended.
    fn drain(&mut self, limit: Instant) {
        let until = Instant::from_nanos(self.now().as_nanos() + DRAIN_NS).min(limit);
        let mut looked = Instant::ZERO;
        while self.now() < until {
            self.round();
            if self.now().as_nanos() >= looked.as_nanos() + DRAIN_STEP_NS {
                looked = self.now();
                if !network::sends_on() && self.ledger().on_their_way(Way::BACK) == 0 {
                    break;
                }
            }
            let step = Instant::from_nanos(self.now().as_nanos() + DRAIN_STEP_NS);
            self.wait(NO_FILE, until.min(step));
        }
        self.step();
    }

    /// Ends the relay; returns its counts, if it has them.
    pub fn end_exit(&mut self, stop: Stop) -> Option<exit::Counts> {
        self.devices.exit.take()?.end(stop == Stop::Ended)
    }
}

/// The number of no file, for which poll(2) does not wait.
const NO_FILE: RawFd = -1;
