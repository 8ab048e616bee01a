//! Numbers in sentences: three significant digits and a unit.

/// √(3/2): the square-root law's constant with an ACK per segment (Mathis, Semke, Mahdavi, Ott, CCR 27(3), 1997).
pub const MATHIS: f64 = 1.224_744_871_391_589;

/// Three significant digits.
pub fn digits(value: f64) -> String {
    let magnitude = value.abs();
    if magnitude >= 99.95 || value.fract() == 0.0 {
        format!("{value:.0}")
    } else if magnitude >= 9.995 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}

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

/// A rate.
pub fn rate(bps: f64) -> String {
    scaled(bps, ["bit/s", "kbit/s", "Mbit/s", "Gbit/s"])
}

/// Bytes.
pub fn size(bytes: f64) -> String {
    scaled(bytes, ["B", "kB", "MB", "GB"])
}

/// Milliseconds.
pub fn ms(value: f64) -> String {
    format!("{} ms", digits(value))
}

/// Seconds.
pub fn seconds(value: f64) -> String {
    format!("{} s", digits(value))
}

/// A share of 1, in per cent.
pub fn percent(share: f64) -> String {
    format!("{} %", digits(share * 100.0))
}

/// A whole number.
pub fn count(value: f64) -> String {
    format!("{value:.0}")
}

/// How often.
pub fn times(value: f64) -> String {
    if value == 1.0 { "once".to_owned() } else { format!("{} times", count(value)) }
}

/// A number of packets.
pub fn packets(value: f64) -> String {
    format!("{} packet{}", digits(value), if value == 1.0 { "" } else { "s" })
}
