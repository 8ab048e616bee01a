//! Event loop of a run: each ready file and due event is handled by the side that owns it.

use crate::fault::Fault;
use crate::load::Lateness;
use crate::side::{Agenda, Desk, Event, Notice, Order, Side, side_of};
use crate::sys::{self, Poll};
use dragstrip_recording::Writer;

/// The token of the timer; those of files are never 0.
pub const TIMER: u64 = 0;
/// The token of what comes from elsewhere; no side has one like it.
pub const ELSEWHERE: u64 = u64::MAX;

/// Sides in other processes, and the observer of the run.
pub trait Elsewhere {
    /// Passes on a notice of a local side.
    fn tell(&mut self, notice: Notice) -> Result<(), Fault>;
    /// Returns the orders that have arrived for the local sides, once [`ELSEWHERE`] is ready.
    fn orders(&mut self) -> Result<Vec<Order>, Fault>;
    /// Reports the run's elapsed time and the bytes that have arrived at the local hosts.
    fn progress(&mut self, now_ns: u64, arrived_bytes: u64);
    /// True when the run is over before its time.
    fn ended(&self) -> bool {
        false
    }
}

/// All sides are in this process.
pub struct Alone<'p>(pub &'p dyn Fn(u64, u64));

impl Elsewhere for Alone<'_> {
    fn tell(&mut self, _notice: Notice) -> Result<(), Fault> {
        Ok(())
    }

    fn orders(&mut self) -> Result<Vec<Order>, Fault> {
        Ok(Vec::new())
    }

    fn progress(&mut self, now_ns: u64, arrived_bytes: u64) {
        (self.0)(now_ns, arrived_bytes);
    }
}

/// Runs the sides of this process from `start`, a time of its clock, for `end_ns`. What a side has to say is carried
/// over before anything else happens.
pub fn drive(
    sides: &mut [Side<'_>],
    poll: &Poll,
    (start, end_ns): (i64, i64),
    tables: &mut Writer,
    elsewhere: &mut dyn Elsewhere,
) -> Result<Lateness, Fault> {
    let timer = sys::timer()?;
    poll.add(&timer, libc::EPOLLIN, TIMER)?;
    let mut agenda = Agenda::new(end_ns);
    for side in &mut *sides {
        side.on_order(Order::Begin { start }, &mut agenda);
    }
    let mut ready = Vec::new();
    let mut notices = Vec::new();
    let mut lateness = Lateness::default();
    let (mut counted, mut arrived_bytes) = (0, 0);
    loop {
        sys::arm(&timer, start + agenda.next_ns())?;
        poll.wait(&mut ready, -1)?;
        for &(token, events) in ready.iter().filter(|(token, _)| *token != TIMER) {
            if token == ELSEWHERE {
                for order in elsewhere.orders()? {
                    everybody(sides, order, &mut agenda);
                }
                continue;
            }
            let mut desk =
                Desk { poll, agenda: &mut agenda, tables: &mut *tables, notices: &mut notices };
            sides[side_of(token)].on_file(token, events, &mut desk)?;
            carry_over(&mut notices, sides, &mut agenda, elsewhere)?;
        }
        let now_ns = sys::now() - start;
        while let Some((time_ns, event, side)) = agenda.due(now_ns) {
            let mut desk =
                Desk { poll, agenda: &mut agenda, tables: &mut *tables, notices: &mut notices };
            sides[side].on_event(time_ns, event, &mut desk)?;
            carry_over(&mut notices, sides, &mut agenda, elsewhere)?;
            if event == Event::Sample {
                lateness.sampled(now_ns - time_ns);
                let sizes = &tables.received.wire_bytes.values()[counted..];
                arrived_bytes += sizes.iter().sum::<i64>() as u64;
                counted += sizes.len();
                elsewhere.progress(time_ns as u64, arrived_bytes);
            }
        }
        if now_ns >= end_ns || elsewhere.ended() {
            return Ok(lateness);
        }
    }
}

/// Delivers one side's notices to the sides concerned.
fn carry_over(
    notices: &mut Vec<Notice>,
    sides: &mut [Side<'_>],
    agenda: &mut Agenda,
    elsewhere: &mut dyn Elsewhere,
) -> Result<(), Fault> {
    for notice in notices.drain(..) {
        let Notice::Arrived { flow, at_ns } = notice;
        everybody(sides, Order::Arrived { flow, at_ns }, agenda);
        elsewhere.tell(notice)?;
    }
    Ok(())
}

fn everybody(sides: &mut [Side<'_>], order: Order, agenda: &mut Agenda) {
    for side in sides {
        side.on_order(order, agenda);
    }
}
