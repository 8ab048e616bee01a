//! Settings of an htb class that come from other words: a size table's bytes, the upper limit of an hfsc class.

use super::Wrong;
use super::lines::Word;
use super::tree::Stab;
use super::words::refused;
use crate::disciplines::htb::HtbSpec;
use crate::tc::wrong;
use dragstrip_units::tc::text;
use dragstrip_units::{ByteCount, Duration, Rate};

/// With what a size table adds to each packet.
pub(super) fn sized(htb: HtbSpec, stab: Option<&Stab>) -> Result<HtbSpec, Wrong> {
    let Some(stab) = stab else { return Ok(htb) };
    if htb.overhead_bytes != 0 || htb.mpu_bytes != 0 || htb.linklayer_atm {
        let expected =
            "one of \"stab\" and the class's own overhead, mpu and linklayer: both count";
        return refused(&stab.word, expected);
    }
    let Stab { word: _, overhead_bytes, mpu_bytes, atm } = *stab;
    Ok(HtbSpec { overhead_bytes, mpu_bytes, linklayer_atm: atm, ..htb })
}

/// The upper limit of an hfsc class, if it has one. A curve is `[m1 RATE d TIME] m2 RATE` or
/// `[umax SIZE dmax TIME] rate RATE` (tc-hfsc(7)).
pub(super) fn upper_limit(words: &[Word]) -> Result<Option<u64>, Wrong> {
    let (mut curve, mut limit) = (None, None);
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let name = word.text.as_str();
        if ["rt", "ls", "sc", "ul"].contains(&name) {
            curve = Some(name);
            continue;
        }
        if !["m1", "d", "m2", "umax", "dmax", "rate"].contains(&name) || curve.is_none() {
            return refused(
                word,
                "a curve of hfsc: rt, ls, sc or ul with m1, d, m2 or umax, dmax, rate",
            );
        }
        let Some(value) = rest.next() else {
            let problem = wrong(format!("{name:?} at the end"), "a value after it");
            return Err(Wrong { line: word.line, problem });
        };
        let read = match name {
            "m1" | "m2" | "rate" => text::parse_rate(&value.text).map(Rate::bits_per_second),
            "umax" => text::parse_size(&value.text).map(ByteCount::get),
            _ => text::parse_time(&value.text).map(Duration::as_nanos),
        };
        let zero = value.text.trim_end_matches(char::is_alphabetic) == "0";
        let number = match read {
            Ok(number) => number,
            Err(_) if zero => 0,
            Err(_) => {
                return refused(value, format!("a value of {name}, such as those of tc-hfsc(7)"));
            }
        };
        match (curve, name) {
            (Some("ul"), "m2" | "rate") => limit = Some(number),
            (Some("ul"), _) if number > 0 => {
                return refused(word, "an upper limit of one rate: a curve of two is not modelled");
            }
            _ => {}
        }
    }
    Ok(limit)
}
