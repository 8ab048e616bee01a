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
        }
    }
}
