//! Quantities as people write them: text with a unit, in tc(8)'s grammar.

use dragstrip_units::{ByteCount, Duration, ParseError, Rate, tc};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::ser::{Serialize, Serializer};
use std::borrow::Cow;
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

/// The words of a schema by which generators and editors know a quantity: `x-quantity` names its kind.
fn quantity_schema(kind: &str, example: &str) -> Schema {
    json_schema!({"type": "string", "x-quantity": kind, "examples": [example]})
}

macro_rules! text_with_a_unit {
    ($($name:ident: $kind:literal, $example:literal, $parse:expr, $written:expr;)*) => {$(
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = Text { parse: $parse, example: $example };
                deserializer.deserialize_str(text).map(Self)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let format: fn(Self) -> String = $written;
                serializer.serialize_str(&format(*self))
            }
        }

        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                quantity_schema($kind, $example)
            }
        }
    )*};
}

text_with_a_unit! {
    RateText: "rate", "10mbit", rate, |it| {
        Rate::from_bits_per_second(it.0).map_or_else(|| "0bit".to_owned(), tc::format_rate)
    };
    SizeText: "size", "200kb", size, |it| tc::format_size(ByteCount::new(it.0));
    TimeText: "time", "40ms", time, |it| tc::format_time(Duration::from_nanos(it.0));
    ShareText: "share", "1%", tc::parse_percent, |it| tc::format_percent(it.0);
}

/// A text, or a whole number as a short form of its text.
macro_rules! text_or_whole_number {
    ($($(#[$about:meta])* $name:ident: $expected:literal;)*) => {$(
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $name(pub String);

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any(Whole($expected)).map(Self)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({"type": ["string", "integer"]})
            }
        }
    )*};
}

text_or_whole_number! {
    /// A queue's limit: a size, or a number of packets.
    LimitText: "the limit as the queue counts it: \"50kb\", or packets such as 100";
    /// A sysctl's value.
    SysctlText: "the value as sysctl takes it: a number, or text such as \"4096 131072 6291456\"";
}

/// Reads a text or a whole number as text.
struct Whole(&'static str);

impl Visitor<'_> for Whole {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<String, E> {
        Ok(text.to_owned())
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<String, E> {
        Ok(number.to_string())
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<String, E> {
        Ok(number.to_string())
    }
}

/// Largest accepted deviation of a figure from the published one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ToleranceText {
    /// A share of it.
    Share(f64),
    /// A number in its unit.
    Number(f64),
}

impl<'de> Deserialize<'de> for ToleranceText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl Visitor<'_> for Either {
            type Value = ToleranceText;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a share such as \"5%\", or a number in the claim's unit")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<ToleranceText, E> {
                let number =
                    text.trim().strip_suffix('%').and_then(|digits| digits.trim().parse().ok());
                let share = number.filter(|number: &f64| number.is_finite() && *number >= 0.0);
                let wrong = || E::invalid_value(de::Unexpected::Str(text), &self);
                share.map(|share| ToleranceText::Share(share / 100.0)).ok_or_else(wrong)
            }

            fn visit_f64<E: de::Error>(self, number: f64) -> Result<ToleranceText, E> {
                Ok(ToleranceText::Number(number))
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<ToleranceText, E> {
                Ok(ToleranceText::Number(number as f64))
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<ToleranceText, E> {
                Ok(ToleranceText::Number(number as f64))
            }
        }
        deserializer.deserialize_any(Either)
    }
}

impl Serialize for ToleranceText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Share(share) => serializer.serialize_str(&percent(*share)),
            Self::Number(number) => serializer.serialize_f64(*number),
        }
    }
}

impl JsonSchema for ToleranceText {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Tolerance".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": ["string", "number"], "examples": ["5%"]})
    }
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
