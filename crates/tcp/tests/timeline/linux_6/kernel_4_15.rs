//! The profile of Linux 4.15: what differs from 6.1.

use crate::harness::Host;
use dragstrip_tcp::Settings;

fn old() -> Settings {
    Settings { hz: 250, ..Settings::linux_4_15() }
}

/// 87040 bytes, as on 6.1, but 4352 for each segment: 20.
#[test]
fn the_send_buffer_holds_twenty_segments_at_first() {
    let mut host = Host::connected("reno", 100, &old());
    host.write_endless();
    assert_eq!(host.endpoint().bytes_written(), 20 * 1448);
}

/// A full segment with PSH waits for the next one, or for the timer; on 6.1 it is acknowledged at once.
#[test]
fn a_full_segment_with_psh_is_not_acknowledged_by_itself() {
    use dragstrip_tcp::Flags;
    for (stack, at_once) in [(old(), 0), (Settings { hz: 250, ..Settings::linux_6() }, 1)] {
        let mut host = Host::receiver(100, &stack);
        // Until quick ACKs are spent and the offer has stopped growing.
        for number in 0..121 {
            host.wait(1).data(number);
        }
        host.until(400).forget();
        host.until(500).data_with(121, Flags::PSH);
        assert_eq!(host.acks().len(), at_once);
    }
}

/// 20 segments are offered at first, before the buffer, which begins with room for 160, is used.
#[test]
fn twenty_segments_are_offered_at_first() {
    let mut host = Host::client("reno", &old());
    let syn = host.departures().remove(0).segment;
    assert_eq!(syn.window, 20 * 1460);
}

/// On 6.1 the last of the segments that leave together carries PSH, on 4.15 only the end of what was pushed.
#[test]
fn the_end_of_a_burst_is_not_pushed() {
    use dragstrip_tcp::Flags;
    for (stack, ends) in [(old(), vec![]), (Settings::linux_6(), vec![1, 3, 5, 7, 9])] {
        let mut host = Host::connected("cubic", 100, &Settings { hz: 250, gso: true, ..stack });
        host.forget().write_endless();
        let sent = host.departures();
        assert_eq!(sent.len(), 10);
        let pushed: Vec<usize> =
            (0..10).filter(|&at| sent[at].segment.flags.has(Flags::PSH)).collect();
        assert_eq!(pushed, ends);
    }
}
