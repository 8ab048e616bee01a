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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::qdisc::tests::{Table, VETH, installed, statistics};
    use dragstrip_recording::{Data, Recording, Writer};

    fn counters(sent: u64, dropped: u64, backlog_packets: u64) -> Counters {
        Counters {
            backlog_bytes: 1_500 * backlog_packets,
            backlog_packets,
            sent,
            dropped,
            marked: 0,
            sent_bytes: 1_500 * sent,
        }
    }

    /// A kernel's discipline with these counters.
    fn kernel(spec: &QdiscSpec, now: Counters) -> Table {
        let mut table = installed(spec);
        table.statistics = statistics(&now);
        table
    }

    fn column(recording: &Recording, name: &str) -> Data {
        let table = recording.table("queues").unwrap();
        table.columns.iter().find(|column| column.name == name).unwrap().data.clone()
    }

    #[test]
    fn rows_count_from_the_start_and_across_a_replaced_discipline() {
        let [first, second] =
            ["pfifo limit 9", "bfifo limit 9000"].map(|text| QdiscSpec::parse(text).unwrap());
        let mut writer = Writer::default();
        // Before the traffic, 10 packets were sent and one dropped.
        let mut watch =
            Watch::new(&mut kernel(&first, counters(10, 1, 0)), "l", VETH, &first).unwrap();
        let mut busy = kernel(&first, counters(14, 3, 2));
        watch.record(&mut busy, 1, &mut writer.queues).unwrap();
        // Two packets wait when the discipline is removed: they are dropped.
        watch.ends(&mut busy).unwrap();
        watch.begins(&mut kernel(&second, counters(0, 0, 0)), &second).unwrap();
        watch.record(&mut kernel(&second, counters(5, 1, 1)), 2, &mut writer.queues).unwrap();
        let recording = writer.finish();
        for (name, expected) in [
            ("backlog_packets", [2, 1]),
            ("backlog_bytes", [3_000, 1_500]),
            ("enqueued", [4 + 2, 6 + 5 + 1]),
            ("dropped", [2, 2 + 2 + 1]),
            ("sent_bytes", [6_000, 6_000 + 7_500]),
        ] {
            assert_eq!(column(&recording, name), Data::Int(expected.to_vec().into()), "{name}");
        }
    }
}
