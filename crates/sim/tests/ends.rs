//! `record.captures`: the results of SPP and tcpstat on the captures at both ends of a flow, compared with the run's
//! own state.

use dragstrip_recording::{Data, Recording};
use dragstrip_scenario::{LinkSpec, PfifoSpec, QdiscSpec, Scenario};
use dragstrip_testkit::path::{dumbbell, flow, link, ping};
use std::collections::BTreeMap;

const MS: u64 = 1_000_000;

fn numbers<'a>(recording: &'a Recording, table: &str, name: &str) -> &'a [i64] {
    let table = recording.table(table).expect("a table");
    let column = table.columns.iter().find(|column| column.name == name).expect("a column");
    let Data::Int(values) = &column.data else { panic!("{name} holds no numbers") };
    values
}

/// Rows of a flow: what two columns hold.
fn rows(recording: &Recording, table: &str, names: [&str; 2], flow: i64) -> Vec<[i64; 2]> {
    let flows = numbers(recording, table, "flow");
    let columns = names.map(|name| numbers(recording, table, name));
    let flow_rows = (0..flows.len()).filter(|row| flows[*row] == flow);
    flow_rows.map(|row| columns.map(|column| column[row])).collect()
}

/// Two flows that share 5 Mbit/s, 40 ms away, and lose what does not fit.
fn scenario() -> Scenario {
    let queue = QdiscSpec::from(PfifoSpec { limit_packets: 30 });
    let bottleneck = LinkSpec { rate_bps: Some(5_000_000), qdisc: queue, ..link("r", "d") };
    let mut scenario = dumbbell(2, bottleneck, 40 * MS, 8);
    for name in ["s0-r", "s1-r"] {
        let access = scenario.links.iter_mut().find(|link| link.name == name).expect("a link");
        access.rate_bps = None;
    }
    scenario.flows.extend([flow("s0", "d", "cubic"), flow("s1", "d", "reno")]);
    scenario.probes.push(ping("d", "s0"));
    scenario
}

fn captured() -> Recording {
    let mut scenario = scenario();
    scenario.record.captures = true;
    dragstrip_sim::run(&scenario, &mut |_| true).expect("a valid scenario")
}

/// Nothing waits at the senders, so that what passes between a packet's leaving and its answer's arrival is the sender's own RTT
/// sample: SPP's round trip and the receiver's time, to the microseconds that captures have.
#[test]
fn a_round_trip_is_the_sender_s_sample_without_the_receiver_s_time() {
    let recording = captured();
    for flow in [0, 1] {
        // A sender may take two samples at one instant, of two ACKs.
        let mut samples: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
        for [at, rtt] in rows(&recording, "rtts", ["time_ns", "rtt_ns"], flow) {
            samples.entry(at / 1_000).or_default().push(rtt);
        }
        let trips = rows(&recording, "spp", ["time_ns", "rtt_ns"], flow);
        let processing = rows(&recording, "spp", ["processing_ns", "rtt_ns"], flow);
        assert!(trips.len() > 700, "{}", trips.len());
        let mut compared = 0;
        for ([middle, rtt], [processing_us, _]) in trips.iter().zip(&processing) {
            let interval = rtt + processing_us;
            let answered = (middle + interval / 2) / 1_000;
            let near = samples.range(answered - 1..=answered + 1).flat_map(|(_, rtts)| rtts);
            let Some(nearest) = near.min_by_key(|sample| (*sample - interval).abs()) else {
                continue; // ACKs of data sent again give no sample
            };
            // During recovery the sender measures by time stamps, which tick every millisecond.
            let ticks = nearest % MS as i64 == 0;
            let off = if ticks { MS as i64 } else { 2_000 };
            assert!((nearest - interval).abs() <= off, "{nearest} {interval} at {middle}");
            compared += usize::from(!ticks);
        }
        assert!(compared * 10 > trips.len() * 9, "{compared} of {}", trips.len());
        // The receiver answers at once, or waits for a second segment: 40 ms, and a tick of its clock (250 Hz).
        let most = processing.iter().map(|[processing_us, _]| *processing_us).max();
        assert!(most <= Some(44_000_000), "{most:?}");
        assert!(processing.iter().any(|[processing_us, _]| *processing_us == 0));
    }
}

/// The way is 40 ms and a frame at 5 Mbit/s; what waits in front of it are 30 frames at most.
#[test]
fn round_trips_are_those_that_the_path_allows() {
    let recording = captured();
    let frame = 1_514 * 8 * 1_000_000_000 / 5_000_000;
    for flow in [0, 1] {
        let trips = rows(&recording, "spp", ["time_ns", "rtt_ns"], flow);
        let data = trips.iter().map(|[_, rtt]| *rtt).filter(|rtt| *rtt > 41 * MS as i64);
        let (least, most) =
            data.fold((i64::MAX, 0), |(low, high), rtt| (low.min(rtt), high.max(rtt)));
        assert!(least >= 40 * MS as i64 + frame - 2_000, "{least}");
        assert!(
            most > 40 * MS as i64 + 28 * frame && most <= 40 * MS as i64 + 31 * frame + 2_000,
            "{most}"
        );
    }
}

/// IP's bytes are those of the frames without their 14 bytes of Ethernet.
#[test]
fn bytes_are_those_that_arrived() {
    let recording = captured();
    for flow in [0, 1] {
        let seconds = rows(&recording, "tcpstat", ["time_ns", "ip_bytes"], flow);
        let received = rows(&recording, "received", ["time_ns", "wire_bytes"], flow);
        let whole: i64 = received.iter().map(|row| row[1]).sum();
        let total_bytes: i64 = seconds.iter().map(|row| row[1]).sum();
        let frames = whole / 1_514;
        assert_eq!(whole % 1_514, 0);
        // SYN (60 bytes) and the ACK after it (52) carry no data; the interval in which the run ends is not closed.
        let open = total_bytes - 112 - (whole - 14 * frames);
        assert!(open >= 0 && open % 1_500 == 0 && open < 65_000, "{open}");
        assert!(seconds.windows(2).all(|pair| pair[1][0] - pair[0][0] == 1_000_000_000));
        assert_eq!(seconds.len(), 8);
    }
}

#[test]
fn captures_change_nothing_else_and_are_the_same_every_time() {
    let (first, two) = (captured(), captured());
    let bare = dragstrip_sim::run(&scenario(), &mut |_| true).expect("a valid scenario");
    assert_eq!(first.sha256(), two.sha256());
    for (with, without) in first.tables.iter().zip(&bare.tables) {
        let is_same = format!("{with:?}") == format!("{without:?}");
        assert_eq!(is_same, !["spp", "tcpstat"].contains(&with.name), "{}", with.name);
    }
    assert!(
        numbers(&bare, "spp", "flow").is_empty() && numbers(&bare, "tcpstat", "flow").is_empty()
    );
}
