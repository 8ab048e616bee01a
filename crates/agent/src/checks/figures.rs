//! Path figures computed from the arrivals of a probe stream.

use serde::{Deserialize, Serialize};

/// The share of a thick stream's arrivals that is not counted: buckets are full at first, and the queue is filling.
const WARM_UP: f64 = 0.2;
/// Quantile of the waits that counts as a full queue: the last packet accepted of a burst met the queue full.
const FULL: f64 = 0.9;

/// ARP, spanning tree and LLDP stay below it.
const FOREIGN_BPS_MAX: f64 = 10e3;

/// One quantity of a path: its configured value, its measured value, and the accepted range.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Check {
    /// `s1 to d`.
    pub path: String,
    pub what: &'static str,
    pub unit: &'static str,
    pub asked: f64,
    pub measured: f64,
    pub least: f64,
    pub most: f64,
}

impl Check {
    /// The idle round trip of a path, in microseconds; it is given in nanoseconds.
    pub fn idle(path: &str, asked_ns: i64, measured_ns: i64, limits_ns: [i64; 2]) -> Self {
        let [configured, measured, least, most] =
            [asked_ns, measured_ns, limits_ns[0], limits_ns[1]].map(|ns| ns as f64 / 1e3);
        let (quantity, unit) = ("idle round trip", "us");
        Self {
            path: path.to_owned(),
            what: quantity,
            unit,
            asked: configured,
            measured,
            least,
            most,
        }
    }

    /// The rate that an interface carried in both directions while no run was sending.
    pub fn foreign(interface: String, bytes: u64, span_ns: i64) -> Self {
        let measured = bytes as f64 * 8e9 / span_ns.max(1) as f64;
        let (quantity, unit) = ("foreign traffic", "bit/s");
        Self {
            path: interface,
            what: quantity,
            unit,
            asked: 0.0,
            measured,
            least: 0.0,
            most: FOREIGN_BPS_MAX,
        }
    }
}

/// Pings of one idle path. The fastest answer reveals a missing delay; a slow one may only show a busy machine, so the
/// median is compared with the upper limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoundTrips {
    pub best_ns: i64,
    /// Half of the answers took no longer, half took no less.
    pub median_ns: i64,
}

impl RoundTrips {
    /// Nothing where no ping was answered.
    pub fn of(mut answers_ns: Vec<i64>) -> Option<Self> {
        answers_ns.sort_unstable();
        let (&best_ns, &median_ns) = (answers_ns.first()?, answers_ns.get(answers_ns.len() / 2)?);
        Some(Self { best_ns, median_ns })
    }

    /// Tolerance of an idle round trip above its configured delays: 2 %, 1 ms, and the pings' serialisation time.
    pub const fn slack_ns(delays_ns: i64, serialisation_ns: i64) -> i64 {
        delays_ns / 50 + 1_000_000 + serialisation_ns
    }
}

/// A datagram that has arrived.
#[derive(Clone, Copy, Debug)]
pub struct Arrived {
    /// Sequence number within the stream.
    pub number: usize,
    pub sent_ns: i64,
    pub time_ns: i64,
    /// Headers included.
    pub bytes: u32,
    /// Its traffic class.
    pub class: Option<u8>,
}

/// Datagrams of a stream that did not arrive.
pub fn lost_count(sent_count: usize, stream: &[Arrived]) -> usize {
    sent_count - distinct(stream)
}

/// Datagrams that arrived more than once.
pub fn duplicates(stream: &[Arrived]) -> usize {
    stream.len() - distinct(stream)
}

fn distinct(stream: &[Arrived]) -> usize {
    let mut numbers: Vec<usize> = stream.iter().map(|arrival| arrival.number).collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers.len()
}

/// Datagrams that arrived after one that was sent later.
pub fn reordered(stream: &[Arrived]) -> usize {
    let mut last = 0;
    let late = stream.iter().filter(|arrival| {
        let late = arrival.number < last;
        last = last.max(arrival.number);
        late
    });
    late.count()
}

