//! The seeds of the fuzz target `pcap`, damaged in a fixed way: nothing panics, and counts stay within what the file holds.

use dragstrip_inspect::{Inspected, Session};
use std::path::Path;

/// Damaged copies of each seed.
const COPIES: u64 = 300;

fn inspected(file: &[u8]) -> Option<Inspected> {
    let mut session = Session::new(1, true).labelled().every_segment();
    let mut pieces = file.chunks(997);
    while session.hungry().is_some() {
        let fed = match pieces.next() {
            Some(piece) => session.feed(0, piece),
            None => session.end(0),
        };
        fed.ok()?;
    }
    Some(session.finish().0)
}

fn expect_bounds(inspection: &Inspected) {
    let packets = inspection.files[0].packets;
    for flow in &inspection.flows {
        assert!(flow.closed_s >= 0.0 && flow.duration_s >= 0.0 && flow.goodput_bps.is_finite());
        let repeated =
            flow.syn_retransmissions + flow.syn_ack_retransmissions + flow.fin_retransmissions;
        assert!(repeated <= packets && flow.retransmissions.total() <= flow.segments);
    }
    for row in inspection.unanswered.iter().chain(&inspection.refused) {
        assert!(row.retransmitted < row.syns && row.first_s <= row.last_s);
    }
    let other_packets: u64 = inspection.other.iter().map(|row| row.packets).sum();
    assert!(other_packets <= packets, "{other_packets} of {packets} packets are not TCP");
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a test reads its seeds")]
fn damaged_seeds_are_read_within_bounds() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/pcap");
    let mut state = 1_u64;
    let mut number = |below: usize| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let mut names: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    let mut read = 0;
    for name in names {
        let seed = std::fs::read(&name).unwrap();
        expect_bounds(&inspected(&seed).expect("a seed is a capture"));
        for _ in 0..COPIES {
            let mut file = seed.clone();
            for _ in 0..1 + number(30) {
                let at = 24 + number(file.len() - 24);
                file[at] = number(256) as u8;
            }
            if let Some(inspection) = inspected(&file) {
                expect_bounds(&inspection);
                read += 1;
            }
        }
    }
    assert!(read > 1_000, "{read} damaged captures were read");
}

#[test]
fn a_datagram_at_a_tunnel_s_port_that_is_none_is_udp() {
    let ports = [2_152_u16, 4_789, 6_081, 6_635, 8_472];
    let mut file = Vec::new();
    for word in [0xa1b2_3c4d_u32, 4 << 16 | 2, 0, 0, 262_144, 101] {
        file.extend(word.to_le_bytes());
    }
    for port in ports {
        for word in [0_u32, 0, 68, 68] {
            file.extend(word.to_le_bytes());
        }
        file.extend([0x45, 0, 0, 68, 0, 1, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        file.extend(50_000_u16.to_be_bytes());
        file.extend(port.to_be_bytes());
        file.extend([0, 48, 0, 0]);
        file.extend([0xff; 40]);
    }
    let inspection = inspected(&file).expect("a capture");
    let mut read: Vec<u16> = inspection.other.iter().filter_map(|row| row.port).collect();
    read.sort_unstable();
    assert_eq!(read, ports);
}
