//! Every discipline behind one type, dispatched statically.

use crate::codel::Codel;
use crate::computed::{ComputedFifo, Server};
use crate::contract::{Backlog, Dequeue, Item, Qdisc, Sink};
use crate::fifo::Fifo;
use crate::fq_codel::FqCodel;
use crate::htb::Htb;
use crate::netem::Netem;
use crate::sfq::Sfq;
use crate::tbf::Tbf;
use dragstrip_units::{Instant, Rate};

/// Any discipline of this crate.
#[derive(Clone, Debug)]
pub enum Discipline {
    /// noqueue, bfifo, pfifo.
    Fifo(Fifo),
    /// Token bucket filter.
    Tbf(Box<Tbf>),
    /// An htb class with its leaf.
    Htb(Box<Htb<Discipline>>),
    /// CoDel.
    Codel(Box<Codel>),
    /// FQ-CoDel.
    FqCodel(Box<FqCodel>),
    /// Stochastic fairness queueing.
    Sfq(Box<Sfq>),
    /// Network emulator.
    Netem(Box<Netem>),
}

impl Discipline {
    /// The closed form, where there is one: a FIFO, bare or behind a token bucket. `line` is the
    /// transmitter behind it (rate, and bytes added to every packet); `observed`: its backlog will
    /// be asked for. Only of a discipline that no packet has passed yet.
    #[must_use]
    pub fn computed(&self, line: Option<(Rate, u32)>, observed: bool) -> Option<ComputedFifo> {
        let (limit, server) = match self {
            Self::Fifo(fifo) => (fifo.limit(), Server::Instant),
            Self::Tbf(tbf) => (tbf.limit(), Server::Tbf(tbf.shaper().clone())),
            Self::Htb(htb) => match htb.leaf() {
                Self::Fifo(fifo) => (fifo.limit(), Server::Htb(htb.shaper().clone())),
                Self::Tbf(_)
                | Self::Htb(_)
                | Self::Codel(_)
                | Self::FqCodel(_)
                | Self::Sfq(_)
                | Self::Netem(_) => return None,
            },
            Self::Codel(_) | Self::FqCodel(_) | Self::Sfq(_) | Self::Netem(_) => return None,
        };
        let computed = ComputedFifo::new(limit, server, observed);
        Some(match line {
            Some((rate, overhead)) => computed.with_line(rate, overhead),
            None => computed,
        })
    }
}

impl From<Fifo> for Discipline {
    fn from(fifo: Fifo) -> Self {
        Self::Fifo(fifo)
    }
}

macro_rules! boxed {
    ($($variant:ident($inner:ty)),*) => {
        $(impl From<$inner> for Discipline {
            fn from(inner: $inner) -> Self {
                Self::$variant(Box::new(inner))
            }
        })*
    };
}

boxed!(Tbf(Tbf), Htb(Htb<Discipline>), Codel(Codel), FqCodel(FqCodel), Sfq(Sfq), Netem(Netem));

/// Evaluates `$call` with `$inner` bound to whichever discipline `$any` holds.
macro_rules! dispatch {
    ($any:expr, $inner:ident => $call:expr) => {
        match $any {
            Discipline::Fifo($inner) => $call,
            Discipline::Tbf($inner) => $call,
            Discipline::Htb($inner) => $call,
            Discipline::Codel($inner) => $call,
            Discipline::FqCodel($inner) => $call,
            Discipline::Sfq($inner) => $call,
            Discipline::Netem($inner) => $call,
        }
    };
}

impl Qdisc for Discipline {
    #[inline]
    fn enqueue<S: Sink>(&mut self, item: Item, now: Instant, sink: &mut S) {
        dispatch!(self, inner => inner.enqueue(item, now, sink));
    }

    #[inline]
    fn dequeue<S: Sink>(&mut self, now: Instant, sink: &mut S) -> Dequeue {
        dispatch!(self, inner => inner.dequeue(now, sink))
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        dispatch!(self, inner => inner.backlog())
    }
}
