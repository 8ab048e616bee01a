//! Bytes, packets, drops and marks of both directions.

use crate::fault::Fault;
use crate::network;
use dragstrip_recording::{Data, Recording};
use dragstrip_scenario::{FULL_FRAME_BYTES, Scenario};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;

/// Totals of an end's interfaces (Documentation/networking/statistics.rst); bytes are those of IP packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    packets_in: u64,
    bytes_in: u64,
    packets_out: u64,
    bytes_out: u64,
}

impl Counters {
    /// Counters of an end's namespace.
    pub fn read(end: &fs::File) -> Result<Self, Fault> {
        let text = network::within(end, || fs::read_to_string("/proc/thread-self/net/dev"))?;
        Ok(Self::parse(&text?))
    }

    /// Each line after the first two: a name, eight columns of what came in, and eight of what went out.
    fn parse(text: &str) -> Self {
        const ETHERNET_BYTES: u64 = 14;
        let mut all = Self::default();
        for line in text.lines().skip(2) {
            let Some((name, columns)) = line.split_once(':') else { continue };
            if name.trim() == "lo" {
                continue;
            }
            let columns: Vec<u64> =
                columns.split_whitespace().filter_map(|word| word.parse().ok()).collect();
            let column = |index: usize| columns.get(index).copied().unwrap_or_default();
            all.packets_in += column(1);
            all.bytes_in += column(0).saturating_sub(ETHERNET_BYTES * column(1));
            all.packets_out += column(9);
            all.bytes_out += column(8).saturating_sub(ETHERNET_BYTES * column(9));
        }
        all
    }

    /// Increments since an earlier reading.
    pub const fn since(&self, before: &Self) -> Self {
        Self {
            packets_in: self.packets_in - before.packets_in,
            bytes_in: self.bytes_in - before.bytes_in,
            packets_out: self.packets_out - before.packets_out,
            bytes_out: self.bytes_out - before.bytes_out,
        }
    }
}

/// Both directions: what entered at one end, what left at the other, and drops and marks of the queues in between.
pub fn directions(
    scenario: &Scenario,
    ends: &[String; 2],
    increments: &[Counters; 2],
    recording: &Recording,
) -> Result<Vec<Value>, Fault> {
    let pair = [(ends[0].as_str(), ends[1].as_str())];
    let facts = scenario.path_facts(pair, FULL_FRAME_BYTES);
    let facts = facts.map_err(|problem| Fault::Failed(problem.to_string()))?;
    let is_back = |queue: &str| {
        let link = queue.split(':').next().unwrap_or_default();
        facts.iter().any(|facts| facts.back.iter().any(|name| name == link))
    };
    let queues = totals(recording);
    let direction = |name: &str, from: &Counters, to: &Counters, back: bool| {
        let here = || queues.iter().filter(|(queue, _)| is_back(queue) == back);
        let drops: BTreeMap<&String, i64> = here()
            .map(|(queue, all)| (queue, all.dropped))
            .filter(|(_, count)| *count > 0)
            .collect();
        json!({
            "direction": name,
            "packets_in": from.packets_out,
            "bytes_in": from.bytes_out,
            "packets_out": to.packets_in,
            "bytes_out": to.bytes_in,
            "drops": drops,
            "marks": here().map(|(_, all)| all.marked).sum::<i64>(),
        })
    };
    let [server, client] = increments;
    Ok(vec![direction("down", server, client, false), direction("up", client, server, true)])
}

#[derive(Clone, Copy, Debug, Default)]
struct Queue {
    dropped: i64,
    marked: i64,
}

/// Each watched queue's last row.
fn totals(recording: &Recording) -> BTreeMap<String, Queue> {
    let mut totals = BTreeMap::new();
    let Some(table) = recording.table("queues") else { return totals };
    let column = |name: &str| {
        table.columns.iter().find(|column| column.name == name).map(|column| &column.data)
    };
    if let (Some(Data::Text { names, index }), Some(Data::Int(dropped)), Some(Data::Int(marked))) =
        (column("link"), column("dropped"), column("marked"))
    {
        for ((&link, &dropped), &marked) in index.iter().zip(dropped.iter()).zip(marked.iter()) {
            totals.insert(names[link as usize].clone(), Queue { dropped, marked });
        }
    }
    totals
}

#[cfg(test)]
mod tests {
    use super::Counters;

    #[test]
    fn an_end_counts_its_ip_bytes_and_not_its_loopback() {
        let text = "Inter-| Receive | Transmit\n face |bytes packets ...\n    \
            lo: 999 9 0 0 0 0 0 0 999 9 0 0 0 0 0 0\n    \
            v0: 1514 1 0 0 0 0 0 0 132 2 0 0 0 0 0 0\n";
        let counters = Counters::parse(text);
        let expected = Counters { packets_in: 1, bytes_in: 1500, packets_out: 2, bytes_out: 104 };
        assert_eq!(counters, expected);
        assert_eq!(counters.since(&counters), Counters::default());
    }
}
