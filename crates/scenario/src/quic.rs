//! QUIC stacks of other projects, and which congestion controls each has.

use dragstrip_units::nearest;

/// Payload of a UDP datagram that every path of QUIC must carry (RFC 9000, section 14).
pub const PAYLOAD_BYTES_MIN: u16 = 1_200;

/// Headers of IPv4 and UDP in front of it.
pub const HEADERS_BYTES: u16 = 28;

/// A QUIC stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stack {
    /// noq, n0's fork of quinn.
    Noq,
    /// quinn.
    Quinn,
}

impl Stack {
    /// The crate and its release.
    #[must_use]
    pub const fn release(self) -> &'static str {
        match self {
            Self::Noq => "noq-proto 1.4.0",
            Self::Quinn => "quinn-proto 0.11.19",
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

/// The row of a word.
///
/// # Errors
/// The row of a word, or the words that there are.
pub fn find(word: &str) -> Result<&'static About, String> {
    TABLE.iter().find(|row| row.name == word).ok_or_else(|| {
        let list = names().collect::<Vec<_>>().join(", ");
        if word == "noq/bbr3" || word == "noq/bbr" {
            // `Bbr3Config::probe_rng_seed` has no setter in noq-proto 1.4.0.
            return format!(
                "one of {list}; noq's BBRv3 cannot be seeded, so no run of it could be repeated"
            );
        }
        let nearest = nearest(word, names()).unwrap_or(TABLE[0].name);
        format!("one of {list}; did you mean {nearest:?}?")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_has_its_row_and_others_are_refused_with_a_neighbour() {
        for row in about() {
            assert_eq!(find(row.name).unwrap().name, row.name);
        }
        assert!(names().is_sorted());
        assert!(find("noq/cubik").unwrap_err().ends_with("did you mean \"noq/cubic\"?"));
        assert!(find("noq/bbr3").unwrap_err().contains("cannot be seeded"));
    }
}
