//! The path of a test: times, losses and marks of datagrams, and rivals as in any run.

use dragstrip_strip::{Arrival, Datagram, Ecn, End, Strip};
use std::time::Duration;

const PATH: [(&str, &str); 3] = [("rate", "10mbit"), ("rtt", "40ms"), ("duration", "20s")];

fn datagram(len: usize, ecn: Ecn) -> Datagram {
    Datagram { payload: vec![7; len], ecn }
}

/// Every arrival until the end of the path.
fn arrivals(strip: &mut Strip) -> Vec<Arrival> {
    let mut list = Vec::new();
    while let Some(due) = strip.next_event() {
        strip.advance(due);
        list.extend(std::iter::from_fn(|| strip.receive()));
    }
    list
}

#[test]
fn a_datagram_takes_the_delay_and_its_own_time_on_the_line() {
    let mut strip = Strip::new(&PATH, &[], 1).expect("a path");
    strip.advance(Duration::from_secs(1));
    for _ in 0..9 {
        strip.send(End::Client, datagram(1_472, Ecn::NotEct));
    }
    strip.send(End::Server, datagram(100, Ecn::NotEct));
    let list = arrivals(&mut strip);
    let times_ms = |to: End| -> Vec<f64> {
        let of_end = list.iter().filter(|arrival| arrival.to == to);
        of_end.map(|arrival| (arrival.at - Duration::from_secs(1)).as_secs_f64() * 1e3).collect()
    };
    let (there, back) = (times_ms(End::Server), times_ms(End::Client));
    assert_eq!((there.len(), back.len()), (9, 1));
    assert!((40.0..40.2).contains(&back[0]), "{back:?}");
    // The shaper's bucket lets the first leave at once; then 1,514 bytes at 10 Mbit/s take 1.211 ms.
    assert!(there[0] < 0.1, "{there:?}");
    assert!((there[8] - there[7] - 1.2112).abs() < 0.001, "{there:?}");
}

#[test]
fn a_full_queue_drops_and_a_short_one_marks() {
    let send = |queue: &str, ecn: Ecn| {
        let options = [PATH[0], PATH[1], PATH[2], ("queue", queue)];
        let mut strip = Strip::new(&options, &[], 1).expect("a path");
        for millisecond in 0..500 {
            strip.advance(Duration::from_millis(millisecond));
            strip.send(End::Client, datagram(1_472, ecn));
            strip.send(End::Client, datagram(1_472, ecn));
        }
        let list = arrivals(&mut strip);
        (strip.totals(End::Server), list)
    };
    let (full, list) = send("bfifo limit 50kb", Ecn::NotEct);
    assert_eq!(full.sent, 1_000);
    assert_eq!(full.arrived + full.dropped, 1_000);
    assert_eq!(full.arrived as usize, list.len());
    assert!(full.dropped > 400 && full.marked == 0, "{full:?}");
    let (marking, list) = send("fq_codel", Ecn::Ect0);
    assert!(marking.marked > 10, "{marking:?}");
    let ce = list.iter().filter(|arrival| arrival.datagram.ecn == Ecn::Ce).count() as u64;
    assert!(ce > 10 && ce <= marking.marked, "{ce} of {marking:?}");
}

#[test]
fn rivals_are_those_of_any_run_and_everything_repeats() {
    let run = |datagrams: u64| {
        let mut strip = Strip::new(&PATH, &["cubic", "bbr"], 3).expect("a path");
        for number in 0..datagrams {
            strip.advance(Duration::from_millis(10 * number));
            strip.send(End::Client, datagram(1_000, Ecn::NotEct));
        }
        let list = arrivals(&mut strip);
        strip.advance(strip.end());
        (list, strip.rivals().iter().map(|rival| rival.bytes_received).collect::<Vec<_>>())
    };
    let (none, alone) = run(0);
    assert!(none.is_empty());
    let rate = alone.iter().sum::<u64>() as f64 * 8e-6 / 20.0;
    assert!((9.2..9.6).contains(&rate), "{rate} Mbit/s");
    let (list, beside) = run(1_000);
    assert!(list.len() > 900 && beside.iter().sum::<u64>() < alone.iter().sum(), "{beside:?}");
    assert_eq!(run(1_000), (list, beside));
}

#[test]
fn a_wrong_option_is_named() {
    let error = |options: &[(&str, &str)], rivals: &[&str]| {
        Strip::new(options, rivals, 1).expect_err("it is refused").to_string()
    };
    assert!(error(&[("rate", "10mbit"), ("rtt", "fast")], &[]).contains("rtt"));
    assert!(error(&[("speed", "10mbit")], &[]).contains("speed"));
    assert!(error(&PATH, &["cubik"]).contains("did you mean \"cubic\"?"));
    let mut strip = Strip::new(&PATH, &[], 1).expect("a path");
    strip.send(End::Client, datagram(1_473, Ecn::NotEct));
    assert_eq!(strip.totals(End::Server).dropped, 1);
}
