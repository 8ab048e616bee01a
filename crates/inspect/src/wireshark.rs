//! Wireshark's labels for segments: the rules of `tcp_analyze_sequence_number` in its `packet-tcp.c` (version 4.0),
//! for comparisons.
//!
//! They ignore the capture's position and SACK: a repair within the opening's round trip is *Out-Of-Order* to them
//! even at the sender. A port that is reused is a new connection, as in Wireshark.

use crate::half::{ACK, FIN, RST, SYN};
use dragstrip_capture::read::Packet;
use serde::Serialize;

/// A copy sent so soon after two repeated acknowledgements is fast, nanoseconds.
const FAST_NS: i64 = 20_000_000;
/// The opening's round trip where it was not seen.
const OPENING_NS: i64 = 3_000_000;
/// Marker that replaces the count of repeated acknowledgements after one beyond the data seen.
const UNSEEN: u32 = u32::MAX;

/// Label for data, SYN or FIN below the highest; at most one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Call {
    /// `tcp.analysis.retransmission` alone.
    Retransmission,
    /// `tcp.analysis.fast_retransmission`.
    FastRetransmission,
    /// `tcp.analysis.spurious_retransmission`.
    SpuriousRetransmission,
    /// `tcp.analysis.out_of_order`.
    OutOfOrder,
}

/// Packets of a direction by label.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Labels {
    /// Without those that are fast or spurious, which Wireshark's filter of this name has too.
    pub retransmission: u64,
    /// Sent again on two repeated acknowledgements.
    pub fast_retransmission: u64,
    /// Acknowledged before.
    pub spurious_retransmission: u64,
    /// Below the highest, within a round trip.
    pub out_of_order: u64,
    /// "Previous segment not captured".
    pub lost_segment: u64,
    /// One byte or none, before the next.
    pub keep_alive: u64,
    /// One byte into a closed window.
    pub zero_window_probe: u64,
    /// Repeated acknowledgements of the other direction, which acknowledges this one.
    pub duplicate_ack: u64,
    /// "ACKed unseen segment".
    pub ack_lost_segment: u64,
    /// A new window and nothing else.
    pub window_update: u64,
    /// A closed window.
    pub zero_window: u64,
}

/// A direction.
#[derive(Debug, Default)]
struct Side {
    next: Option<u32>,
    next_at: i64,
    contiguous: Option<u32>,
    last_ack: u32,
    last_ack_at: i64,
    window: Option<u16>,
    /// Unsigned, as there: `UNSEEN` is a fast retransmission's two and more.
    repeats: u32,
    kept_alive: bool,
    sent: Labels,
    acks: Labels,
}

/// A connection.
#[derive(Debug, Default)]
pub struct Wireshark {
    sides: [Side; 2],
    syn_at: Option<i64>,
    opening_ns: Option<i64>,
}

fn after(first: u32, second: u32) -> bool {
    first.wrapping_sub(second).cast_signed() > 0
}

impl Wireshark {
    /// A packet of a direction, in the order of the file.
    pub fn take(&mut self, packet: &Packet, side: usize) -> Option<Call> {
        let [first, second] = &mut self.sides;
        let (direction, reverse) = if side == 0 { (first, second) } else { (second, first) };
        let opening_ns = self.opening_ns.unwrap_or(OPENING_NS);
        let call = take(direction, reverse, packet, opening_ns);
        if packet.flags & (SYN | ACK) == SYN {
            self.syn_at = Some(packet.time_ns);
        } else if packet.flags & (SYN | ACK) == ACK && self.opening_ns.is_none() {
            self.opening_ns = self.syn_at.map(|at| packet.time_ns - at).filter(|ns| *ns != 0);
        }
        call
    }

    /// Labels of a direction's data and of the acknowledgements for them.
    pub fn labels(&self, side: usize) -> Labels {
        let (labels, acks) = (self.sides[side].sent, self.sides[1 - side].acks);
        Labels {
            duplicate_ack: acks.duplicate_ack,
            ack_lost_segment: acks.ack_lost_segment,
            window_update: acks.window_update,
            zero_window: acks.zero_window,
            ..labels
        }
    }
}

