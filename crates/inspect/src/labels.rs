//! Labels of other tools: Wireshark's and tcptrace's for the same packets, with every event.

use crate::tcptrace::{Count, Counts, Tcptrace};
use crate::verdicts::{Judged, SegmentVerdict};
use crate::wireshark::{self, Call, Wireshark};
use dragstrip_capture::read::Packet;
use serde::Serialize;
use std::collections::BTreeMap;

/// Events of a connection in a capture that are kept.
const EVENTS_MAX: usize = 1 << 20;

/// Other tools' labels for a connection in one capture.
#[derive(Debug, Default)]
pub struct Labels {
    wireshark: Wireshark,
    tcptrace: Tcptrace,
    called: [Vec<Called>; 2],
}

/// Other tools' labels for a packet.
#[derive(Clone, Copy, Debug)]
struct Called {
    at: i64,
    seq: u32,
    bytes: u32,
    wireshark: Option<Call>,
    tcptrace: Option<Count>,
}

/// Other tools' results for a flow.
#[derive(Debug, Serialize)]
pub struct Others {
    /// By Wireshark's labels.
    pub wireshark: wireshark::Labels,
    /// By tcptrace's counts.
    pub tcptrace: Counts,
}

/// A data segment that at least one tool labels as other than new.
#[derive(Debug, Serialize)]
pub struct Event {
    /// The flow's number.
    pub flow: u64,
    /// Time, nanoseconds since the epoch.
    pub time_ns: i64,
    /// Its sequence number.
    pub seq: u32,
    /// Its data.
    pub bytes: u32,
    /// Ours, by this capture alone; null: new.
    pub one: Option<SegmentVerdict>,
    /// Ours, by two captures.
    pub two: Option<SegmentVerdict>,
    /// Wireshark's.
    pub wireshark: Option<Call>,
    /// tcptrace's.
    pub tcptrace: Option<Count>,
}

impl Labels {
    /// A packet of a direction, copies of frames included.
    pub fn take(&mut self, packet: &Packet, side: usize) {
        let wireshark = self.wireshark.take(packet, side);
        let tcptrace = self.tcptrace.take(packet, side);
        let is_labelled = wireshark.is_some() || tcptrace.is_some();
        if is_labelled && packet.payload > 0 && self.called[side].len() < EVENTS_MAX {
            let Packet { time_ns: at, seq, payload: bytes, .. } = *packet;
            self.called[side].push(Called { at, seq, bytes, wireshark, tcptrace });
        }
    }

    /// Other tools' results for a direction.
    pub fn results(&self, side: usize) -> Others {
        Others { wireshark: self.wireshark.labels(side), tcptrace: self.tcptrace.counts(side) }
    }

    /// Each event of a direction, in the order of time.
    pub fn events(
        &self,
        flow: u64,
        side: usize,
        one: &[Judged],
        at_receiver: bool,
        two: &[Judged],
    ) -> Vec<Event> {
        let mut all: BTreeMap<(i64, u32), Event> = BTreeMap::new();
        let new = |at: i64, seq: u32| Event {
            flow,
            time_ns: at,
            seq,
            bytes: 0,
            one: None,
            two: None,
            wireshark: None,
            tcptrace: None,
        };
        for called in &self.called[side] {
            let event =
                all.entry((called.at, called.seq)).or_insert_with(|| new(called.at, called.seq));
            event.bytes = called.bytes;
            (event.wireshark, event.tcptrace) = (called.wireshark, called.tcptrace);
        }
        for judged in one {
            let event =
                all.entry((judged.at, judged.seq)).or_insert_with(|| new(judged.at, judged.seq));
            event.one = Some(judged.verdict);
        }
        if at_receiver {
            // All that comes twice to a receiver was sent once too often (`result.rs`).
            let twice = |event: &&mut Event| event.tcptrace == Some(Count::Rexmt);
            all.values_mut()
                .filter(twice)
                .for_each(|event| event.one = Some(SegmentVerdict::Spurious));
        }
        for judged in two {
            let event =
                all.entry((judged.at, judged.seq)).or_insert_with(|| new(judged.at, judged.seq));
            event.two = Some(judged.verdict);
        }
        all.into_values().collect()
    }
}
