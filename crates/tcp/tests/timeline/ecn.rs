//! ECN (RFC 3168) on both sides.

use crate::harness::{Host, SACK, SCALING, TIMESTAMPS, settings, stock};
use dragstrip_tcp::{Ecn, Flags, Settings};

fn asking() -> Settings {
    settings(|s| s.ecn_request = true)
}

#[test]
fn ecn_is_asked_for_and_granted() {
    let mut host = Host::connected("reno", 100, &asking());
    let syn = host.departures()[0].clone();
    assert!(syn.segment.flags.has(Flags::SYN.with(Flags::ECE).with(Flags::CWR)));
    assert_eq!(syn.ecn, Ecn::NotEct, "RFC 3168 §6.1.1: no ECT on a SYN");
    assert!(host.endpoint().ecn_negotiated());
    // By default nobody asks.
    let mut host = Host::connected("reno", 100, &stock());
    assert!(!host.departures()[0].segment.flags.has(Flags::ECE));
    assert!(!host.endpoint().ecn_negotiated());
    host.write_endless();
    assert!(host.departures().iter().all(|sent| sent.ecn == Ecn::NotEct));
}

#[test]
fn a_server_grants_it_only_when_asked() {
    let mut granted = Host::receiver(100, &stock());
    assert!(granted.endpoint().ecn_negotiated());
    granted.data_marked(0, Ecn::Ce, Flags::ACK);
    assert!(granted.departures()[0].segment.flags.has(Flags::ECE));
    let mut refused = Host::receiver(100, &settings(|s| s.ecn_accept = false));
    assert!(!refused.endpoint().ecn_negotiated());
    refused.data_marked(0, Ecn::Ce, Flags::ACK);
    assert!(!refused.departures()[0].segment.flags.has(Flags::ECE));
}

/// ECE is repeated until the sender says CWR (RFC 3168 §6.1.3).
#[test]
fn the_echo_lasts_until_cwr() {
    let mut host = Host::receiver(100, &stock());
    let echoes = |host: &mut Host| -> Vec<bool> {
        host.departures().iter().map(|sent| sent.segment.flags.has(Flags::ECE)).collect()
    };
    host.data_marked(0, Ecn::Ect0, Flags::ACK).data_marked(1, Ecn::Ect0, Flags::ACK);
    assert!(!echoes(&mut host).contains(&true));
    host.data_marked(2, Ecn::Ce, Flags::ACK);
    host.data_marked(3, Ecn::Ect0, Flags::ACK).data_marked(4, Ecn::Ect0, Flags::ACK).data_marked(
        5,
        Ecn::Ect0,
        Flags::ACK,
    );
    let ece_flags = echoes(&mut host);
    assert!(ece_flags.len() >= 2 && !ece_flags.contains(&false), "{ece_flags:?}");
    host.data_marked(6, Ecn::Ect0, Flags::CWR);
    assert_eq!(echoes(&mut host), [false], "an ACK at once, without ECE");
}

#[test]
fn an_echo_reduces_once_a_window_and_is_confirmed() {
    let mut host = Host::connected("reno", 100, &asking());
    host.write_endless();
    assert!(host.departures()[2..].iter().all(|sent| sent.ecn == Ecn::Ect0));
    host.flags = Flags::ACK.with(Flags::ECE);
    host.until(200).ack(2);
    assert_eq!((host.state(), host.window().1), ("cwr", 5));
    host.ack(4).ack(6).ack(8).ack(10);
    assert_eq!(host.endpoint().reductions(), 1, "the echoes of one window are one event");
    // CWR on the first new segment, and only there (RFC 3168 §6.1.2).
    let confirmed: Vec<bool> =
        host.departures().iter().map(|sent| sent.segment.flags.has(Flags::CWR)).collect();
    assert!(confirmed[0] && !confirmed[1..].contains(&true), "{confirmed:?}");
    assert_eq!(host.window(), (5, 5));
    assert_eq!(
        host.state(),
        "cwr",
        "until something beyond the window of the echo is acknowledged"
    );
    // The next window is marked too.
    host.until(300).ack(12);
    assert_eq!((host.endpoint().reductions(), host.window().1), (2, 2));
}

/// The window goes down over a round trip, never up, and nothing is retransmitted.
#[test]
fn the_reduction_is_proportional() {
    let mut host = Host::connected("reno", 100, &asking());
    host.write_endless().forget();
    host.flags = Flags::ACK.with(Flags::ECE);
    host.until(200);
    let windows: Vec<u64> = (1..=10).map(|upto| host.ack(upto).cwnd()).collect();
    // In flight + ceil(5·delivered/10) − sent so far.
    assert_eq!(windows, [10, 9, 9, 8, 8, 7, 7, 6, 5, 5]);
    assert_eq!(host.endpoint().retransmits(), 0);
    host.flags = Flags::ACK;
    let beyond = host.total();
    host.until(300).ack(11);
    assert_eq!((host.state(), host.cwnd()), ("congestion_avoidance", 5));
    assert_eq!(beyond, 15, "five for ten");
}

/// RFC 3168 §6.1.5: retransmissions must not be ECT.
#[test]
fn a_retransmission_is_not_ect() {
    let mut host = Host::connected("reno", 100, &asking());
    host.write_endless().forget().until(200);
    host.sack(0, &[(1, 4)]);
    let departures = host.departures();
    assert_eq!(departures[0].segment.seq, 0);
    assert_eq!(departures[0].ecn, Ecn::NotEct);
    assert_eq!(departures[1].ecn, Ecn::Ect0, "new data is");
    assert!(departures[1].segment.flags.has(Flags::CWR), "and says that the window was reduced");
}

/// An echo forbids undo: the congestion was real (`tcp_fastretrans_alert`, step A).
#[test]
fn an_echo_blocks_undo() {
    let mut host = Host::connected("reno", 100, &asking());
    host.write_endless().until(200);
    host.sack(0, &[(1, 4)]);
    host.flags = Flags::ACK.with(Flags::ECE);
    host.until(210).ack_of_original(4, &[]);
    assert_eq!(host.window().1, 5);
}

/// ECN that was not agreed on: an ECE bit means nothing.
#[test]
fn an_echo_without_agreement_is_ignored() {
    let mut host = Host::client("reno", &stock());
    host.until(100).answer_syn(SACK | TIMESTAMPS | SCALING);
    host.write_endless();
    host.flags = Flags::ACK.with(Flags::ECE);
    host.until(200).ack(10);
    assert_eq!((host.cwnd(), host.endpoint().reductions()), (20, 0));
}
