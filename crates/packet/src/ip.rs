//! IP's traffic class: the octet that holds DSCP and ECN (RFC 2474 §3, RFC 3168 §5; the former TOS).

/// The ECN codepoint (RFC 3168 §5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Ecn {
    /// 00: not ECN-capable transport.
    #[default]
    NotEct = 0,
    /// 01: ECT(1).
    Ect1 = 1,
    /// 10: ECT(0).
    Ect0 = 2,
    /// 11: congestion experienced.
    Ce = 3,
}

impl Ecn {
    /// True when the transport understands marks: ECT(0), ECT(1) or CE.
    #[inline]
    #[must_use]
    pub fn is_capable(self) -> bool {
        self != Self::NotEct
    }
}

/// A differentiated services codepoint: 6 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Dscp(u8);

impl Dscp {
    /// CS0, best effort (RFC 2474 §4.1).
    pub const DEFAULT: Self = Self(0);
    /// Expedited forwarding (RFC 3246 §2.7).
    pub const EF: Self = Self(46);
    /// Lower effort (RFC 8622 §4).
    pub const LE: Self = Self(1);

    /// The codepoint of this value; `None` above 63.
    #[must_use]
    pub const fn new(value: u8) -> Option<Self> {
        if value < 64 { Some(Self(value)) } else { None }
    }

    /// The class selector with this precedence (RFC 2474 §4.2.2); `None` above 7.
    #[must_use]
    pub const fn class_selector(precedence: u8) -> Option<Self> {
        if precedence < 8 { Some(Self(precedence << 3)) } else { None }
    }

    /// The codepoint of a name (`EF`, `AF41`, `CS1`, `LE`, in capitals or not) or a number from 0 to 63, which may begin with 0x.
    #[must_use]
    pub fn named(text: &str) -> Option<Self> {
        let upper = text.to_ascii_uppercase();
        if let Some((_, value)) = NAMES.iter().find(|(name, _)| *name == upper) {
            return Some(Self(*value));
        }
        let number = match upper.strip_prefix("0X") {
            Some(digits) => u8::from_str_radix(digits, 16),
            None => upper.parse(),
        };
        number.ok().and_then(Self::new)
    }

    /// Its value, 0 to 63.
    #[inline]
    #[must_use]
    pub const fn value(self) -> u8 {
        self.0
    }
}

/// Names of codepoints: RFC 2474 (CS), RFC 2597 (AF), RFC 3246 (EF), RFC 5865 (VOICE-ADMIT), RFC 8622 (LE).
const NAMES: [(&str, u8); 26] = [
    ("BE", 0),
    ("DF", 0),
    ("LE", 1),
    ("CS0", 0),
    ("CS1", 8),
    ("CS2", 16),
    ("CS3", 24),
    ("CS4", 32),
    ("CS5", 40),
    ("CS6", 48),
    ("CS7", 56),
    ("AF11", 10),
    ("AF12", 12),
    ("AF13", 14),
    ("AF21", 18),
    ("AF22", 20),
    ("AF23", 22),
    ("AF31", 26),
    ("AF32", 28),
    ("AF33", 30),
    ("AF41", 34),
    ("AF42", 36),
    ("AF43", 38),
    ("VA", 44),
    ("VOICE-ADMIT", 44),
    ("EF", 46),
];

/// The octet: DSCP in the upper six bits, ECN in the lower two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrafficClass(u8);

impl TrafficClass {
    /// The octet of these two.
    #[inline]
    #[must_use]
    pub const fn new(dscp: Dscp, ecn: Ecn) -> Self {
        Self(dscp.0 << 2 | ecn as u8)
    }

    /// The octet of a header.
    #[inline]
    #[must_use]
    pub const fn from_octet(octet: u8) -> Self {
        Self(octet)
    }

    /// As it stands in a header.
    #[inline]
    #[must_use]
    pub const fn octet(self) -> u8 {
        self.0
    }

    /// The differentiated services codepoint.
    #[inline]
    #[must_use]
    pub const fn dscp(self) -> Dscp {
        Dscp(self.0 >> 2)
    }

    /// The ECN codepoint.
    #[inline]
    #[must_use]
    pub const fn ecn(self) -> Ecn {
        match self.0 & 3 {
            0 => Ecn::NotEct,
            1 => Ecn::Ect1,
            2 => Ecn::Ect0,
            _ => Ecn::Ce,
        }
    }

    /// The same with another ECN codepoint.
    #[inline]
    #[must_use]
    pub const fn with_ecn(self, ecn: Ecn) -> Self {
        Self::new(self.dscp(), ecn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_octet_keeps_both_codepoints_apart() {
        for octet in 0..=u8::MAX {
            let class = TrafficClass::from_octet(octet);
            assert_eq!(TrafficClass::new(class.dscp(), class.ecn()), class);
            let marked = class.with_ecn(Ecn::Ce);
            assert_eq!((marked.dscp(), marked.ecn()), (class.dscp(), Ecn::Ce));
        }
        // RFC 3246: EF is 101110; with ECT(1) the octet is 0xb9.
        assert_eq!(TrafficClass::new(Dscp::EF, Ecn::Ect1).octet(), 0xb9);
        assert_eq!(Dscp::class_selector(1).map(Dscp::value), Some(8));
        assert_eq!((Dscp::new(64), Dscp::class_selector(8)), (None, None));
    }

    #[test]
    fn a_codepoint_has_a_name_or_a_number() {
        let of = |text| Dscp::named(text).map(Dscp::value);
        assert_eq!(["EF", "af41", "cs1", "0x2e", "46"].map(of), [46, 34, 8, 46, 46].map(Some));
        assert_eq!(["", "64", "AF44", "0xb8", "-1"].map(of), [None; 5]);
    }
}
