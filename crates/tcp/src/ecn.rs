//! ECN: who asks for it and who grants it, and the codepoint of every segment.
//!
//! Marks are echoed in `receiver/feedback.rs` and `receiver/accurate.rs`; echoes are counted in
//! `sender/linux_6/marks.rs` and `accurate.rs`. An algorithm's request is its row's [`EcnMode`].
//!
//! The three flags AE, CWR and ECE as a number, in the handshake (RFC 9768 §3.1.1, table 2):
//!
//! | SYN | SYN-ACK | agreed on |
//! |---|---|---|
//! | 000 | 000 | nothing |
//! | 011 | 001 | classic ECN (RFC 3168) |
//! | 111 | 010, 011, 100, 110: the SYN came as Not-ECT, ECT(1), ECT(0), CE | accurate ECN |
//! | 111 | 001, 101 | classic ECN: the server knows no other |
//! | 111 | 000, 111 | nothing |
//!
//! A server that knows accurate ECN takes every SYN but 000 and 011 for 111. The client's last segment of the handshake says
//! in the same code how the SYN-ACK came; from then on the number is a counter.

use crate::profile::{Settings, StackKind};
use crate::segment::{Ecn, Flags};
use dragstrip_cc::EcnMode;

/// Kind of a segment, as far as its codepoint depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Carries {
    /// Data sent for the first time.
    NewData,
    /// Data retransmitted.
    Retransmission,
    /// Nothing but an acknowledgement.
    Ack,
}

/// Result of the ECN negotiation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Agreed {
    /// No ECN.
    #[default]
    None,
    /// RFC 3168: an echo until CWR.
    Classic,
    /// RFC 8257: an echo of each segment's mark.
    Dctcp,
    /// RFC 9768: counters; and every segment's codepoint.
    Accurate(Ecn),
}

impl Agreed {
    fn accurate(mode: EcnMode) -> Self {
        Self::Accurate(match mode {
            EcnMode::Classic | EcnMode::Dctcp => Ecn::Ect0,
            EcnMode::L4s => Ecn::Ect1,
        })
    }

    /// True when the flag ECE is an echo, and CWR its answer.
    #[inline]
    pub fn by_flags(self) -> bool {
        matches!(self, Self::Classic | Self::Dctcp)
    }

    /// True when counters carry the feedback.
    #[inline]
    pub fn by_counters(self) -> bool {
        matches!(self, Self::Accurate(_))
    }

    /// The codepoint of a segment (`tcp_ecn_send`). RFC 3168 §6.1.4, §6.1.5: not on a pure ACK or a retransmission; with DCTCP
    /// and accurate ECN on all.
    #[inline]
    pub fn codepoint(self, carries: Carries) -> Ecn {
        match (self, carries) {
            (Self::None, _) | (Self::Classic, Carries::Retransmission | Carries::Ack) => {
                Ecn::NotEct
            }
            (Self::Classic, Carries::NewData) | (Self::Dctcp, _) => Ecn::Ect0,
            (Self::Accurate(ecn), _) => ecn,
        }
    }
}

/// Request of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    None,
    Classic,
    Accurate,
}

/// True when the host's stack has accurate ECN: that of Linux 6 can be given it, though Linux has had it only since
/// 6.18.
fn can_count(settings: &Settings) -> bool {
    matches!(settings.profile.stack, StackKind::Linux6)
}

/// Returns a client's request (`tcp_ecn_send_syn`).
pub(crate) fn asks(mode: EcnMode, settings: &Settings) -> Request {
    match mode {
        EcnMode::L4s if can_count(settings) => Request::Accurate,
        EcnMode::L4s => Request::None,
        EcnMode::Classic | EcnMode::Dctcp if settings.accurate_ecn_request => Request::Accurate,
        EcnMode::Dctcp => Request::Classic,
        EcnMode::Classic if settings.ecn_request => Request::Classic,
        EcnMode::Classic => Request::None,
    }
}

/// The flags of a SYN that has been sent so many times before. RFC 3168 §6.1.1.1: the first one that is lost may have been
/// dropped for them (`tcp_ecn_clear_syn`); RFC 9768 §3.1.4.1: accurate ECN is asked for once more before that.
pub(crate) fn syn_flags(request: Request, retransmits: u32, settings: &Settings) -> Flags {
    let (ace, tries) = match request {
        Request::None => return Flags::SYN,
        Request::Classic => (0b011, 1),
        Request::Accurate => (0b111, 2),
    };
    let gives_up = settings.ecn_fallback && retransmits >= tries;
    Flags::SYN.with_ace(if gives_up { 0 } else { ace })
}

/// Returns the grant of a server to a SYN with these flags that came with the codepoint `syn`
/// (`tcp_ecn_create_request`): without accurate ECN, a SYN that is itself ECN-capable wants more than RFC 3168.
pub(crate) fn grants(mode: EcnMode, settings: &Settings, flags: Flags, syn: Ecn) -> Agreed {
    let classic = flags.has(Flags::ECE.with(Flags::CWR));
    let accurate = can_count(settings) && !matches!(flags.ace(), 0b000 | 0b011);
    match mode {
        EcnMode::L4s if accurate => Agreed::accurate(mode),
        EcnMode::Classic | EcnMode::Dctcp if accurate && settings.accurate_ecn_accept => {
            Agreed::accurate(mode)
        }
        EcnMode::Dctcp if classic => Agreed::Dctcp,
        EcnMode::Classic if classic && settings.ecn_accept && !syn.is_capable() => Agreed::Classic,
        EcnMode::Classic | EcnMode::Dctcp | EcnMode::L4s => Agreed::None,
    }
}

