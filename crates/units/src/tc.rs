//! Quantities as people write them: the grammar of tc(8).
//!
//! A decimal number and a suffix with no blank between them; the suffix may be in either case.
//!
//! | quantity | suffixes | without a suffix, in tc |
//! |---|---|---|
//! | rate | `bit kbit mbit gbit tbit` (1000), `kibit mibit gibit tibit` (1024), `bps kbps ...` **bytes** per second | bit/s |
//! | size | `b`; `k kb m mb g gb` (**1024**); `kbit mbit gbit` (1024, of bits) | bytes |
//! | time | `s sec secs`, `ms msec msecs`, `us usec usecs`, `ns nsec nsecs` | differs between versions: refused |
//! | share | `%` | per cent |
//!
//! The functions here ([`parse_rate`] and its like) require the suffix: they are for our own files
//! and options. [`text`] has the variants for strings that are tc's own (`bfifo limit 104857`).
//!
//! `Mbps`, which elsewhere means bits, is refused in our own files and options.
//!
//! Departs from tc: decimals are exact instead of a C `double` (`4.35ms` is 4,350,000 ns), a rate
//! is kept in bits per second instead of whole bytes, and hexadecimal, infinity and signs are
//! refused. As tc does, what is left below the base unit is cut: `0.1mb` is 104,857 bytes.
//!
//! Source: iproute2 6.1, `tc/tc_util.c` and `lib/utils.c`.

use crate::{ByteCount, Duration, Rate};
use std::fmt;

/// No rate above this is believed: 10 Tbit/s.
pub const RATE_MAX_BPS: u64 = 10_000_000_000_000;

/// A text that is not the quantity it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// The text.
    pub value: String,
    /// Expected value.
    pub expected: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "got {:?}, expected {}", self.value, self.expected)
    }
}

impl std::error::Error for ParseError {}

/// Permission of a number without a unit.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Bare {
    Allowed,
    Refused,
}

/// A rate with its unit, such as `10mbit`; in bits per second.
///
/// # Errors
/// A missing or unknown unit, zero, or more than [`RATE_MAX_BPS`].
pub fn parse_rate(text: &str) -> Result<Rate, ParseError> {
    rate(text, Bare::Refused)
}

/// A size with its unit, such as `200kb` (204,800 bytes).
///
/// # Errors
/// A missing or unknown unit, or a number too large for 64 bits.
pub fn parse_size(text: &str) -> Result<ByteCount, ParseError> {
    size(text, Bare::Refused)
}

/// A time with its unit, such as `40ms`.
///
/// # Errors
/// A missing or unknown unit, or a number of nanoseconds too large for 64 bits.
pub fn parse_time(text: &str) -> Result<Duration, ParseError> {
    text::parse_time(text)
}

/// A share with its per cent sign, such as `1%`; from 0 to 1.
///
/// # Errors
/// A missing sign, or a number above 100.
pub fn parse_percent(text: &str) -> Result<f64, ParseError> {
    percent(text, Bare::Refused)
}

/// The same quantities inside tc's own strings, where a number may be bare as tc allows it.
pub mod text {
    use super::{Bare, ParseError, scaled};
    use crate::{ByteCount, Duration, Rate};

    /// A rate; a bare number is in bits per second.
    ///
    /// # Errors
    /// An unknown unit, zero, or more than [`RATE_MAX_BPS`](super::RATE_MAX_BPS).
    pub fn parse_rate(text: &str) -> Result<Rate, ParseError> {
        super::rate(text, Bare::Allowed)
    }

    /// A size; a bare number is in bytes.
    ///
    /// # Errors
    /// An unknown unit, or a number too large for 64 bits.
    pub fn parse_size(text: &str) -> Result<ByteCount, ParseError> {
        super::size(text, Bare::Allowed)
    }

    /// A time; a bare number is refused here too, because iproute2's versions disagree about it
    /// (µs in 6.1's netem, ns later).
    ///
    /// # Errors
    /// A missing or unknown unit, or a number of nanoseconds too large for 64 bits.
    pub fn parse_time(text: &str) -> Result<Duration, ParseError> {
        const EXPECTED: &str = "a time with its unit (s, ms, us or ns), such as 40ms";
        const MOST: &str = "a time that a run can have: up to 17000s";
        let multiple = |suffix: &str| match suffix {
            "s" | "sec" | "secs" => Some(1_000_000_000),
            "ms" | "msec" | "msecs" => Some(1_000_000),
            "us" | "usec" | "usecs" => Some(1_000),
            "ns" | "nsec" | "nsecs" => Some(1),
            _ => None,
        };
        scaled(text, 1, multiple, EXPECTED, MOST).map(Duration::from_nanos)
    }

