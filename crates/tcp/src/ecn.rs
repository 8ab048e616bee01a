//! ECN: who asks for it and who grants it, and the codepoint of every segment.
//!
//! How marks are echoed is in `receiver/feedback.rs`, how echoes are counted in `sender/linux_6/marks.rs`. What an algorithm
//! asks for is its row's [`EcnMode`]; another mode is an arm in each of the three files.

use crate::profile::Settings;
use crate::segment::Ecn;
use dragstrip_cc::EcnMode;

/// What a segment is, as far as its codepoint depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Carries {
    /// A SYN, or a SYN-ACK that grants ECN.
    Syn,
    /// Data sent for the first time.
    NewData,
    /// Data retransmitted.
    Retransmission,
    /// Nothing but an acknowledgement.
    Ack,
}

/// Whether a client asks for ECN (`tcp_ecn_send_syn`).
pub(crate) fn asks(mode: EcnMode, settings: &Settings) -> bool {
    match mode {
        EcnMode::Classic => settings.ecn_request,
        EcnMode::Dctcp => true,
    }
}

/// Whether a server grants it to a SYN with the codepoint `syn` that asks for it (`tcp_ecn_create_request`): a SYN
/// that is itself ECN-capable wants more than RFC 3168.
pub(crate) fn grants(mode: EcnMode, settings: &Settings, syn: Ecn) -> bool {
    match mode {
        EcnMode::Classic => settings.ecn_accept && !syn.is_capable(),
        EcnMode::Dctcp => true,
    }
}

/// The codepoint of a segment of a connection that uses ECN or asks for it (`tcp_ecn_send`).
#[inline]
pub(crate) fn codepoint(mode: EcnMode, carries: Carries) -> Ecn {
    match (mode, carries) {
        (EcnMode::Classic, Carries::NewData) | (EcnMode::Dctcp, _) => Ecn::Ect0,
        // RFC 3168 §6.1.1, §6.1.4, §6.1.5: not on a SYN, a pure ACK or a retransmission.
        (EcnMode::Classic, Carries::Syn | Carries::Ack | Carries::Retransmission) => Ecn::NotEct,
    }
}