/// The flags of a SYN-ACK that answers a SYN that came with the codepoint `syn`.
pub(crate) fn syn_ack_flags(agreed: Agreed, syn: Ecn) -> Flags {
    Flags::SYN.with(Flags::ACK).with_ace(match agreed {
        Agreed::None => 0,
        Agreed::Classic | Agreed::Dctcp => 0b001,
        Agreed::Accurate(_) => handshake_code(syn),
    })
}

/// Returns the agreement after a SYN-ACK with these flags (`tcp_ecn_rcv_synack`). An algorithm for L4S takes accurate
/// ECN or none.
pub(crate) fn agrees(mode: EcnMode, request: Request, flags: Flags) -> Agreed {
    match (request, flags.ace()) {
        (Request::None, _) | (Request::Accurate, 0b000 | 0b111) => Agreed::None,
        (Request::Accurate, 0b001 | 0b101) => match mode {
            EcnMode::L4s => Agreed::None,
            EcnMode::Classic => Agreed::Classic,
            EcnMode::Dctcp => Agreed::Dctcp,
        },
        (Request::Accurate, _) => Agreed::accurate(mode),
        (Request::Classic, 0b001 | 0b101) => match mode {
            EcnMode::Dctcp => Agreed::Dctcp,
            EcnMode::Classic | EcnMode::L4s => Agreed::Classic,
        },
        (Request::Classic, _) => Agreed::None,
    }
}

/// Encodes the codepoint of the peer's handshake segment in a segment of the handshake (RFC 9768 §3.1.1).
pub(crate) fn handshake_code(seen: Ecn) -> u8 {
    match seen {
        Ecn::NotEct => 0b010,
        Ecn::Ect1 => 0b011,
        Ecn::Ect0 => 0b100,
        Ecn::Ce => 0b110,
    }
}

/// True when a code of the handshake reports an allowed change to the codepoint `sent`, or none: only CE may take
/// the place of an ECT, and nothing that of Not-ECT (RFC 9768 §3.2.2.3). Codes without a meaning yet say nothing.
pub(crate) fn is_credible(sent: Ecn, code: u8) -> bool {
    match code {
        0b000 => false,
        0b001 | 0b101 | 0b111 => true,
        0b110 => sent.is_capable(),
        _ => code == handshake_code(sent),
    }
}

/// The codepoint of a SYN that asks for ECN, or of a SYN-ACK that grants it (`tcp_ecn_send_syn`, `tcp_ecn_send_synack`). RFC 3168
/// §6.1.1: not ECN-capable, but where the algorithm cannot do without ECN.
pub(crate) fn handshake_codepoint(mode: EcnMode) -> Ecn {
    match mode {
        EcnMode::Classic => Ecn::NotEct,
        EcnMode::Dctcp => Ecn::Ect0,
        EcnMode::L4s => Ecn::Ect1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9768 table 2: what a client that has asked for accurate ECN makes of an answer.
    #[test]
    fn every_answer_to_a_syn_that_asks_for_accurate_ecn() {
        let of =
            |mode| (0..8).map(move |ace| agrees(mode, Request::Accurate, Flags::SYN.with_ace(ace)));
        let [c, n] = [Agreed::Classic, Agreed::None];
        let a = Agreed::Accurate(Ecn::Ect0);
        assert!(of(EcnMode::Classic).eq([n, c, a, a, a, c, a, n]));
        let a = Agreed::Accurate(Ecn::Ect1);
        let alone = [n, n, a, a, a, n, a, n];
        assert!(of(EcnMode::L4s).eq(alone), "an algorithm for L4S takes no classic ECN");
    }

    /// RFC 9768 §3.1.2: any SYN but 000 and 011.
    #[test]
    fn every_syn_to_servers_with_and_without_accurate_ecn() {
        let server = |accurate| {
            let settings = Settings { accurate_ecn_accept: accurate, ..Settings::linux_6() };
            let grant =
                |ace| grants(EcnMode::Classic, &settings, Flags::SYN.with_ace(ace), Ecn::NotEct);
            (0..8).map(grant).collect::<Vec<_>>()
        };
        let [a, c, n] = [Agreed::Accurate(Ecn::Ect0), Agreed::Classic, Agreed::None];
        assert_eq!(server(true), [n, a, a, c, a, a, a, a]);
        assert_eq!(server(false), [n, n, n, c, n, n, n, c], "AE means nothing to it");
    }

    #[test]
    fn a_code_is_credible_if_the_path_may_have_done_that() {
        let credible = |sent| (0..8).filter(|code| is_credible(sent, *code)).collect::<Vec<u8>>();
        assert_eq!(credible(Ecn::NotEct), [1, 2, 5, 7]);
        assert_eq!(credible(Ecn::Ect1), [1, 3, 5, 6, 7]);
        assert_eq!(credible(Ecn::Ect0), [1, 4, 5, 6, 7]);
    }
}