    /// A share; a bare number is in per cent. From 0 to 1.
    ///
    /// # Errors
    /// A number above 100 or no number.
    pub fn parse_percent(text: &str) -> Result<f64, ParseError> {
        super::percent(text, Bare::Allowed)
    }
}

fn fail(text: &str, expected: &str) -> ParseError {
    ParseError { value: text.to_owned(), expected: expected.to_owned() }
}

fn rate(text: &str, bare: Bare) -> Result<Rate, ParseError> {
    const EXPECTED: &str = "a rate with its unit, such as 10mbit (bits) or 10mbps (bytes)";
    const MOST: &str = "a rate above zero and up to 10tbit";
    if text.ends_with('%') {
        return Err(fail(text, "a rate such as 10mbit: a share of a device's rate needs a device"));
    }
    // tc reads `Mbps` as bytes; whoever writes it for us means bits.
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    if bare == Bare::Refused
        && let Some(prefix @ ("K" | "M" | "G" | "T")) = unit.strip_suffix("bps")
    {
        let number = &text[..text.len() - unit.len()];
        let bytes = format!("{number}{}bps", prefix.to_lowercase());
        let expected = format!(
            "{number}{prefix}bit (bits per second) or {bytes} (bytes per second, as tc reads it)"
        );
        return Err(fail(text, &expected));
    }
    let multiple = |suffix: &str| {
        // `bps` and its multiples count bytes.
        let (prefix, unit) = match (suffix.strip_suffix("bit"), suffix.strip_suffix("bps")) {
            (Some(prefix), _) => (prefix, 1),
            (None, Some(prefix)) => (prefix, 8),
            (None, None) if suffix.is_empty() && bare == Bare::Allowed => ("", 1),
            (None, None) => return None,
        };
        Some(rate_prefix(prefix)? * unit)
    };
    let bps = scaled(text, 1, multiple, EXPECTED, MOST)?;
    match Rate::from_bits_per_second(bps) {
        Some(rate) if bps <= RATE_MAX_BPS => Ok(rate),
        Some(_) | None => Err(fail(text, MOST)),
    }
}

fn rate_prefix(prefix: &str) -> Option<u64> {
    match prefix {
        "" => Some(1),
        "k" => Some(1_000),
        "m" => Some(1_000_000),
        "g" => Some(1_000_000_000),
        "t" => Some(1_000_000_000_000),
        "ki" => Some(1 << 10),
        "mi" => Some(1 << 20),
        "gi" => Some(1 << 30),
        "ti" => Some(1 << 40),
        _ => None,
    }
}

fn size(text: &str, bare: Bare) -> Result<ByteCount, ParseError> {
    const EXPECTED: &str =
        "a size with its unit (b, kb, mb or gb, each 1024 of the one before), such as 200kb";
    // In bits, so that `kbit` needs no case of its own.
    let multiple = |suffix: &str| match suffix {
        "" if bare == Bare::Allowed => Some(8),
        "b" => Some(8),
        "k" | "kb" => Some(8 << 10),
        "m" | "mb" => Some(8 << 20),
        "g" | "gb" => Some(8 << 30),
        "kbit" => Some(1 << 10),
        "mbit" => Some(1 << 20),
        "gbit" => Some(1 << 30),
        _ => None,
    };
    scaled(text, 8, multiple, EXPECTED, "a size below 2^61 bytes").map(ByteCount::new)
}

fn percent(text: &str, bare: Bare) -> Result<f64, ParseError> {
    const EXPECTED: &str = "a share from 0% to 100%, such as 1%";
    let number = match text.strip_suffix('%') {
        Some(number) => number,
        None if bare == Bare::Allowed => text,
        None => return Err(fail(text, EXPECTED)),
    };
    // Only digits and a point pass, so that `inf`, `nan` and signs do not.
    let (decimal, suffix) = Decimal::split(number).ok_or_else(|| fail(text, EXPECTED))?;
    let share = format!("{}e{}", decimal.digits, decimal.exponent.saturating_sub(2)).parse::<f64>();
    match share {
        Ok(share) if suffix.is_empty() && share <= 1.0 => Ok(share),
        Ok(_) | Err(_) => Err(fail(text, EXPECTED)),
    }
}