/// Bit/s at which frames of so many bytes came while the queue was kept full; none of too few.
pub fn rate_bps(stream: &[Arrived], frame_bytes: u32) -> Option<f64> {
    let (first, last) = (stream.first()?.time_ns, stream.last()?.time_ns);
    let from = first + ((last - first) as f64 * WARM_UP) as i64;
    let steady_part = &stream[stream.partition_point(|arrival| arrival.time_ns < from)..];
    let span_ns = last - steady_part.first()?.time_ns;
    let frames = steady_part.len().checked_sub(1)?;
    (span_ns > 0).then(|| frames as f64 * f64::from(frame_bytes) * 8e9 / span_ns as f64)
}

/// Frames that waited in the full queue, which sends one in `frame_ns`; the stream's first met it empty.
pub fn waiting(stream: &[Arrived], frame_ns: f64) -> Option<f64> {
    let wait = |arrival: &Arrived| arrival.time_ns - arrival.sent_ns;
    let idle_ns = wait(stream.iter().find(|arrival| arrival.number == 0)?);
    let mut waits: Vec<i64> = stream[stream.len() / 2..].iter().map(wait).collect();
    waits.sort_unstable();
    let full_ns = waits.get((waits.len() as f64 * FULL) as usize)? - idle_ns;
    Some(full_ns as f64 / frame_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers as they arrive, a frame of 1000 bytes each millisecond: 8 Mbit/s.
    fn arrivals(numbers: &[usize]) -> Vec<Arrived> {
        let arrival = |(at, number): (usize, &usize)| Arrived {
            number: *number,
            sent_ns: 0,
            time_ns: at as i64 * 1_000_000,
            bytes: 986,
            class: Some(0),
        };
        numbers.iter().enumerate().map(arrival).collect()
    }

    #[test]
    fn a_path_is_judged_by_its_usual_round_trip() {
        let mut answers = vec![9, 2, 9, 9, 9, 9, 2, 9, 2, 2];
        let trips = RoundTrips::of(answers.clone()).unwrap();
        assert_eq!((trips.best_ns, trips.median_ns), (2, 9), "six of ten were late");
        answers[0] = 2;
        answers[2] = 2;
        assert_eq!(RoundTrips::of(answers).unwrap().median_ns, 2, "four of ten");
        assert_eq!(RoundTrips::of(vec![7]).unwrap(), RoundTrips { best_ns: 7, median_ns: 7 });
        assert_eq!(RoundTrips::of(Vec::new()), None);
    }

    #[test]
    fn foreign_traffic_on_a_cable_is_detected() {
        let check = |bytes| Check::foreign("host center: eth1".to_owned(), bytes, 2_000_000_000);
        assert!((check(250).measured - 1e3).abs() < 1e-9);
        assert!(check(250).measured < check(250).most, "a few ARP requests");
        assert!(check(25_000).measured > check(25_000).most, "100 kbit/s");
    }

    #[test]
    fn each_packet_is_counted_once() {
        let stream = arrivals(&[0, 1, 4, 3, 3, 5]);
        assert_eq!((lost_count(7, &stream), duplicates(&stream), reordered(&stream)), (2, 1, 2));
        let stream = arrivals(&[0, 1, 2]);
        assert_eq!((lost_count(3, &stream), duplicates(&stream), reordered(&stream)), (0, 0, 0));
    }

    #[test]
    fn a_rate_is_of_frames_after_the_first_fifth() {
        let mut stream = arrivals(&(0..1000).collect::<Vec<_>>());
        let steady = rate_bps(&stream, 1000).unwrap();
        assert!((steady / 8e6 - 1.0).abs() < 1e-9, "{steady}");
        for arrival in &mut stream[..100] {
            arrival.time_ns /= 10; // a bucket that was full
        }
        let bursty = rate_bps(&stream, 1000).unwrap();
        assert!((bursty / 8e6 - 1.0).abs() < 1e-9, "{bursty}");
        assert_eq!((rate_bps(&stream[..1], 1000), rate_bps(&[], 1000)), (None, None));
    }

    #[test]
    fn a_buffer_is_what_waited_in_front_of_a_packet() {
        // Twenty in the queue: each is sent when the one twenty places before it leaves.
        let mut stream = arrivals(&(0..500).collect::<Vec<_>>());
        for arrival in &mut stream {
            arrival.sent_ns = (arrival.time_ns - 20_000_000).max(0);
        }
        assert_eq!(waiting(&stream, 1e6), Some(20.0));
        assert_eq!(waiting(&[], 1e6), None);
    }
}