fn take(
    direction: &mut Side,
    reverse: &mut Side,
    packet: &Packet,
    opening_ns: i64,
) -> Option<Call> {
    let plain = packet.flags & (SYN | FIN | RST) == 0;
    let opens = packet.flags & (SYN | FIN) != 0;
    let empty = packet.payload == 0;
    let ack = if packet.flags & ACK != 0 { packet.ack } else { 0 };
    let at_next =
        Some(packet.seq) == direction.next || (direction.next.is_none() && packet.seq == 0);
    let probe = packet.payload == 1 && at_next && reverse.window == Some(0);
    let mut kept_alive = false;
    if probe {
        direction.sent.zero_window_probe += 1;
    } else {
        direction.acks.zero_window += u64::from(packet.window == 0 && plain);
        let beyond = direction.next.is_some_and(|next| after(packet.seq, next));
        direction.sent.lost_segment += u64::from(beyond && packet.flags & RST == 0);
        let before_next = packet.seq == direction.next.unwrap_or(0).wrapping_sub(1);
        kept_alive = packet.payload <= 1 && before_next && plain;
        direction.sent.keep_alive += u64::from(kept_alive);
        let repeated = empty && at_next && ack == direction.last_ack && plain;
        if repeated && packet.window != 0 && Some(packet.window) != direction.window {
            direction.acks.window_update += 1;
        }
        let same_window = repeated && Some(packet.window) == direction.window;
        let alive_answered = same_window && packet.window != 0 && reverse.kept_alive;
        if same_window && packet.window != 0 && !alive_answered {
            direction.repeats = if direction.repeats == UNSEEN { 1 } else { direction.repeats + 1 };
            direction.acks.duplicate_ack += 1;
        }
    }
    if ack != direction.last_ack {
        direction.repeats = 0;
    }
    if packet.flags & ACK != 0 && reverse.contiguous.is_some_and(|edge| after(ack, edge)) {
        unseen(direction, reverse);
    }
    let call = (packet.payload > 0 || opens)
        .then(|| called(direction, reverse, packet, opening_ns, kept_alive))
        .flatten();
    match call {
        Some(Call::Retransmission) => direction.sent.retransmission += 1,
        Some(Call::FastRetransmission) => direction.sent.fast_retransmission += 1,
        Some(Call::SpuriousRetransmission) => direction.sent.spurious_retransmission += 1,
        Some(Call::OutOfOrder) => direction.sent.out_of_order += 1,
        None => {}
    }
    let next = packet.seq.wrapping_add(packet.payload).wrapping_add(u32::from(opens));
    if !probe && direction.next.is_none_or(|next_seq| after(next, next_seq)) {
        (direction.next, direction.next_at) = (Some(next), packet.time_ns);
    }
    if !probe && direction.contiguous.is_none_or(|edge| packet.seq == edge) {
        direction.contiguous = direction.next;
    }
    (direction.window, direction.last_ack, direction.last_ack_at) =
        (Some(packet.window), ack, packet.time_ns);
    direction.kept_alive = kept_alive;
    call
}

/// Handles an acknowledgement beyond the data seen: reported once if the other direction has advanced since, else once
/// until its number changes.
fn unseen(direction: &mut Side, reverse: &mut Side) {
    let goes_on =
        reverse.contiguous.zip(reverse.next).is_some_and(|(edge, next)| after(next, edge));
    if goes_on {
        reverse.contiguous = reverse.next;
        direction.acks.ack_lost_segment += 1;
        return;
    }
    direction.acks.ack_lost_segment += u64::from(reverse.repeats == 0);
    reverse.repeats = UNSEEN;
}

fn called(
    direction: &Side,
    reverse: &Side,
    packet: &Packet,
    opening_ns: i64,
    kept_alive: bool,
) -> Option<Call> {
    if kept_alive {
        return None;
    }
    let end = packet.seq.wrapping_add(packet.payload);
    let below = direction.next.is_some_and(|next| {
        after(next, packet.seq) && !(packet.payload > 1 && next.wrapping_sub(1) == packet.seq)
    });
    if packet.payload > 0 && reverse.last_ack != 0 && !after(end, reverse.last_ack) {
        return Some(Call::SpuriousRetransmission);
    }
    if !below {
        return None;
    }
    let fast = reverse.repeats >= 2
        && reverse.last_ack == packet.seq
        && packet.time_ns - reverse.last_ack_at < FAST_NS;
    if fast {
        return Some(Call::FastRetransmission);
    }
    let opens = u32::from(packet.flags & (SYN | FIN) != 0);
    let soon = packet.time_ns - direction.next_at < opening_ns;
    Some(if soon && direction.next != Some(end.wrapping_add(opens)) {
        Call::OutOfOrder
    } else {
        Call::Retransmission
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A segment without data that offers a window.
    fn segment(time_ns: i64, flags: u16, window: u16) -> Packet {
        Packet { time_ns, seq: 1, ack: 1, flags: flags | ACK, window, ..Packet::default() }
    }

    #[test]
    fn a_closed_window_is_counted_for_the_direction_that_it_stops() {
        let mut labels = Wireshark::default();
        for (at, (flags, window)) in
            [(0, 512), (0, 0), (0, 0), (FIN, 0), (RST, 0)].into_iter().enumerate()
        {
            labels.take(&segment(at as i64, flags, window), 1);
        }
        assert_eq!(labels.labels(0).zero_window, 2, "neither FIN nor RST counts");
        assert_eq!(labels.labels(1).zero_window, 0);
        assert_eq!(labels.labels(0).zero_window_probe, 0);
    }
}
