//! Accurate ECN, the receiving half: counters of what came with which codepoint (RFC 9768 §3.2.1; Linux 6.18
//! `tcp_ecn_received_counters`, `tcp_accecn_set_ace`).
//!
//! The number of CE packets goes into three flags of whatever leaves, the bytes of each codepoint into an option, if the peer had one
//! in its part of the handshake: three counters on data, as many as fit beside SACK blocks on acknowledgements.

use super::acknowledge::Acknowledger;
use crate::segment::{Ecn, EcnBytes, Segment};

/// Initial values of the counters on the wire (RFC 9768 §3.2.1), so that one zeroed on the way shows: CE packets;
/// bytes of ECTs.
pub(crate) const PACKETS_BEGIN: u8 = 5;
const BYTES_BEGIN: u32 = 1;
/// CE packets that no acknowledgement has told of yet, at most (`TCP_ACCECN_ACE_MAX_DELTA`): more could be taken for less.
const PENDING_MAX: u8 = 6;

/// The counters.
#[derive(Clone, Debug, Default)]
pub(super) struct Counters {
    /// CE packets, data or not.
    packets: u8,
    /// CE packets not reported yet.
    pending: u8,
    /// Bytes of payload that came as ECT(0), CE, ECT(1).
    bytes: [u32; 3],
    /// Fields that the next option must have to tell what is new.
    required: u8,
    /// The last packet's codepoint.
    last: Ecn,
    /// The peer had an option in its part of the handshake (`saw_accecn_opt`).
    tells_bytes: bool,
    /// The kernel takes what is pending for 15 at least (`max` for `min` in `tcp_ecn_received_counters`).
    overstates_pending: bool,
}

impl Counters {
    /// Returns the counters of a new connection; `seen`: codepoint of the peer's SYN or SYN-ACK. That of a SYN is not
    /// counted: the SYN-ACK reports it.
    pub fn new(seen: Ecn, client: bool, tells_bytes: bool) -> Self {
        let packets = u8::from(client && seen == Ecn::Ce);
        Self { packets, last: seen, tells_bytes, ..Self::default() }
    }

    /// The counters of a kernel that overstates what is pending, or does not.
    pub fn overstating(self, overstates_pending: bool) -> Self {
        Self { overstates_pending, ..self }
    }

    /// True when a segment that advances the timestamp to echo is acknowledged at once (`__tcp_accecn_process`, which the general
    /// way alone calls for data: that of segments with an option).
    pub fn hurries(&self) -> bool {
        self.overstates_pending && self.tells_bytes && self.last.is_capable()
    }

    /// The option of a data segment.
    #[inline]
    pub fn on_data(&mut self) -> Option<EcnBytes> {
        self.tells_bytes.then(|| self.option(3))
    }

    /// A packet with `len` bytes of payload has come.
    pub fn on_packet(&mut self, ecn: Ecn, len: u16, acks: &mut Acknowledger) {
        let changed = std::mem::replace(&mut self.last, ecn) != ecn;
        if ecn == Ecn::Ce {
            self.packets = self.packets.wrapping_add(1);
            self.pending = self.pending.saturating_add(1);
        }
        if len == 0 {
            return;
        }
        let (counter, field) = match ecn {
            Ecn::NotEct => (None, 0),
            Ecn::Ect0 => (Some(0), 3),
            Ecn::Ce => (Some(1), 2),
            Ecn::Ect1 => (Some(2), 1),
        };
        if let Some(counter) = counter {
            self.bytes[counter] = self.bytes[counter].wrapping_add(len.into());
            self.required = self.required.max(field);
        }
        // RFC 9768 §3.2.3.3: a change of the codepoint, or a counter about to overtake itself.
        if changed || self.pending >= PENDING_MAX {
            acks.acknowledge_now();
        }
    }

    /// Returns the ACE flags of a segment about to leave.
    #[inline]
    pub fn ace(&mut self) -> u8 {
        self.pending = 0;
        self.packets.wrapping_add(PACKETS_BEGIN) & 7
    }

    /// Returns the number of counters that fit with `blocks` of SACK, of which at most `blocks` stay
    /// (`tcp_options_fit_accecn`): two blocks have precedence, more where there is nothing new to tell or no room for
    /// it beside two. `None`: no option.
    pub fn fit(&self, stamped: bool, blocks: &mut usize) -> Option<u8> {
        if !self.tells_bytes {
            return None;
        }
        for fields in [3, 2] {
            if fields >= self.required && *blocks <= Segment::sack_room(stamped, fields) {
                return Some(fields);
            }
        }
        let fields = self.required.max(2);
        let room = Segment::sack_room(stamped, fields);
        if self.required == 0 || room < 2 {
            return None;
        }
        *blocks = room;
        Some(fields)
    }

