//! Slots: the delay line opens for a moment, and what is due leaves together.

use dragstrip_units::{Duration, Instant, Stream};

/// Times at which the delay line opens, and for how much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// The least time to the next slot.
    pub min: Duration,
    /// The greatest; the time is drawn uniformly.
    pub max: Duration,
    /// Packets of a slot, up to 2147483647, which is as good as no limit.
    pub packets: u32,
    /// Bytes of a slot: the packet that reaches them is its last one.
    pub bytes: u32,
}

/// The slot that is open or comes next.
///
/// Slots do not tick by themselves: the next one is counted from when the one before was used up, or, where that one
/// lies before the first packet is due, from the moment at which the queue is asked for it (`netem_dequeue`).
#[derive(Clone, Debug)]
pub(super) struct Slots {
    slot: Slot,
    opens: Instant,
    packets_left: i64,
    bytes_left: i64,
}

impl Slots {
    pub(super) fn new(slot: Slot) -> Self {
        let Slot { packets, bytes, .. } = slot;
        let (packets_left, bytes_left) = (i64::from(packets), i64::from(bytes));
        Self { slot, opens: Instant::ZERO, packets_left, bytes_left }
    }

    /// As set up anew (`get_slot`): open from now on.
    pub(super) fn restart(&mut self, now: Instant) {
        *self = Self { opens: now, ..Self::new(self.slot) };
    }

    pub(super) fn opens(&self) -> Instant {
        self.opens
    }

    pub(super) fn is_open(&self, now: Instant) -> bool {
        self.opens <= now
    }

    /// The first packet is due at `due`: a slot that opened before is over.
    pub(super) fn before(&mut self, due: Instant, now: Instant, stream: &mut Stream) {
        if self.opens < due {
            self.next(now, stream);
        }
    }

    /// A packet of `len` bytes left.
    pub(super) fn passed(&mut self, len: u32, now: Instant, stream: &mut Stream) {
        self.packets_left -= 1;
        self.bytes_left -= i64::from(len);
        if self.packets_left <= 0 || self.bytes_left <= 0 {
            self.next(now, stream);
        }
    }

    /// `get_slot_next`.
    fn next(&mut self, now: Instant, stream: &mut Stream) {
        let Slot { min, max, packets, bytes } = self.slot;
        let span = u128::from(max.as_nanos().saturating_sub(min.as_nanos()));
        let offset_ns = if span == 0 { 0 } else { (u128::from(stream.next_u32()) * span) >> 32 };
        self.opens = now + min + Duration::from_nanos(offset_ns as u64);
        (self.packets_left, self.bytes_left) = (i64::from(packets), i64::from(bytes));
    }
}
