//! QUIC stacks of other projects, the congestion controls of each, and the parameters of their flows.

use dragstrip_cc::{Options, Parameter, Range};
use dragstrip_units::nearest;

/// Payload of a UDP datagram that every path of QUIC must carry (RFC 9000, section 14).
pub const PAYLOAD_BYTES_MIN: u16 = 1_200;

/// Headers of IPv4 and UDP in front of it.
pub const HEADERS_BYTES: u16 = 28;

/// A QUIC stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stack {
    /// ngtcp2, a library of C that is loaded when a flow needs it.
    Ngtcp2,
    /// noq, n0's fork of quinn.
    Noq,
    /// quinn.
    Quinn,
    /// s2n-quic, of Amazon.
    S2nQuic,
}

impl Stack {
    /// Beginning of its words.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ngtcp2 => "ngtcp2",
            Self::Noq => "noq",
            Self::Quinn => "quinn",
            Self::S2nQuic => "s2n-quic",
        }
    }

    /// True if it is a library that a machine may lack, not a part of this build.
    #[must_use]
    pub const fn is_library(self) -> bool {
        match self {
            Self::Ngtcp2 => true,
            Self::Noq | Self::Quinn | Self::S2nQuic => false,
        }
    }

    /// Parameters of a flow that it has no setting for.
    #[must_use]
    pub const fn lacks(self) -> &'static [&'static str] {
        match self {
            Self::Ngtcp2 => &["initial_window"],
            Self::Noq | Self::Quinn => &[],
            Self::S2nQuic => &["ack_threshold"],
        }
    }

    /// The crate or library, and its release.
    #[must_use]
    pub const fn release(self) -> &'static str {
        match self {
            Self::Ngtcp2 => "libngtcp2 0.12.1",
            Self::Noq => "noq-proto 1.4.0",
            Self::Quinn => "quinn-proto 0.11.19",
            Self::S2nQuic => "s2n-quic-transport 0.83.0",
        }
    }
}

/// A congestion control of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// CUBIC (RFC 9438).
    Cubic,
    /// NewReno (RFC 9002, section 7).
    NewReno,
    /// BBR, version 1.
    Bbr,
    /// BBR, version 2.
    Bbr2,
}

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// The word for it: stack and algorithm.
    pub name: &'static str,
    /// Stack.
    pub stack: Stack,
    /// Algorithm.
    pub algorithm: Algorithm,
    /// For lists, a sentence without its full stop.
    pub title: &'static str,
}

const TABLE: &[About] = &[
    About {
        name: "ngtcp2/bbr",
        stack: Stack::Ngtcp2,
        algorithm: Algorithm::Bbr,
        title: "BBR of ngtcp2, version 1",
    },
    About {
        name: "ngtcp2/bbr2",
        stack: Stack::Ngtcp2,
        algorithm: Algorithm::Bbr2,
        title: "BBR of ngtcp2, version 2",
    },
    About {
        name: "ngtcp2/cubic",
        stack: Stack::Ngtcp2,
        algorithm: Algorithm::Cubic,
        title: "CUBIC of ngtcp2: paced, with HyStart++",
    },
    About {
        name: "ngtcp2/reno",
        stack: Stack::Ngtcp2,
        algorithm: Algorithm::NewReno,
        title: "NewReno of ngtcp2: paced",
    },
    About {
        name: "noq/cubic",
        stack: Stack::Noq,
        algorithm: Algorithm::Cubic,
        title: "CUBIC of noq: paced, slow start without HyStart",
    },
    About {
        name: "noq/newreno",
        stack: Stack::Noq,
        algorithm: Algorithm::NewReno,
        title: "NewReno of noq: paced",
    },
    About {
        name: "quinn/bbr",
        stack: Stack::Quinn,
        algorithm: Algorithm::Bbr,
        title: "BBR of quinn, version 1 as a window: the pacer does not read its rate",
    },
    About {
        name: "quinn/cubic",
        stack: Stack::Quinn,
        algorithm: Algorithm::Cubic,
        title: "CUBIC of quinn: paced, slow start without HyStart",
    },
    About {
        name: "quinn/newreno",
        stack: Stack::Quinn,
        algorithm: Algorithm::NewReno,
        title: "NewReno of quinn: paced",
    },
    About {
        name: "s2n-quic/bbr",
        stack: Stack::S2nQuic,
        algorithm: Algorithm::Bbr2,
        title: "BBR of s2n-quic, version 2",
    },
    About {
        name: "s2n-quic/cubic",
        stack: Stack::S2nQuic,
        algorithm: Algorithm::Cubic,
        title: "CUBIC of s2n-quic: paced, with HyStart++",
    },
];

/// The table, in alphabetical order.
#[must_use]
pub const fn about() -> &'static [About] {
    TABLE
}

/// Every word.
pub fn names() -> impl Iterator<Item = &'static str> + Clone {
    TABLE.iter().map(|row| row.name)
}

/// Beginning of the name of a congestion control that is Dragstrip's own, within a stack.
pub const OWN: &str = "dragstrip-";

/// A congestion control that a flow of QUIC has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control<'a> {
    /// One of the stack's.
    Stack(Stack, Algorithm),
    /// One of Dragstrip's, or a program, by its name in TCP: `noq/dragstrip-cubic`. Only noq tells its controllers enough for it.
    Own(&'a str),
}

