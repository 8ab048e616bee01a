//! The counters of a queue discipline, read once an interval.

use crate::fault::Fault;
use crate::netlink::Socket;
use crate::qdisc::{self, Counters};
use dragstrip_recording::{QueueRow, Queues};
use dragstrip_scenario::QdiscSpec;

/// A queue that is watched.
pub struct Watch<'a> {
    name: &'a str,
    interface: i32,
    spec: &'a QdiscSpec,
    before: Counters,
}

impl<'a> Watch<'a> {
    /// Notes how the counters stand before the traffic.
    pub fn new(
        netlink: &mut Socket,
        name: &'a str,
        interface: i32,
        spec: &'a QdiscSpec,
    ) -> Result<Self, Fault> {
        let before = qdisc::read(netlink, interface, spec)?;
        Ok(Self { name, interface, spec, before })
    }

    /// A row of `queues`.
    pub fn record(
        &self,
        netlink: &mut Socket,
        time_ns: i64,
        table: &mut Queues,
    ) -> Result<(), Fault> {
        let now = qdisc::read(netlink, self.interface, self.spec)?;
        let before = &self.before;
        let enqueued = now.sent + now.backlog_packets - before.sent - before.backlog_packets;
        let row = QueueRow {
            time_ns,
            link: table.link.word(self.name),
            backlog_bytes: now.backlog_bytes as i64,
            backlog_packets: now.backlog_packets as i64,
            enqueued: enqueued as i64,
            dropped: (now.dropped - before.dropped) as i64,
            marked: (now.marked - before.marked) as i64,
            sent_bytes: (now.sent_bytes - before.sent_bytes) as i64,
        };
        table.push(row);
        Ok(())
    }
}
