//! Captures: taps in addition to the measuring one, at a host or at the near end of a link, which keep whole headers.
//!
//! Nothing of the measurement depends on them. A ring that is full loses packets, and a file that is full takes no more: both are
//! counted.

use super::Side;
use super::tap::{Head, Tap};
use crate::fault::{Fault, fault};
use dragstrip_capture::format::{INBOUND, OUTBOUND};
use dragstrip_capture::write::{File, Section};
use dragstrip_units::Instant;
use serde::{Deserialize, Serialize};

/// Bytes of all files of a run together: they are kept in memory until its end, and it may be that of an emulated machine.
const BYTES_MAX: usize = 64 << 20;
/// Packets that fit into all rings together.
const RING_PACKETS: usize = 1 << 16;
/// At least in each.
const RING_PACKETS_MIN: usize = 1 << 11;
/// A record without its frame.
const AROUND: usize = 48;

/// A request for captures.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CaptureRequest {
    /// Hosts and links.
    points: Vec<String>,
    /// Bytes kept of each frame.
    snaplen: u32,
    /// The program that writes, with its version.
    program: String,
    /// Comment on the run, stored in each file.
    comment: String,
}

/// Files of all sides; a fault if a requested vantage point has none.
pub fn collect(
    sides: &mut [Side<'_>],
    end_ns: u64,
    request: Option<&CaptureRequest>,
) -> Result<Vec<Captured>, Fault> {
    let mut files = Vec::new();
    for side in sides {
        files.extend(side.captured(end_ns)?);
    }
    request.map_or(Ok(()), |request| request.check(&files))?;
    Ok(files)
}

/// A file's description in an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Described {
    pub point: String,
    pub packets: u64,
    pub missing: u64,
}

/// A capture file.
pub struct Captured {
    pub bytes: Vec<u8>,
    pub described: Described,
}

/// Vantage point of a capture on a lab's host: a cable of the run, and the interface (ifb) at which its incoming
/// packets are delayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wire {
    pub cable: i32,
    pub delayed: Option<i32>,
}

impl Wire {
    /// The direction of a packet that the host sent or takes in here; nothing for one that is still to be delayed, or seen elsewhere.
    fn direction(self, head: &Head<'_>) -> Option<u32> {
        const IPV4: [u8; 2] = [8, 0];
        let Self { cable, delayed } = self;
        if Some(head.interface) == delayed {
            return head.outgoing.then_some(INBOUND);
        }
        let to_be_delayed =
            delayed.is_some() && !head.outgoing && head.bytes.get(12..14) == Some(&IPV4);
        let is_captured = head.interface == cable && !to_be_delayed;
        is_captured.then_some(if head.outgoing { OUTBOUND } else { INBOUND })
    }
}

/// A vantage point.
pub struct Capture {
    tap: Tap,
    /// That alone are listened at; none: all.
    wires: Vec<Wire>,
    point: String,
    file: File<Vec<u8>>,
    snaplen: usize,
    room: usize,
    packets: u64,
    missing: u64,
}

impl CaptureRequest {
    /// Lists the vantage points at a node: the index among all of them, and the interface there; 0 means all
    /// interfaces. `near_end` gives the interface of a link that begins at the node.
    pub fn at(&self, node: &str, near_end: impl Fn(&str) -> Option<i32>) -> Vec<(usize, i32)> {
        let interface = |point: &str| if point == node { Some(0) } else { near_end(point) };
        let numbered = self.points.iter().enumerate();
        numbered.filter_map(|(index, point)| Some((index, interface(point)?))).collect()
    }

    /// Opens one of them, in the namespace of this thread; of all interfaces only `wires` count, if there are any.
    pub fn open(&self, point: usize, interface: i32, wires: &[Wire]) -> Result<Capture, Fault> {
        let Self { points, snaplen, program, comment } = self;
        let packets = (RING_PACKETS / points.len().max(1)).max(RING_PACKETS_MIN);
        let description = if interface == 0 {
            "the interfaces of a host"
        } else {
            "the interface at the near end of a link, behind its queue"
        };
        let section = Section { program, comment };
        Ok(Capture {
            tap: Tap::open(packets, interface)?,
            wires: if interface == 0 { wires.to_vec() } else { Vec::new() },
            point: points[point].clone(),
            file: File::new(Vec::new(), &section, &points[point], description, *snaplen),
            snaplen: *snaplen as usize,
            room: BYTES_MAX / points.len().max(1),
            packets: 0,
            missing: 0,
        })
    }

    /// Checks that every requested vantage point was captured.
    pub fn check(&self, files: &[Captured]) -> Result<(), Fault> {
        let captured = |point: &str| files.iter().any(|file| file.described.point == point);
        match self.points.iter().find(|point| !captured(point)) {
            Some(point) => fault(format!("{point}: there is nothing to capture at")),
            None => Ok(()),
        }
    }
}

impl Capture {
    /// Takes what the tap has seen between a run's start and its end.
    pub fn drain(&mut self, start: i64, end_ns: u64) {
        let Self { tap, wires, file, snaplen, room, packets, missing, point: _ } = self;
        tap.drain_heads(|head| {
            let Head { time, outgoing, loopback, length, bytes, .. } = *head;
            let Ok(at) = u64::try_from(time - start) else { return };
            if loopback || at > end_ns {
                return;
            }
            let direction = match wires.as_slice() {
                [] => Some(if outgoing { OUTBOUND } else { INBOUND }),
                wires => wires.iter().find_map(|wire| wire.direction(head)),
            };
            let Some(direction) = direction else { return };
            let bytes = &bytes[..bytes.len().min(*snaplen)];
            let Some(free) = room.checked_sub(AROUND + bytes.len()) else {
                *missing += 1;
                return;
            };
            *room = free;
            *packets += 1;
            file.add_bytes(Instant::from_nanos(at), direction, length, bytes);
        });
    }

    /// Its file.
    pub fn finish(mut self, start: i64, end_ns: u64) -> Result<Captured, Fault> {
        self.drain(start, end_ns);
        let Self { tap, point, mut file, packets, missing, .. } = self;
        let missing = missing + tap.dropped_packets()?;
        file.note_missing(missing);
        let bytes = file.finish(Instant::from_nanos(end_ns))?;
        Ok(Captured { bytes, described: Described { point, packets, missing } })
    }
}
