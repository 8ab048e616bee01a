//! Quantities as people write them: text with a unit, in tc(8)'s grammar.

use dragstrip_units::{ParseError, tc};
use serde::de::{self, Deserialize, Deserializer, Visitor};
use std::fmt;

/// Bits per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RateText(pub u64);

/// Bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SizeText(pub u64);

/// Nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeText(pub u64);

/// From 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ShareText(pub f64);

pub(crate) fn rate(text: &str) -> Result<u64, ParseError> {
    tc::parse_rate(text).map(dragstrip_units::Rate::bits_per_second)
}

pub(crate) fn size(text: &str) -> Result<u64, ParseError> {
    tc::parse_size(text).map(dragstrip_units::ByteCount::get)
}

pub(crate) fn time(text: &str) -> Result<u64, ParseError> {
    tc::parse_time(text).map(dragstrip_units::Duration::as_nanos)
}

struct Text<T> {
    parse: fn(&str) -> Result<T, ParseError>,
    example: &'static str,
}

impl<T> Visitor<'_> for Text<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "text with a unit, such as {:?}", self.example)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        // In serde's own form, which `json_problem` takes apart.
        (self.parse)(text).map_err(|error| {
            E::custom(format_args!("invalid value: {:?}, expected {}", error.value, error.expected))
        })
    }
}

macro_rules! read_from_text {
    ($($name:ident: $parse:expr, $example:literal;)*) => {$(
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = Text { parse: $parse, example: $example };
                deserializer.deserialize_str(text).map(Self)
            }
        }
    )*};
}

read_from_text! {
    RateText: rate, "10mbit";
    SizeText: size, "200kb";
    TimeText: time, "40ms";
    ShareText: tc::parse_percent, "1%";
}

/// A share in per cent with twelve digits, as tc's words have it: what multiplying by 100 adds beyond them goes.
pub(crate) fn percent(share: f64) -> String {
    let rounded: f64 = format!("{:.11e}", share * 100.0).parse().unwrap_or(0.0);
    format!("{rounded}%")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_loses_what_multiplying_added() {
        assert_eq!(percent(0.07), "7%");
        assert_eq!(percent(0.001), "0.1%");
        assert_eq!(percent(1.0), "100%");
        assert_eq!(percent(0.123_456_789_012_345), "12.3456789012%");
    }

    #[test]
    fn a_number_without_a_unit_is_refused() {
        let error = serde_json::from_str::<RateText>("10").unwrap_err().to_string();
        assert!(error.contains("text with a unit, such as \"10mbit\""), "{error}");
        let error = serde_json::from_str::<TimeText>("\"10\"").unwrap_err().to_string();
        assert!(error.starts_with("invalid value: \"10\", expected "), "{error}");
        assert_eq!(serde_json::from_str::<TimeText>("\"40ms\"").unwrap(), TimeText(40_000_000));
    }
}
