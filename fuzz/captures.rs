//! What both targets of captures do.

use dragstrip_inspect::Session;

/// Bytes of one piece: records are cut everywhere.
const PIECE: usize = 61;

/// Inspects a file alone, with a recording, and as both of two vantage points; with others' labels each time.
pub fn inspect(file: &[u8]) {
    for count in [1, 2] {
        let mut session = Session::new(count, count == 1).labelled();
        let mut pieces = vec![file.chunks(PIECE); count];
        while let Some(index) = session.hungry() {
            let taken = match pieces[index].next() {
                Some(piece) => session.feed(index, piece),
                None => session.end(index),
            };
            if taken.is_err() {
                return;
            }
        }
        let (said, ..) = session.finish();
        for flow in &said.flows {
            let judged = flow.retransmissions.total();
            assert!(judged <= flow.segments, "{judged} of {} segments sent again", flow.segments);
            let others = flow.others.as_ref().expect("labels are asked for");
            let again = others.tcptrace.rexmt_data_pkts + others.tcptrace.outoforder_pkts;
            assert!(again <= 2 * said.files[flow.file].packets, "tcptrace: {again}");
            assert!(flow.duration_s >= 0.0 && flow.goodput_bps.is_finite());
            assert!(flow.closed_s >= 0.0, "a window closed for {} s", flow.closed_s);
            let packets = said.files[flow.file].packets;
            let repeated =
                flow.syn_retransmissions + flow.syn_ack_retransmissions + flow.fin_retransmissions;
            assert!(repeated <= packets, "{repeated} of {packets} packets open or close again");
        }
        let rows = said.unanswered.iter().chain(&said.refused);
        for row in rows {
            assert!(row.retransmitted < row.syns && row.first_s <= row.last_s);
        }
        for row in &said.quic {
            assert!(row.packets_to_server <= row.packets && row.duration_s >= 0.0);
        }
        let other: u64 = said.other.iter().map(|row| row.packets).sum();
        assert!(other <= said.files.iter().map(|file| file.packets).sum::<u64>());
    }
}
