//! A class in tc's words, read.
//!
//! Buckets, quanta and curves that tc and the kernel compute are computed here (tc/q_htb.c, tc/q_hfsc.c of iproute2;
//! `htb_change_class`, `drr_change_class`).

use super::types::{ClassParameters, CurveSpec, HfscClass, HtbClass};
use crate::disciplines::FRAME;
use crate::disciplines::htb::HtbSpec;
use crate::tc::{Words, missing, unknown, unreadable, wrong};
use dragstrip_units::Problem;

/// Bytes of a quantum that a rate gives (`htb_change_class`).
const QUANTA: (u64, u64) = (1_000, 200_000);

/// A class of htb, whose quantum is its rate over `r2q` where it has none of its own.
pub(super) fn htb_class(words: &mut Words<'_>, r2q: u64) -> Result<ClassParameters, Problem> {
    const ACCEPTED: [&str; 9] =
        ["rate", "ceil", "burst", "cburst", "prio", "quantum", "overhead", "mpu", "linklayer"];
    let (mut rate, mut ceil, mut burst, mut cburst) = (None, None, None, None);
    let (mut priority, mut quantum, mut overhead_bytes, mut mpu_bytes) = (0, None, 0, 0);
    let mut linklayer_atm = false;
    while let Some(word) = words.next() {
        match word {
            "rate" => rate = Some(words.rate(word)?),
            "ceil" => ceil = Some(words.rate(word)?),
            "burst" | "buffer" | "maxburst" => burst = Some(words.size(word)?),
            "cburst" | "cbuffer" | "cmaxburst" => cburst = Some(words.size(word)?),
            // The kernel takes more than 7 for 7.
            "prio" => priority = words.whole::<u32>(word)?.min(7) as u8,
            "quantum" => quantum = Some(words.packets(word)?),
            "overhead" => overhead_bytes = words.whole(word)?,
            "mpu" => mpu_bytes = words.whole::<u16>(word)?.into(),
            // The size of a table that Linux has not used since 3.8.
            "mtu" => {
                let _ = words.size(word)?;
            }
            "linklayer" => {
                linklayer_atm = words.value(word, |text| match text {
                    "atm" | "adsl" => Ok(true),
                    "ethernet" => Ok(false),
                    _ => Err(unreadable(text, "atm, adsl or ethernet")),
                })?;
            }
            _ => return Err(unknown(word, &ACCEPTED, &[])),
        }
    }
    let rate_bps = rate.ok_or_else(|| missing("rate", "a class"))?;
    let ceil_bps = ceil.unwrap_or(rate_bps);
    // A bucket of zero is tc's own.
    let bucket = |given: Option<u64>, rate: u64| {
        given.filter(|&bytes| bytes > 0).unwrap_or_else(|| HtbSpec::default_burst_bytes(rate))
    };
    let usual = (rate_bps / 8 / r2q.max(1)).clamp(QUANTA.0, QUANTA.1) as u32;
    Ok(ClassParameters::Htb(HtbClass {
        rate_bps,
        ceil_bps,
        burst_bytes: bucket(burst, rate_bps),
        cburst_bytes: bucket(cburst, ceil_bps),
        quantum_bytes: quantum.filter(|&quantum| quantum > 0).unwrap_or(usual),
        priority,
        overhead_bytes,
        mpu_bytes,
        linklayer_atm,
    }))
}

/// A class of drr.
pub(super) fn drr_class(words: &mut Words<'_>) -> Result<ClassParameters, Problem> {
    let mut quantum_bytes = FRAME;
    while let Some(word) = words.next() {
        match word {
            "quantum" => quantum_bytes = words.packets(word)?,
            _ => return Err(unknown(word, &["quantum"], &[])),
        }
    }
    Ok(ClassParameters::Drr { quantum_bytes })
}

/// A class of hfsc.
pub(super) fn hfsc_class(words: &mut Words<'_>) -> Result<ClassParameters, Problem> {
    let mut class = HfscClass::default();
    while let Some(word) = words.next() {
        if !["rt", "ls", "sc", "ul"].contains(&word) {
            return Err(unknown(word, &["rt", "ls", "sc", "ul"], &[]));
        }
        let curve = Some(service_curve(words, word)?);
        match word {
            "rt" => class.real_time = curve,
            "ls" => class.link_share = curve,
            "ul" => class.upper_limit = curve,
            _ => (class.real_time, class.link_share) = (curve, curve),
        }
    }
    if class.real_time.is_none() && class.link_share.is_none() {
        return Err(wrong(
            "no curve",
            "\"rt\", \"ls\" or \"sc\" with a rate, such as \"ls m2 1mbit\"",
        ));
    }
    if class.upper_limit.is_some() && class.link_share.is_none() {
        return Err(wrong("\"ul\" alone", "\"ls\" or \"sc\" too: the limit is one of sharing"));
    }
    Ok(ClassParameters::Hfsc(class))
}

/// `[m1 RATE] [d TIME] m2 RATE`, or `[umax SIZE] [dmax TIME] rate RATE` (tc-hfsc(7)).
fn service_curve(words: &mut Words<'_>, of: &str) -> Result<CurveSpec, Problem> {
    let (mut m1, mut d, mut m2, mut umax, mut dmax) = (None, None, None, None, None);
    // A curve of zero is no error in a part of it.
    let rate = |words: &mut Words<'_>, word: &str| match words.peek() {
        Some(text) if text.trim_end_matches(char::is_alphabetic) == "0" => {
            let _ = words.next();
            Ok(0)
        }
        _ => words.rate(word),
    };
    while let Some(word) = words.peek() {
        if !["m1", "d", "m2", "umax", "dmax", "rate"].contains(&word) {
            break;
        }
        let _ = words.next();
        match word {
            "m1" => m1 = Some(rate(words, word)?),
            "d" => d = Some(words.time(word)?),
            "umax" => umax = Some(words.size(word)?),
            "dmax" => dmax = Some(words.time(word)?),
            _ => m2 = Some(rate(words, word)?),
        }
    }
    let m2_bps = m2.ok_or_else(|| {
        wrong(format!("{of:?} without a rate"), format!("one, such as \"{of} m2 1mbit\""))
    })?;
    if umax.is_some() || dmax.is_some() {
        let (Some(bytes), Some(span)) = (umax, dmax.filter(|&span| span > 0)) else {
            return Err(wrong("one of \"umax\" and \"dmax\"", "both or neither"));
        };
        // tc/q_hfsc.c, hfsc_get_sc2: in bytes, microseconds and bytes per second.
        let (span_us, rate) = (span.div_ceil(1_000), m2_bps / 8);
        let needed = (u128::from(bytes) * 1_000_000).div_ceil(u128::from(span_us));
        return Ok(if needed > u128::from(rate) {
            let m1_bps = u64::try_from(needed * 8).unwrap_or(u64::MAX);
            CurveSpec { m1_bps, d_ns: span_us * 1_000, m2_bps }
        } else {
            let taken_us = (u128::from(bytes) * 1_000_000).div_ceil(u128::from(rate.max(1)));
            let taken_us = u64::try_from(taken_us).unwrap_or(span_us);
            CurveSpec { m1_bps: 0, d_ns: span_us.saturating_sub(taken_us) * 1_000, m2_bps }
        });
    }
    if m1.is_some() != d.is_some() {
        return Err(wrong("one of \"m1\" and \"d\"", "both or neither"));
    }
    Ok(CurveSpec { m1_bps: m1.unwrap_or(0), d_ns: d.unwrap_or(0), m2_bps })
}