/// An unsigned decimal number: `digits` × 10^`exponent`.
struct Decimal {
    digits: u128,
    exponent: i32,
}

impl Decimal {
    /// The number at the start of `text` (digits, a point, an exponent) and what follows it;
    /// `None` without a digit or with more than 128 bits of them.
    fn split(text: &str) -> Option<(Self, &str)> {
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, mut rest) = text.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if fraction.contains('.') {
            return None;
        }
        let mut exponent = -i32::try_from(fraction.len()).ok()?;
        if let Some((shift, after)) = exponent_of(rest) {
            exponent = exponent.checked_add(shift)?;
            rest = after;
        }
        let digits = format!("{whole}{fraction}").parse::<u128>().ok()?;
        Some((Self { digits, exponent }, rest))
    }

    /// The number times `numerator` / `denominator`, cut to a whole one; `None` above 64 bits.
    fn scaled_floor(&self, numerator: u64, denominator: u64) -> Option<u64> {
        if self.digits == 0 {
            return Some(0);
        }
        let product = self.digits.checked_mul(u128::from(numerator))?;
        let ten = |power: u32| 10_u128.checked_pow(power);
        let power = self.exponent.unsigned_abs();
        let scaled = if self.exponent >= 0 {
            product.checked_mul(ten(power)?)? / u128::from(denominator)
        } else {
            // A power of ten beyond 128 bits leaves nothing of 128 bits.
            ten(power).map_or(0, |ten| product / ten / u128::from(denominator))
        };
        u64::try_from(scaled).ok()
    }
}

/// A C exponent (`e6`, `E-3`) at the start of `text`, and what follows.
fn exponent_of(text: &str) -> Option<(i32, &str)> {
    let rest = text.strip_prefix(['e', 'E'])?;
    let unsigned = rest.strip_prefix(['+', '-']).unwrap_or(rest);
    let end = unsigned.find(|c: char| !c.is_ascii_digit()).unwrap_or(unsigned.len());
    let sign = rest.len() - unsigned.len();
    let shift = rest[..sign + end].parse().ok()?;
    Some((shift, &unsigned[end..]))
}

/// A number times what its suffix stands for, divided by `denominator` and cut; `expected` where it is none, `most` where
/// it is too large.
fn scaled(
    text: &str,
    denominator: u64,
    multiple: impl Fn(&str) -> Option<u64>,
    expected: &str,
    most: &str,
) -> Result<u64, ParseError> {
    let read = Decimal::split(text)
        .and_then(|(decimal, suffix)| Some((decimal, multiple(&suffix.to_ascii_lowercase())?)));
    let Some((decimal, multiple)) = read else { return Err(fail(text, expected)) };
    decimal.scaled_floor(multiple, denominator).ok_or_else(|| fail(text, most))
}

/// A rate as people write it; [`parse_rate`] gives the same rate back.
#[must_use]
pub fn format_rate(rate: Rate) -> String {
    const UNITS: &[(u64, &str)] = &[
        (1_000_000_000_000, "tbit"),
        (1_000_000_000, "gbit"),
        (1_000_000, "mbit"),
        (1_000, "kbit"),
        (1, "bit"),
    ];
    shortest(rate.bits_per_second(), UNITS)
}

/// A size as people write it; [`parse_size`] gives the same size back.
#[must_use]
pub fn format_size(size: ByteCount) -> String {
    shortest(size.get(), &[(1 << 30, "gb"), (1 << 20, "mb"), (1 << 10, "kb"), (1, "b")])
}

/// A time as people write it; [`parse_time`] gives the same time back.
#[must_use]
pub fn format_time(span: Duration) -> String {
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"), (1, "ns")];
    if span == Duration::ZERO { "0s".to_owned() } else { shortest(span.as_nanos(), &units) }
}

