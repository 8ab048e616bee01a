//! ECN feedback from the receiver to the sender (`tcp_ecn_check_ce`, `tcp_ecn_accept_cwr`; `dctcp_ece_ack_update`).

use super::acknowledge::Acknowledger;
use crate::ecn::Agreed;
use crate::segment::Ecn;

/// The echo and what it depends on.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Feedback {
    mode: Agreed,
    /// ECE is set on whatever leaves (`TCP_ECN_DEMAND_CWR`).
    pub echo: bool,
    /// ECN-capable data was seen.
    seen: bool,
    /// The last data segment was marked (DCTCP.CE).
    marked: bool,
}

impl Feedback {
    pub fn new(mode: Agreed) -> Self {
        Self { mode, ..Self::default() }
    }

    /// RFC 8257 §3.2: the echo is about to change, so that an ACK that is being delayed must leave before, with the
    /// old one.
    #[inline]
    pub fn changes(&self, ecn: Ecn) -> bool {
        match self.mode {
            Agreed::None | Agreed::Classic | Agreed::Accurate(_) => false,
            Agreed::Dctcp => ecn.is_capable() && (ecn == Ecn::Ce) != self.marked,
        }
    }

    /// Data that is new has arrived; `window` is what is offered.
    pub fn on_data(&mut self, ecn: Ecn, acks: &mut Acknowledger, window: u64) {
        // Accurate ECN has counters (accurate.rs).
        if !self.mode.by_flags() {
            return;
        }
        let marked = match ecn {
            Ecn::Ce => true,
            Ecn::Ect0 | Ecn::Ect1 => false,
            Ecn::NotEct => {
                if self.seen {
                    // Not ECN-capable among others that are: a retransmission.
                    acks.enter_quick(2, window);
                }
                return;
            }
        };
        self.seen = true;
        match self.mode {
            Agreed::None | Agreed::Accurate(_) => {}
            // Until the sender says CWR.
            Agreed::Classic => {
                if marked && !self.echo {
                    // The sender's window may be very low: do not delay ACKs.
                    acks.enter_quick(2, window);
                    self.echo = true;
                }
            }
            Agreed::Dctcp => {
                if marked != self.marked {
                    acks.acknowledge_now();
                }
                self.echo = marked;
            }
        }
        self.marked = marked;
    }

    /// CWR: the echo has been heard. With data, the sender's window may be very low: it is acknowledged at once.
    pub fn accept_cwr(&mut self, with_data: bool, acks: &mut Acknowledger) {
        if self.mode.by_flags() {
            self.echo = false;
            if with_data {
                acks.acknowledge_now();
            }
        }
    }
}
