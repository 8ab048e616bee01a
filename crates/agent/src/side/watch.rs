//! The counters of a queue discipline, read once an interval.

use crate::fault::Fault;
use crate::netlink::Rtnetlink;
use crate::qdisc::{self, Counters};
use dragstrip_recording::{QueueRow, Queues};
use dragstrip_scenario::QdiscSpec;

/// A queue that is watched.
pub struct Watch<'a> {
    name: &'a str,
    pub interface: i32,
    spec: &'a QdiscSpec,
    before: Counters,
    /// Totals of disciplines that preceded this one.
    past: Past,
}

/// Totals of a discipline that has been removed.
#[derive(Default)]
struct Past {
    enqueued: u64,
    dropped: u64,
    marked: u64,
    sent_bytes: u64,
}

impl<'a> Watch<'a> {
    /// Records the counters before the traffic.
    pub fn new(
        netlink: &mut impl Rtnetlink,
        name: &'a str,
        interface: i32,
        spec: &'a QdiscSpec,
    ) -> Result<Self, Fault> {
        let before = qdisc::read(netlink, interface, spec)?;
        Ok(Self { name, interface, spec, before, past: Past::default() })
    }

    /// The discipline has been changed to this one.
    pub const fn becomes(&mut self, spec: &'a QdiscSpec) {
        self.spec = spec;
    }

    /// Accounts for the removal of the discipline: the packets it holds are dropped.
    pub fn ends(&mut self, netlink: &mut impl Rtnetlink) -> Result<(), Fault> {
        let (past, now) = self.so_far(netlink)?;
        self.past = Past { dropped: past.dropped + now.backlog_packets, ..past };
        Ok(())
    }

    /// This discipline is new here.
    pub fn begins(
        &mut self,
        netlink: &mut impl Rtnetlink,
        spec: &'a QdiscSpec,
    ) -> Result<(), Fault> {
        self.spec = spec;
        self.before = qdisc::read(netlink, self.interface, spec)?;
        Ok(())
    }

    /// All that was done here since the start, and the counters.
    fn so_far(&self, netlink: &mut impl Rtnetlink) -> Result<(Past, Counters), Fault> {
        let now = qdisc::read(netlink, self.interface, self.spec)?;
        let (past, before) = (&self.past, &self.before);
        let enqueued = now.sent + now.backlog_packets - before.sent - before.backlog_packets;
        let all = Past {
            enqueued: past.enqueued + enqueued,
            dropped: past.dropped + now.dropped - before.dropped,
            marked: past.marked + now.marked - before.marked,
            sent_bytes: past.sent_bytes + now.sent_bytes - before.sent_bytes,
        };
        Ok((all, now))
    }

    /// A row of `queues`.
    pub fn record(
        &self,
        netlink: &mut impl Rtnetlink,
        time_ns: i64,
        table: &mut Queues,
    ) -> Result<(), Fault> {
        let (all, now) = self.so_far(netlink)?;
        let row = QueueRow {
            time_ns,
            link: table.link.word(self.name),
            backlog_bytes: now.backlog_bytes as i64,
            backlog_packets: now.backlog_packets as i64,
            enqueued: all.enqueued as i64,
            dropped: all.dropped as i64,
            marked: all.marked as i64,
            sent_bytes: all.sent_bytes as i64,
        };
        table.push(row);
        Ok(())
    }
}
