//! Messages between a conductor and a side: plain values, so that the two may be in one process or on two
//! machines.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// From the conductor to a side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Order {
    /// The run begins at this time of the side's clock, in nanoseconds.
    Begin { start: i64 },
    /// All that a flow had to send has arrived, this far into the run.
    Arrived { flow: usize, at_ns: i64 },
}

/// From a side to the conductor, which passes it on to the other end of the flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Notice {
    /// All that a flow had to send has arrived here, this far into the run.
    Arrived { flow: usize, at_ns: i64 },
}

/// TCP's counters by name (netstat -s).
pub type Counts = BTreeMap<String, u64>;

/// A side's results besides the rows of its tables.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    pub ends: Vec<EndReport>,
    /// Counters of this host's TCP over the run, if it has an end of a TCP flow.
    pub counts: Option<Counts>,
}

/// Results of one end of a flow.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EndReport {
    pub flow: usize,
    /// Time at which the flow ended, if this end knows it.
    pub ended_ns: Option<i64>,
    /// Datagrams sent or received.
    pub datagrams: u64,
    /// Bytes that came to the application, where the flow's data arrive.
    pub received_bytes: Option<u64>,
    /// Bytes on the wire that a program's client sent.
    #[serde(default)]
    pub client_wire_bytes: Option<u64>,
    /// Sender statistics, if the flow's data leave here over TCP.
    pub sent: Option<Sent>,
}

/// Final statistics of a sending TCP.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sent {
    pub bytes_acked: u64,
    pub segments: u64,
    pub retransmits: u64,
    pub ecn: bool,
    pub seen_cwr: u64,
    pub seen_reductions: u64,
    pub acks_together: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nothing in a message is bound to a process.
    #[test]
    fn a_report_survives_the_way_through_text() {
        let counts = Some(Counts::from([("TCPTimeouts".to_owned(), 2)]));
        let sender_stats = Some(Sent { bytes_acked: 7, ecn: true, ..Sent::default() });
        let end =
            EndReport { flow: 1, ended_ns: Some(5), sent: sender_stats, ..EndReport::default() };
        let report = Report { ends: vec![end], counts };
        let text = serde_json::to_string(&report).unwrap();
        assert_eq!(serde_json::from_str::<Report>(&text).unwrap(), report);
        let order = Order::Arrived { flow: 3, at_ns: 9 };
        let text = serde_json::to_string(&order).unwrap();
        assert_eq!(serde_json::from_str::<Order>(&text).unwrap(), order);
    }
}
