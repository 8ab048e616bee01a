//! Captures: taps beside the one that measures, at a host or at the near end of a link, of which whole heads are kept.
//!
//! Nothing of the measurement depends on them. A ring that is full loses packets, and a file that is full takes no more: both are
//! counted.

use super::tap::{Head, Tap};
use crate::fault::{Fault, fault};
use crate::plan::Plan;
use dragstrip_capture::format::{INBOUND, OUTBOUND};
use dragstrip_capture::write::{File, Section};
use dragstrip_units::Instant;
use serde::Deserialize;
use serde_json::{Value, json};

/// Bytes of all files of a run together: they are kept in memory until its end, and it may be that of an emulated machine.
const BYTES_MAX: usize = 64 << 20;
/// Packets that fit into all rings together.
const RING_PACKETS: usize = 1 << 16;
/// At least in each.
const RING_PACKETS_MIN: usize = 1 << 11;
/// A record without its frame.
const AROUND: usize = 48;

/// What is asked for.
#[derive(Deserialize)]
pub struct Wanted {
    /// Hosts and links.
    points: Vec<String>,
    /// Bytes kept of each frame.
    snaplen: u32,
    /// The program that writes, with its version.
    program: String,
    /// What each file says of the run.
    comment: String,
}

/// One file.
pub struct Captured {
    pub bytes: Vec<u8>,
    point: String,
    packets: u64,
    missing: u64,
}

impl Captured {
    /// What the answer says of it.
    pub fn describe(&self) -> Value {
        let Self { bytes: _, point, packets, missing } = self;
        json!({"point": point, "packets": packets, "missing": missing})
    }
}

/// A vantage point.
pub struct Capture {
    tap: Tap,
    point: String,
    file: File<Vec<u8>>,
    snaplen: usize,
    room: usize,
    packets: u64,
    missing: u64,
}

impl Wanted {
    /// Of each vantage point at a node: its place among all of them, and the interface there; 0 stands for all.
    pub fn at(&self, node: usize, plan: &Plan, interfaces: &[i32]) -> Vec<(usize, i32)> {
        let near_end = |point: &String| {
            let hop = plan.hops.iter().position(|hop| hop.near_end_of.as_ref() == Some(point))?;
            (plan.hops[hop].from == node).then(|| interfaces[hop])
        };
        let of = |(index, point): (usize, &String)| {
            if plan.nodes[node].name == *point {
                return Some((index, 0));
            }
            near_end(point).map(|interface| (index, interface))
        };
        self.points.iter().enumerate().filter_map(of).collect()
    }

    /// Opens one of them, in the namespace of this thread.
    pub fn open(&self, point: usize, interface: i32) -> Result<Capture, Fault> {
        let Self { points, snaplen, program, comment } = self;
        let packets = (RING_PACKETS / points.len().max(1)).max(RING_PACKETS_MIN);
        let what = if interface == 0 {
            "the interfaces of a host"
        } else {
            "the interface at the near end of a link, behind its queue"
        };
        let section = Section { program, comment };
        Ok(Capture {
            tap: Tap::open(packets, interface)?,
            point: points[point].clone(),
            file: File::new(Vec::new(), &section, &points[point], what, *snaplen),
            snaplen: *snaplen as usize,
            room: BYTES_MAX / points.len().max(1),
            packets: 0,
            missing: 0,
        })
    }

    /// Whether all of them were there.
    pub fn check(&self, found: &[Captured]) -> Result<(), Fault> {
        match self.points.iter().find(|point| !found.iter().any(|it| it.point == **point)) {
            Some(point) => fault(format!("{point}: there is nothing to capture at")),
            None => Ok(()),
        }
    }
}

impl Capture {
    /// Takes what the tap has seen between a run's start and its end.
    pub fn drain(&mut self, start: i64, end_ns: u64) {
        let Self { tap, file, snaplen, room, packets, missing, point: _ } = self;
        tap.drain_heads(|head| {
            let Head { time, outgoing, loopback, length, bytes } = *head;
            let Ok(at) = u64::try_from(time - start) else { return };
            if loopback || at > end_ns {
                return;
            }
            let bytes = &bytes[..bytes.len().min(*snaplen)];
            let Some(left) = room.checked_sub(AROUND + bytes.len()) else {
                *missing += 1;
                return;
            };
            *room = left;
            *packets += 1;
            let direction = if outgoing { OUTBOUND } else { INBOUND };
            file.add_bytes(Instant::from_nanos(at), direction, length, bytes);
        });
    }

    /// Its file.
    pub fn finish(mut self, start: i64, end_ns: u64) -> Result<Captured, Fault> {
        self.drain(start, end_ns);
        let Self { tap, point, mut file, packets, missing, .. } = self;
        let missing = missing + tap.lost()?;
        file.note_missing(missing);
        let bytes = file.finish(Instant::from_nanos(end_ns))?;
        Ok(Captured { bytes, point, packets, missing })
    }
}
