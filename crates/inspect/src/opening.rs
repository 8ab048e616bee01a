//! Optional features in a handshake: Multipath TCP (RFC 8684), TCP Fast Open (RFC 7413).

use crate::connection::Connection;
use serde::Serialize;

/// TCP Fast Open in a handshake.
#[derive(Debug, Serialize)]
pub struct FastOpen {
    /// The client requested a cookie (`requested`) or had one (`sent`).
    pub cookie: &'static str,
    /// Bytes of data in the SYN.
    pub bytes: u32,
    /// The SYN-ACK acknowledged them; null without data or SYN-ACK.
    pub accepted: Option<bool>,
}

/// Role of a connection as a subflow of Multipath TCP, if it is one.
pub fn mptcp(point: &Connection) -> Option<&'static str> {
    const CAPABLE: u8 = 0;
    const JOIN: u8 = 1;
    let of = |answers: bool| {
        let mut sides = point.sides.iter();
        sides.find(|side| side.answers() == Some(answers)).and_then(|side| side.mptcp[0])
    };
    match (of(false), of(true)) {
        (Some(CAPABLE), Some(CAPABLE)) => Some("initial"),
        (Some(JOIN), Some(JOIN)) => Some("joined"),
        (Some(_), _) => Some("offered"),
        _ => point.sides.iter().any(|side| side.mptcp[1].is_some()).then_some("subflow"),
    }
}

/// TCP Fast Open, if a SYN had the option.
pub fn fast_open(point: &Connection) -> Option<FastOpen> {
    let opener = point.sides.iter().find(|side| side.answers() == Some(false))?;
    let cookie = opener.fast_open?;
    Some(FastOpen {
        cookie: if cookie == 0 { "requested" } else { "sent" },
        bytes: opener.syn_bytes,
        accepted: point.syn_accepted,
    })
}
