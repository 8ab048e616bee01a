//! Limits of the sender over time, inferred from its own capture by the event that ends each of its silences.
//!
//! A silence that an acknowledgement ends was spent waiting for a window: the receiver's, if no full segment fitted below the edge it had
//! offered, else the congestion window. One after a segment that ends a write short of a full one, or that ends without a reason in the capture while
//! everything is acknowledged, was the application's. What lies between: pacing and timers, which the congestion control owns. PSH alone tells
//! nothing: Linux sets it on every burst.

/// An acknowledgement so shortly before a segment let it go; hosts answer within tens of microseconds, busy ones within a millisecond.
const REACTION_NS: i64 = 1_000_000;

/// Limiting factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// The congestion window, or pacing.
    Cwnd,
    /// The receiver's window.
    Receiver,
    /// The application, or its socket's buffer.
    Application,
}

/// The last segment of data that was sent.
#[derive(Clone, Copy, Debug)]
struct Last {
    at: i64,
    /// The segment ended a write, and was shorter than a full one.
    ended_short: bool,
    /// No full segment more would have fitted below the offered edge, at some time since.
    at_edge: bool,
    /// Time at which a full segment fitted again.
    opened_at: Option<i64>,
}

/// A slice of time: from, until, what limited.
pub type Slice = (i64, i64, Limit);

/// Time by what limited.
#[derive(Debug, Default)]
pub struct Limits {
    last: Option<Last>,
    /// Time of the last acknowledgement of new data.
    acked: Option<i64>,
    /// The slices themselves, if they are kept.
    pub slices: Option<Vec<Slice>>,
    /// Nanoseconds by limit, in the order of [`Limit`].
    pub spent_ns: [i64; 3],
}

/// A segment of data as the limits see it.
#[derive(Clone, Copy, Debug)]
pub struct Sending {
    /// Send time.
    pub at: i64,
    /// With PSH.
    pub pushed: bool,
    /// Shorter than a full segment.
    pub short: bool,
    /// Seen before.
    pub again: bool,
    /// Bytes between its end and the offered edge.
    pub room: Option<i64>,
    /// The length of a full segment.
    pub full: u32,
    /// Bytes in flight before it.
    pub outstanding: i64,
    /// A loss is being recovered from.
    pub recovering: bool,
}

impl Limits {
    /// A segment of data was sent.
    pub fn on_sent(&mut self, sending: &Sending) {
        let limit = self.last.map(|last| self.limit(&last, sending));
        if let (Some(limit), Some(last)) = (limit, self.last) {
            self.spend(last.at, sending.at, limit);
        }
        self.last = Some(Last {
            at: sending.at,
            ended_short: sending.pushed && sending.short,
            at_edge: sending.room.is_some_and(|room| room < i64::from(sending.full)),
            opened_at: None,
        });
    }

    fn limit(&self, last: &Last, sending: &Sending) -> Limit {
        if sending.again || sending.recovering {
            return Limit::Cwnd;
        }
        let idle = sending.outstanding == 0;
        let answered = self.acked.is_some_and(|at| at >= last.at && sending.at - at <= REACTION_NS);
        if last.at_edge && last.opened_at.is_none_or(|at| sending.at - at <= REACTION_NS) {
            return Limit::Receiver;
        }
        if last.ended_short || (idle && !answered) {
            return Limit::Application;
        }
        Limit::Cwnd
    }

    /// True when an acknowledgement shortly before `at` released a segment.
    pub fn releases(&self, at: i64) -> bool {
        self.acked.is_some_and(|acked| at - acked <= REACTION_NS)
    }

    /// Data were acknowledged.
    pub fn acknowledged(&mut self, at: i64) {
        self.acked = Some(at);
    }

    /// The receiver offers room for so many bytes more, or less than for a full segment.
    pub fn offered(&mut self, at: i64, room: i64, full: u32) {
        let Some(last) = &mut self.last else { return };
        if room < i64::from(full) {
            last.at_edge = true;
            last.opened_at = None;
        } else if last.at_edge && last.opened_at.is_none() {
            last.opened_at = Some(at);
        }
    }

    /// The last moment of the flow; `closed`: the sender had no more data.
    pub fn end(&mut self, at: i64, closed: bool) {
        if let Some(last) = self.last.take() {
            let limit = if closed {
                Limit::Application
            } else if last.at_edge && last.opened_at.is_none() {
                Limit::Receiver
            } else if last.ended_short {
                Limit::Application
            } else {
                Limit::Cwnd
            };
            self.spend(last.at, at, limit);
        }
    }

    fn spend(&mut self, from: i64, until: i64, limit: Limit) {
        if until > from {
            self.spent_ns[limit as usize] += until - from;
            if let Some(slices) = &mut self.slices {
                match slices.last_mut() {
                    Some(last) if last.2 == limit && last.1 == from => last.1 = until,
                    _ => slices.push((from, until, limit)),
                }
            }
        }
    }
}
