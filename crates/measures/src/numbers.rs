//! Numbers as text for readers: significant digits and units, by the rules that Python (`display/quantity.py`) and the
//! report's viewer (`viewer/data.js`) follow too; `tests/numbers.json` holds all three to the same texts.

/// √(3/2): the square-root law's constant with an ACK per segment (Mathis, Semke, Mahdavi, Ott, CCR 27(3), 1997).
pub const MATHIS: f64 = 1.224_744_871_391_589;

/// Text for a figure that does not exist.
const MISSING: &str = "–";

/// Largest magnitude that six decimals round to zero.
const ZERO: f64 = 5e-7;

/// Returns a number with three significant digits, or two below 1. Larger whole parts are not rounded, whole numbers have
/// no decimals, thin spaces group the thousands from 10 000 on, and what six decimals round to zero is `0`.
#[must_use]
pub fn digits(value: f64) -> String {
    let magnitude = value.abs();
    if !value.is_finite() {
        return MISSING.to_owned();
    }
    if magnitude <= ZERO {
        return "0".to_owned();
    }
    let mut decimals = match magnitude {
        _ if magnitude >= 99.95 || value.fract() == 0.0 => 0,
        _ if magnitude >= 9.995 => 1,
        _ => 2,
    };
    // Two significant digits of a smaller number.
    let mut least = 0.0995;
    while decimals >= 2 && magnitude < least && decimals < 6 {
        decimals += 1;
        least /= 10.0;
    }
    grouped(&format!("{value:.decimals$}"))
}

/// Groups thousands of a whole part of five digits or more.
fn grouped(text: &str) -> String {
    let (sign, rest) = text.split_at(usize::from(text.starts_with('-')));
    let (whole, fraction) = rest.split_at(rest.find('.').unwrap_or(rest.len()));
    if whole.len() < 5 {
        return text.to_owned();
    }
    let mut groups = sign.to_owned();
    for (place, digit) in whole.chars().enumerate() {
        if place > 0 && (whole.len() - place) % 3 == 0 {
            groups.push('\u{2009}');
        }
        groups.push(digit);
    }
    groups + fraction
}

/// Returns a value in the largest of units a thousand apart in which it is at least 1.
fn scaled(value: f64, units: [&str; 4]) -> String {
    let mut scaled = value;
    let mut unit = units[0];
    for next in &units[1..] {
        if scaled.abs() < 999.5 {
            break;
        }
        (scaled, unit) = (scaled / 1e3, *next);
    }
    format!("{} {unit}", digits(scaled))
}

/// Returns a rate, given in bit/s: `9.57 Mbit/s`.
#[must_use]
pub fn rate(bps: f64) -> String {
    scaled(bps, ["bit/s", "kbit/s", "Mbit/s", "Gbit/s"])
}

/// Returns a size, given in bytes: `200 kB`; prefixes are decimal.
#[must_use]
pub fn size(bytes: f64) -> String {
    scaled(bytes, ["B", "kB", "MB", "GB"])
}

/// Returns a time, given in milliseconds: `492 ms`, below a millisecond in µs. Round-trip times of seconds stay in ms, so
/// that they can be compared.
#[must_use]
pub fn ms(value: f64) -> String {
    if value.abs() >= 0.9995 || value == 0.0 || !value.is_finite() {
        format!("{} ms", digits(value))
    } else {
        format!("{} µs", digits(value * 1e3))
    }
}

/// Returns a time, given in seconds.
#[must_use]
pub fn seconds(value: f64) -> String {
    format!("{} s", digits(value))
}

/// Returns a share of 1 in per cent: `12.5 %`.
#[must_use]
pub fn percent(share: f64) -> String {
    format!("{} %", digits(share * 100.0))
}

/// Returns a count, with one decimal for a half: a median over repeats may lie between two counts.
#[must_use]
pub fn count(value: f64) -> String {
    if !value.is_finite() {
        return MISSING.to_owned();
    }
    grouped(&if value.fract() == 0.0 { format!("{value:.0}") } else { format!("{value:.1}") })
}

/// Returns a number of repetitions: `once`, `12 times`.
#[must_use]
pub fn times(value: f64) -> String {
    if value == 1.0 { "once".to_owned() } else { format!("{} times", count(value)) }
}

/// Returns a number of packets.
#[must_use]
pub fn packets(value: f64) -> String {
    format!("{} packet{}", digits(value), if value == 1.0 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn texts_are_those_of_python_and_the_viewer() {
        let cases: Value =
            serde_json::from_str(include_str!("../../../tests/numbers.json")).unwrap();
        type Formatter = fn(f64) -> String;
        let formatters: [(&str, Formatter); 7] = [
            ("digits", digits),
            ("rate", rate),
            ("size", size),
            ("milliseconds", ms),
            ("seconds", seconds),
            ("percent", percent),
            ("count", count),
        ];
        assert_eq!(cases.as_object().unwrap().len(), formatters.len());
        for (name, formatter) in formatters {
            for case in cases[name].as_array().unwrap() {
                let value = case[0].as_f64().unwrap();
                assert_eq!(formatter(value), case[1].as_str().unwrap(), "{name}({value})");
            }
        }
    }
}
