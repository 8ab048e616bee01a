//! The profiles of Linux 6.12 and 7: what differs from 6.1.

use crate::harness::{Host, stock};
use dragstrip_tcp::{Flags, Settings};

/// `tcp_retransmit_timer`: a second each for the first five, then doubled. The wheel rounds 250 ticks up to a multiple of 8, 500
/// too, 1000 to one of 64.
#[test]
fn a_syn_is_repeated_five_times_before_the_time_doubles() {
    for settings in [Settings::linux_6_12(), Settings::linux_7()] {
        let mut host = Host::client("reno", &settings);
        host.until(12_000);
        let syns = host.departures().into_iter().filter(|sent| sent.segment.flags.has(Flags::SYN));
        let at: Vec<u64> = syns.map(|sent| sent.at.as_nanos() / 1_000_000).collect();
        assert_eq!(at, [0, 1_024, 2_048, 3_072, 4_096, 5_120, 7_136, 11_264]);
    }
}

/// Microseconds after 200 ms at which compressed duplicates are reported, where the RTT is `rtt_ms`.
fn reported_us(settings: &Settings, rtt_ms: u64) -> u64 {
    let mut host = Host::receiver(rtt_ms, settings);
    for number in 0..20 {
        host.wait(1).echoing(rtt_ms).data(number);
    }
    host.until(200).forget();
    for number in 21..31 {
        host.data(number);
    }
    host.until(210);
    let since = |nanos: u64| nanos / 1_000 - 200_000;
    let acks = host.departures().into_iter().map(|ack| since(ack.at.as_nanos()));
    let (at_once, later): (Vec<u64>, Vec<u64>) = acks.partition(|us| *us == 0);
    assert!(at_once.len() >= 3, "three at once: {at_once:?}");
    later[0]
}

/// `tcp_comp_sack_rtt_percent`: a third of the RTT, at most a millisecond, and 10 µs of slack; 5 % and 100 µs before. The mean
/// of the receiver's RTT is a little below 3 ms.
#[test]
fn linux_7_holds_sacks_back_for_a_third_of_the_rtt() {
    for (settings, short, long) in [
        (stock(), 249, 1_100),
        (Settings::linux_6_12(), 249, 1_100),
        (Settings::linux_7(), 999, 1_010),
    ] {
        assert_eq!((reported_us(&settings, 3), reported_us(&settings, 100)), (short, long));
    }
}

/// 1c120191dcec: what was sent later and has arrived shows a lost retransmission, whatever `tcp_recovery` says.
#[test]
fn linux_7_finds_losses_by_time_alone() {
    for (settings, again) in [(stock(), false), (Settings::linux_7(), true)] {
        let mut host = Host::connected("reno", 100, &Settings { rack: false, ..settings });
        host.write_endless().forget().until(200);
        host.sack(0, &[(1, 4)]).until(204).sack(0, &[(1, 10)]).forget();
        host.until(300).sack(0, &[(1, 11)]);
        assert_eq!(host.sent().contains(&0), again);
    }
}