/// A share from 0 to 1 in per cent; [`parse_percent`] gives the same share back.
#[must_use]
pub fn format_percent(share: f64) -> String {
    // Rust prints the shortest decimal that reads back; moving its point by two loses nothing.
    let plain = format!("{share}");
    let (whole, fraction) = plain.split_once('.').unwrap_or((&plain, ""));
    let digits = format!("{whole}{fraction:0<2}");
    let (whole, fraction) = digits.split_at(whole.len() + 2);
    let whole = whole.trim_start_matches('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    if fraction.is_empty() { format!("{whole}%") } else { format!("{whole}.{fraction}%") }
}

/// `value` in the largest unit that needs at most three decimals; the last unit must be 1.
fn shortest(value: u64, units: &[(u64, &str)]) -> String {
    for (unit, name) in units {
        let (whole, rest) = (value / unit, u128::from(value % unit) * 1_000);
        if whole > 0 && rest % u128::from(*unit) == 0 {
            let thousandths = format!("{:03}", rest / u128::from(*unit));
            let decimals = thousandths.trim_end_matches('0');
            let point = if decimals.is_empty() { "" } else { "." };
            return format!("{whole}{point}{decimals}{name}");
        }
    }
    format!("{value}{}", units.last().map_or("", |(_, name)| name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rates_count_in_thousands_of_bits_unless_they_say_otherwise() {
        for (value, bps) in [
            ("1bit", 1),
            ("10mbit", 10_000_000),
            ("10Mbit", 10_000_000),
            ("1.5gbit", 1_500_000_000),
            ("1tbit", 1_000_000_000_000),
            ("1kibit", 1_024),
            ("1MiBit", 1_048_576),
            ("1bps", 8),
            ("1mbps", 8_000_000),
            ("1KiBps", 8_192),
            ("1e3kbit", 1_000_000),
            ("33.6kbit", 33_600),
        ] {
            assert_eq!(parse_rate(value).map(Rate::bits_per_second), Ok(bps), "{value}");
        }
    }

    #[test]
    fn sizes_count_in_1024s() {
        for (value, bytes) in [
            ("1b", 1),
            ("200kb", 204_800),
            ("0.1MB", 104_857),
            ("1k", 1_024),
            ("1g", 1 << 30),
            ("1kbit", 128),
            ("1mbit", 131_072),
        ] {
            assert_eq!(parse_size(value).map(ByteCount::get), Ok(bytes), "{value}");
        }
    }

    #[test]
    fn times_are_exact() {
        for (value, ns) in [
            ("40ms", 40_000_000),
            ("4.35ms", 4_350_000),
            ("1secs", 1_000_000_000),
            ("75usec", 75_000),
            ("0.5us", 500),
            ("1ns", 1),
            ("0s", 0),
        ] {
            assert_eq!(parse_time(value).map(Duration::as_nanos), Ok(ns), "{value}");
        }
    }

    #[test]
    fn our_own_files_need_a_unit_and_tc_does_not() {
        assert!(parse_rate("1000").is_err());
        assert!(parse_size("1000").is_err());
        assert!(parse_percent("1").is_err());
        assert_eq!(text::parse_rate("1000").map(Rate::bits_per_second), Ok(1_000));
        assert_eq!(text::parse_size("1600").map(ByteCount::get), Ok(1_600));
        assert_eq!(text::parse_percent("1"), Ok(0.01));
        assert!(text::parse_time("1000").is_err());
    }

    #[test]
    fn what_reads_as_bits_and_is_bytes_is_asked() {
        let expected = parse_rate("10Mbps").unwrap_err().expected;
        assert_eq!(
            expected,
            "10Mbit (bits per second) or 10mbps (bytes per second, as tc reads it)"
        );
        for bytes in ["10mbps", "10MBps", "10MBPS"] {
            assert_eq!(parse_rate(bytes).map(Rate::bits_per_second), Ok(80_000_000), "{bytes}");
        }
        assert_eq!(text::parse_rate("10Mbps").map(Rate::bits_per_second), Ok(80_000_000));
    }

    #[test]
    fn what_is_too_large_is_told_its_bound() {
        for text in ["1e30mbit", "11tbit"] {
            assert!(parse_rate(text).unwrap_err().expected.ends_with("up to 10tbit"), "{text}");
        }
        assert!(parse_time("1e30s").unwrap_err().expected.ends_with("up to 17000s"));
        assert!(parse_size("1e30gb").unwrap_err().expected.ends_with("below 2^61 bytes"));
        assert!(parse_rate("1e30").unwrap_err().expected.contains("with its unit"));
    }

    #[test]
    fn nonsense_is_refused() {
        for value in [
            "",
            "mbit",
            "10 mbit",
            "-1mbit",
            "0mbit",
            "1e30bit",
            "10tbit1",
            "11tbit",
            "1.2.3mbit",
            "0x10mbit",
            "infbit",
            "nanbit",
            "10mb",
            "50%",
            "1e99999999999bit",
            "١mbit",
            "999999999999999999999999999999999999999999mbit",
        ] {
            let error = parse_rate(value).expect_err(value);
            assert_eq!(error.value, value);
        }
        for value in ["1kib", "1kbps", "-1b", "", "99999999999gb"] {
            assert!(parse_size(value).is_err(), "{value}");
        }
        for value in ["40", "1min", "-1ms", "1e30s", "ms"] {
            assert!(parse_time(value).is_err(), "{value}");
        }
        for value in ["101%", "-1%", "1e-2147483648e%", "%", "nan%", "inf%", "1%%", "0.01"] {
            assert!(parse_percent(value).is_err(), "{value}");
        }
    }

    #[test]
    fn an_error_names_the_value_and_what_would_be_right() {
        let error = parse_time("40").unwrap_err();
        assert_eq!(
            error.to_string(),
            "got \"40\", expected a time with its unit (s, ms, us or ns), such as 40ms"
        );
    }

    #[test]
    fn quantities_are_written_as_people_would() {
        let rate = |bps| format_rate(Rate::from_bits_per_second(bps).unwrap());
        assert_eq!(rate(10_000_000), "10mbit");
        assert_eq!(rate(1_500_000), "1.5mbit");
        assert_eq!(rate(1_000_001), "1000.001kbit");
        assert_eq!(format_size(ByteCount::new(204_800)), "200kb");
        assert_eq!(format_size(ByteCount::new(104_857)), "104857b");
        assert_eq!(format_size(ByteCount::ZERO), "0b");
        assert_eq!(format_time(Duration::from_millis(40)), "40ms");
        assert_eq!(format_time(Duration::ZERO), "0s");
        assert_eq!(format_percent(0.015), "1.5%");
        assert_eq!(format_percent(0.0), "0%");
        assert_eq!(format_percent(1.0), "100%");
        assert_eq!(format_percent(0.07), "7%");
    }

    proptest! {
        #[test]
        fn a_written_rate_reads_back(bps in 1..=RATE_MAX_BPS) {
            let rate = Rate::from_bits_per_second(bps).unwrap();
            prop_assert_eq!(parse_rate(&format_rate(rate)), Ok(rate));
        }

        #[test]
        fn a_round_rate_reads_back(digits in 1..=9_999_u64, power in 0..9_u32) {
            let rate = Rate::from_bits_per_second(digits * 10_u64.pow(power)).unwrap();
            prop_assert_eq!(parse_rate(&format_rate(rate)), Ok(rate));
        }

        #[test]
        fn a_written_size_reads_back(bytes: u64, shift in 0..64_u32) {
            let size = ByteCount::new(bytes >> shift << (shift / 2));
            prop_assert_eq!(parse_size(&format_size(size)), Ok(size));
        }

        #[test]
        fn a_written_time_reads_back(ns: u64, shift in 0..64_u32) {
            let span = Duration::from_nanos(ns >> shift);
            prop_assert_eq!(parse_time(&format_time(span)), Ok(span));
        }

        #[test]
        fn a_written_share_reads_back(share in 0.0..=1.0_f64) {
            prop_assert_eq!(parse_percent(&format_percent(share)), Ok(share));
        }

        #[test]
        fn no_text_panics(value in "\\PC*") {
            let _ = (parse_rate(&value), parse_size(&value), parse_time(&value), parse_percent(&value));
        }

        #[test]
        fn nothing_like_a_number_panics(value in "[0-9.eE+%-]{0,40}(kbit|gb|ms|%)?") {
            let _ = (parse_rate(&value), parse_size(&value), parse_time(&value), parse_percent(&value));
        }
    }
}
