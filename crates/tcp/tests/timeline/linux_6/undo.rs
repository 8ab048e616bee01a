//! Reductions that are taken back; `conformance/` has the plain cases (eifel-*, dsack-undo*, dsack-one-of-two).

use crate::harness::{Host, settings, stock};
use dragstrip_tcp::Settings;

/// Segment 0 is overtaken by three others and retransmitted at 201 ms.
fn overtaken(stack: &Settings) -> Host {
    let mut host = Host::connected("reno", 100, stack);
    host.write_endless().until(200);
    host.sack(0, &[(1, 2)]).sack(0, &[(1, 3)]).until(201).sack(0, &[(1, 4)]);
    assert_eq!((host.state(), host.window().1), ("recovery", 5));
    host
}

/// `tcp_packet_delayed`: where nothing was retransmitted yet, data that arrive were merely late. BBR's pacing holds the retransmission back.
#[test]
fn what_arrives_before_anything_was_retransmitted_undoes_the_reduction() {
    let merely_late = |stack: &Settings| {
        let mut host = Host::connected("bbr", 100, stack);
        host.write_endless().until(200).ack(10).until(215).sack(10, &[(11, 14)]);
        assert_eq!((host.state(), host.endpoint().retransmits()), ("recovery", 0));
        host.ack(14);
        assert_eq!(host.endpoint().retransmits(), 0);
        host.state()
    };
    assert_ne!(merely_late(&stock()), "recovery");
    assert_ne!(merely_late(&settings(|s| s.timestamps = false)), "recovery", "no stamp is needed");
    // Linux 4.15 waits for the end of what was out.
    assert_eq!(merely_late(&Settings::linux_4_15()), "recovery");
}

/// `tcp_ack`, no_queue: the report may come after everything has been acknowledged.
#[test]
fn a_dsack_that_finds_nothing_outstanding_undoes_too() {
    let mut host = Host::connected("reno", 100, &settings(|s| s.timestamps = false));
    host.write(10).until(200);
    host.sack(0, &[(1, 4)]).until(300).ack(10);
    assert_eq!(host.window().1, 5);
    host.until(310).sack(10, &[(0, 1)]);
    assert_eq!(host.window().1, u64::MAX);
}

/// A packet that the network copied was never sent twice: no retransmission of ours was in vain.
#[test]
fn a_copy_made_by_the_network_undoes_nothing() {
    let mut host = overtaken(&settings(|s| s.timestamps = false));
    host.until(301).sack(4, &[(2, 3)]);
    assert_eq!(host.window().1, 5, "a duplicate of a segment that was sent once");
}

/// ... and delivers nothing (`tcp_dsack_seen`: more duplicates than retransmissions).
#[test]
fn a_copy_made_by_the_network_does_not_count_as_delivered() {
    let mut host = Host::connected("reno", 100, &stock());
    host.write_endless().until(200).sack(10, &[(0, 1)]);
    assert_eq!(host.cwnd(), 20);
}

/// A timeout whose ACKs were merely late (Eifel).
#[test]
fn a_spurious_timeout_is_undone_by_timestamps() {
    let mut host = Host::connected("reno", 100, &settings(|s| s.tail_loss_probe = false));
    host.write_endless().forget();
    host.until(450);
    assert_eq!((host.sent(), host.state()), (vec![0], "loss"));
    host.ack_of_original(2, &[]);
    assert_eq!((host.state(), host.window().1), ("slow_start", u64::MAX));
    assert!(host.cwnd() >= 10, "{}", host.cwnd());
    assert!(!host.sent().contains(&1), "nothing more is retransmitted");
}

/// RFC 8985 §6.2 step 4: a duplicate reported in a round widens RACK's window by a quarter of the RTT,
/// once reordering is known.
#[test]
fn every_round_with_a_dsack_widens_the_reordering_window() {
    let verdict_after = |dsacks: &[bool]| {
        let mut host = Host::connected("reno", 100, &stock());
        let mut head = 0;
        for dsack in dsacks {
            // The head is overtaken for so long that it is retransmitted; then its original arrives.
            host.write(head + 10).wait(100).sack(head, &[(head + 1, head + 5)]);
            host.wait(100).ack_of_original(head + 5, &[]).ack(head + 10);
            if *dsack {
                host.sack(head + 10, &[(head, head + 1)]);
            }
            head += 10;
        }
        host.write(head + 10).wait(100).ack(head + 2).forget();
        head += 2;
        let from = host.now_ms();
        host.sack(head, &[(head + 1, head + 6)]).wait(200);
        let repair = host.sent_at().into_iter().find(|sent| sent.1 == head);
        repair.map(|(at, _)| at - from)
    };
    assert_eq!(verdict_after(&[]), Some(0), "no reordering known: three SACKed segments suffice");
    // A quarter of the RTT and 2 ms in ticks, one in the wheel.
    assert_eq!(verdict_after(&[false]), Some(4 * (7 + 1)));
    assert_eq!(verdict_after(&[true]), Some(4 * (13 + 1)));
    assert_eq!(verdict_after(&[true, true]), Some(4 * (20 + 1)));
}