    /// The option.
    pub fn option(&mut self, fields: u8) -> EcnBytes {
        self.required = 0;
        let [ect0, ce, ect1] = self.bytes;
        let (ect0, ect1) = (ect0.wrapping_add(BYTES_BEGIN), ect1.wrapping_add(BYTES_BEGIN));
        let counters = [ect1, ce, ect0].map(|bytes| bytes & EcnBytes::MASK);
        EcnBytes { ect1_first: true, fields, counters }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Settings;

    #[test]
    fn the_ace_counter_wraps_after_eight() {
        let mut acks = Acknowledger::new(&Settings::linux_6().shared());
        let mut counters = Counters::new(Ecn::NotEct, false, true);
        let ace_values: Vec<u8> = (0..10)
            .map(|_| {
                let ace = counters.ace();
                counters.on_packet(Ecn::Ce, 0, &mut acks);
                ace
            })
            .collect();
        assert_eq!(ace_values, [5, 6, 7, 0, 1, 2, 3, 4, 5, 6]);
        assert_eq!(Counters::new(Ecn::Ce, true, true).ace(), 6, "the SYN-ACK counts");
        assert_eq!(Counters::new(Ecn::Ce, false, true).ace(), 5, "the SYN does not");
    }

    #[test]
    fn the_option_begins_with_ect1() {
        let mut acks = Acknowledger::new(&Settings::linux_6().shared());
        let mut counters = Counters::new(Ecn::NotEct, false, true);
        assert_eq!(counters.option(3).counters, [1, 0, 1]);
        counters.on_packet(Ecn::Ect0, 1_000, &mut acks);
        counters.on_packet(Ecn::Ce, 500, &mut acks);
        let option = counters.option(2);
        assert_eq!((option.kind(), option.counters), (174, [1, 500, 1_001]));
        counters.on_packet(Ecn::Ect1, 7, &mut acks);
        let option = counters.on_data().unwrap();
        assert_eq!((option.kind(), option.counters), (174, [8, 500, 1_001]));
    }

    #[test]
    fn two_blocks_stay_and_a_third_gives_way_only_to_news() {
        let mut acks = Acknowledger::new(&Settings::linux_6().shared());
        let mut counters = Counters::new(Ecn::NotEct, false, true);
        let fit = |counters: &Counters, stamped, mut blocks| {
            let fields = counters.fit(stamped, &mut blocks);
            (fields, blocks)
        };
        assert_eq!(fit(&counters, true, 1), (Some(3), 1));
        assert_eq!(fit(&counters, true, 2), (Some(2), 2));
        assert_eq!(fit(&counters, true, 3), (None, 3));
        assert_eq!(fit(&counters, false, 4), (None, 4));
        counters.on_packet(Ecn::Ce, 1, &mut acks);
        assert_eq!(fit(&counters, true, 3), (Some(2), 2));
        assert_eq!(fit(&counters, false, 4), (Some(2), 3));
        counters.on_packet(Ecn::Ect0, 1, &mut acks);
        assert_eq!(fit(&counters, true, 1), (Some(3), 1));
        assert_eq!(fit(&counters, true, 2), (None, 2), "that is the third counter");
        assert_eq!(fit(&counters, true, 3), (None, 3));
        assert_eq!(fit(&counters, false, 4), (Some(3), 2));
    }

    #[test]
    fn a_peer_without_an_option_gets_none() {
        let mut counters = Counters::new(Ecn::NotEct, false, false);
        assert_eq!(counters.on_data(), None);
        assert_eq!(counters.fit(true, &mut 0), None);
    }

    /// 15 marks for pending, whatever came: an option keeps the segment from header prediction.
    #[test]
    fn l4steams_kernel_hurries_where_a_segment_has_an_option() {
        let hurries = |seen, tells_bytes, overstates| {
            Counters::new(seen, false, tells_bytes).overstating(overstates).hurries()
        };
        assert!(hurries(Ecn::Ect1, true, true));
        assert!(!hurries(Ecn::Ect1, true, false), "other kernels");
        assert!(!hurries(Ecn::Ect1, false, true), "no option");
        assert!(!hurries(Ecn::NotEct, true, true), "not counted");
    }

    #[test]
    fn a_change_and_a_sixth_mark_are_told_at_once() {
        let mut counters = Counters::new(Ecn::NotEct, false, true);
        let mut owes_ack = |ecns: &[Ecn]| {
            let mut acks = Acknowledger::new(&Settings::linux_6().shared());
            ecns.iter().for_each(|ecn| counters.on_packet(*ecn, 100, &mut acks));
            acks.owes()
        };
        assert!(owes_ack(&[Ecn::Ect0]), "the first of its kind");
        assert!(!owes_ack(&[Ecn::Ect0, Ecn::Ect0]));
        assert!(owes_ack(&[Ecn::Ce]));
        assert!(!owes_ack(&[Ecn::Ce, Ecn::Ce, Ecn::Ce, Ecn::Ce]));
        assert!(owes_ack(&[Ecn::Ce]), "the sixth");
    }
}