impl Control<'_> {
    /// The stack that carries the flow.
    #[must_use]
    pub const fn stack(self) -> Stack {
        match self {
            Self::Stack(stack, _) => stack,
            Self::Own(_) => Stack::Noq,
        }
    }
}

/// Position in a word at which the name of one of Dragstrip's algorithms begins: behind `noq/dragstrip-`, else 0.
#[must_use]
pub fn own_start(word: &str) -> usize {
    match word.split_once('/') {
        Some((stack, name)) if name.starts_with(OWN) => stack.len() + 1 + OWN.len(),
        Some(_) | None => 0,
    }
}

/// The congestion control of a word. Whether there is one of Dragstrip's with that name is not checked.
///
/// # Errors
/// The words that there are.
pub fn find(word: &str) -> Result<Control<'_>, String> {
    if let Some(row) = TABLE.iter().find(|row| row.name == word) {
        return Ok(Control::Stack(row.stack, row.algorithm));
    }
    let (stack, own) = word.split_at(own_start(word));
    match stack.split_once('/') {
        Some(("noq", _)) => return Ok(Control::Own(own)),
        Some(_) => {
            return Err(format!(
                "noq/{OWN}{own}: only noq tells a controller packet numbers and takes a pacing rate from it"
            ));
        }
        None => {}
    }
    let list = names().collect::<Vec<_>>().join(", ");
    if word == "noq/bbr3" || word == "noq/bbr" {
        // `Bbr3Config::probe_rng_seed` has no setter in noq-proto 1.4.0.
        return Err(format!(
            "one of {list}; noq's BBRv3 cannot be seeded, so no run of it could be repeated (Dragstrip's own in noq: noq/{OWN}bbr3)"
        ));
    }
    let nearest = nearest(word, names()).unwrap_or(TABLE[0].name);
    Err(format!("one of {list}, or noq/{OWN}NAME; did you mean {nearest:?}?"))
}

/// Parameters of every flow of QUIC, beside those of a congestion control of Dragstrip's.
pub const PARAMETERS: &[Parameter] = &[
    Parameter::new(
        "ack_threshold",
        1.0,
        Range::Whole(1, 100),
        "packets",
        "packets that may arrive without an acknowledgement at once",
        "draft-ietf-quic-ack-frequency, Ack-Eliciting Threshold",
    ),
    Parameter::new(
        "initial_window",
        0.0,
        Range::Whole(0, 1_000),
        "datagrams",
        "initial congestion window; 0: the stack's, 12,000 or 14,720 bytes",
        "RFC 9002, section 7.2",
    ),
    Parameter::new(
        "stream_window",
        1_250_000.0,
        Range::Whole(1_500, 1_000_000_000),
        "bytes",
        "flow control: bytes of a stream that its receiver takes beyond what was read",
        "RFC 9000, section 4.1",
    ),
    Parameter::new(
        "streams",
        4.0,
        Range::Whole(1, 100),
        "streams",
        "streams that share the data",
        "RFC 9000, section 2",
    ),
];

/// Settings of a flow of QUIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowSettings {
    /// Packets that may arrive without an acknowledgement at once; `None`: the extension is not used.
    pub ack_threshold: Option<u32>,
    /// Initial window, datagrams; `None`: the stack's.
    pub initial_window: Option<u32>,
    /// Flow control of a stream, bytes.
    pub stream_window: u32,
    /// Streams that share the data.
    pub streams: u32,
}

impl FlowSettings {
    /// The settings that these options name; the rest of them belongs to a congestion control.
    #[must_use]
    pub fn new(options: &Options) -> Self {
        let given = |name: &str| options.get(name).map(|value| *value as u32);
        let value = |name: &str| {
            let row = PARAMETERS.iter().find(|parameter| parameter.name == name);
            given(name).unwrap_or_else(|| row.map_or(0, |row| row.default as u32))
        };
        Self {
            ack_threshold: given("ack_threshold"),
            initial_window: Some(value("initial_window")).filter(|packets| *packets > 0),
            stream_window: value("stream_window"),
            streams: value("streams"),
        }
    }
}

/// The options that belong to the congestion control, not to the connection.
#[must_use]
pub fn of_algorithm(options: &Options) -> Options {
    let is_own = |name: &str| PARAMETERS.iter().all(|parameter| parameter.name != name);
    options
        .iter()
        .filter(|(name, _)| is_own(name))
        .map(|(name, value)| (name.clone(), *value))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_has_its_row_and_others_are_refused_with_a_neighbour() {
        for row in about() {
            assert_eq!(find(row.name), Ok(Control::Stack(row.stack, row.algorithm)));
        }
        assert!(names().is_sorted());
        assert!(find("noq/cubik").unwrap_err().ends_with("did you mean \"noq/cubic\"?"));
        assert!(find("noq/bbr3").unwrap_err().contains("cannot be seeded"));
        assert_eq!(find("noq/dragstrip-bbr3"), Ok(Control::Own("bbr3")));
        assert!(find("quinn/dragstrip-bbr3").unwrap_err().contains("only noq"));
    }
}
