//! Limits of every stack: a timer that is always due or a datagram beyond the MTU ends the connection, and nothing else. An endpoint
//! that is closed is silent here: its stack is not called again.

use crate::connection::Connection;
use crate::contract::{Outbox, Snapshot};
use dragstrip_cc::program::Fault;
use dragstrip_units::Instant;

/// Calls of an endpoint at one instant, after each of which its timer is due at once; one more ends the connection.
const WAKES_MAX: u32 = 10_000;

/// A connection under guard.
pub(crate) struct Guard {
    connection: Box<dyn Connection + Send + Sync>,
    payload_bytes: usize,
    deadline: Instant,
    /// The last instant after a call at which the timer was due at once, and such calls in a row.
    wakes: (Instant, u32),
    loss: Option<String>,
    is_closed: bool,
}

/// Lets datagrams of up to a size through.
struct Bound<'a> {
    out: &'a mut dyn Outbox,
    payload_bytes: usize,
    /// Length of one that was too large.
    beyond: Option<usize>,
}

impl Outbox for Bound<'_> {
    fn send(&mut self, payload: &[u8]) {
        if payload.len() > self.payload_bytes {
            self.beyond = Some(payload.len());
        } else {
            self.out.send(payload);
        }
    }
}

impl Guard {
    pub fn new(connection: Box<dyn Connection + Send + Sync>, payload_bytes: u16) -> Self {
        Self {
            connection,
            payload_bytes: payload_bytes.into(),
            deadline: Instant::NEVER,
            wakes: (Instant::NEVER, 0),
            loss: None,
            is_closed: false,
        }
    }

    /// Lets the stack act, and looks at what has come of it.
    fn act(
        &mut self,
        now: Instant,
        out: &mut dyn Outbox,
        act: impl FnOnce(&mut (dyn Connection + Send + Sync), &mut dyn Outbox),
    ) {
        if self.is_closed {
            return;
        }
        let mut bound = Bound { out, payload_bytes: self.payload_bytes, beyond: None };
        act(self.connection.as_mut(), &mut bound);
        if let Some(bytes) = bound.beyond {
            let most = self.payload_bytes;
            self.end(format!("its datagram of {bytes} bytes is beyond the MTU's {most}"));
        }
        if !self.is_closed {
            // A stack may ask for a moment that has passed.
            self.deadline = self.connection.deadline().max(now);
        }
        let (last, wakes) = self.wakes;
        self.wakes = match self.deadline == now {
            true if last == now => (now, wakes + 1),
            is_due => (now, u32::from(is_due)),
        };
        if self.wakes.1 > WAKES_MAX {
            self.end(format!("its timer is still due after {WAKES_MAX} calls"));
        }
    }

    fn end(&mut self, reason: String) {
        self.close();
        self.loss.get_or_insert(reason);
    }

    /// Silences the endpoint.
    pub fn close(&mut self) {
        self.is_closed = true;
        self.deadline = Instant::NEVER;
    }
}

impl Connection for Guard {
    fn open(&mut self, now: Instant, out: &mut dyn Outbox) {
        self.act(now, out, |connection, out| connection.open(now, out));
    }

    fn write_until(&mut self, total: u64, now: Instant, out: &mut dyn Outbox) {
        self.act(now, out, |connection, out| connection.write_until(total, now, out));
    }

    fn stop_writing(&mut self) {
        self.connection.stop_writing();
    }

    fn on_datagram(&mut self, payload: &[u8], now: Instant, out: &mut dyn Outbox) {
        self.act(now, out, |connection, out| connection.on_datagram(payload, now, out));
    }

    fn on_deadline(&mut self, now: Instant, out: &mut dyn Outbox) {
        self.act(now, out, |connection, out| connection.on_deadline(now, out));
    }

    fn deadline(&self) -> Instant {
        self.deadline
    }

    fn bytes_read(&self) -> u64 {
        self.connection.bytes_read()
    }

    fn snapshot(&self) -> Snapshot {
        self.connection.snapshot()
    }

    fn take_rtt_ns(&mut self) -> Option<u64> {
        self.connection.take_rtt_ns()
    }

    fn take_loss(&mut self) -> Option<String> {
        // The stack's own reason, if it has one, is nearer to the cause.
        let own = self.connection.take_loss();
        own.or_else(|| self.loss.take())
    }

    fn fault(&self) -> Option<Fault> {
        self.connection.fault()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stack that sends datagrams of this size, and asks for a timer at this instant.
    struct Fake {
        bytes: usize,
        deadline: Instant,
    }

    impl Connection for Fake {
        fn open(&mut self, _: Instant, out: &mut dyn Outbox) {
            out.send(&vec![0; self.bytes]);
        }

        fn write_until(&mut self, _: u64, _: Instant, _: &mut dyn Outbox) {}

        fn stop_writing(&mut self) {}

        fn on_datagram(&mut self, _: &[u8], _: Instant, _: &mut dyn Outbox) {}

        fn on_deadline(&mut self, _: Instant, _: &mut dyn Outbox) {}

        fn deadline(&self) -> Instant {
            self.deadline
        }

        fn bytes_read(&self) -> u64 {
            0
        }

        fn snapshot(&self) -> Snapshot {
            Snapshot::default()
        }

        fn take_rtt_ns(&mut self) -> Option<u64> {
            None
        }

        fn take_loss(&mut self) -> Option<String> {
            None
        }

        fn fault(&self) -> Option<Fault> {
            None
        }
    }

    #[derive(Default)]
    struct Sizes(Vec<usize>);

    impl Outbox for Sizes {
        fn send(&mut self, payload: &[u8]) {
            self.0.push(payload.len());
        }
    }

    fn guard(bytes: usize, deadline: Instant) -> Guard {
        Guard::new(Box::new(Fake { bytes, deadline }), 1_472)
    }

    #[test]
    fn a_datagram_beyond_the_mtu_is_not_sent_and_ends_the_connection() {
        let mut sizes = Sizes::default();
        for (bytes, sent) in [(1_472, true), (1_473, false)] {
            let mut endpoint = guard(bytes, Instant::from_nanos(9));
            endpoint.open(Instant::from_nanos(5), &mut sizes);
            assert_eq!(endpoint.take_loss().is_none(), sent);
            assert_eq!(endpoint.deadline() == Instant::NEVER, !sent);
        }
        assert_eq!(sizes.0, [1_472]);
    }

    #[test]
    fn a_timer_in_the_past_is_due_now_and_one_that_stays_due_ends_the_connection() {
        let (mut sizes, now) = (Sizes::default(), Instant::from_nanos(5));
        let mut endpoint = guard(0, Instant::from_nanos(3));
        for _ in 0..WAKES_MAX {
            endpoint.on_deadline(now, &mut sizes);
            assert_eq!(endpoint.deadline(), now);
        }
        assert_eq!(endpoint.take_loss(), None);
        endpoint.on_deadline(now, &mut sizes);
        assert_eq!(endpoint.deadline(), Instant::NEVER);
        assert!(endpoint.take_loss().is_some_and(|loss| loss.contains("still due")));
    }

    #[test]
    fn a_timer_that_is_always_late_is_no_fault() {
        let mut sizes = Sizes::default();
        let mut endpoint = guard(0, Instant::from_nanos(3));
        for at in 3..u64::from(2 * WAKES_MAX) {
            endpoint.on_deadline(Instant::from_nanos(at), &mut sizes);
        }
        assert_eq!(endpoint.take_loss(), None);
    }
}
