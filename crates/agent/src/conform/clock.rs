//! Alignment to the kernel's ticks: a script starts on a tick, as the simulator's runs do.

use crate::fault::{Fault, fault};
use std::fs;

/// Ticks per round of the third level of the timer wheel: buckets are aligned to their size.
const ALIGNMENT: i64 = 512;
/// A stock Debian kernel has HZ = 250.
const TICK_NS: i64 = 4_000_000;

/// The first moment after `after` (real-time clock, ns) at which a tick happens whose number is a multiple of
/// 512, so that timers land in the same buckets of the wheel as those of a run that starts at tick 0.
pub fn aligned(after: i64) -> Result<i64, Fault> {
    loop {
        let text = fs::read_to_string("/proc/timer_list")?;
        let number = |label: &str| {
            let digits = text.split(label).nth(1)?.trim_start();
            digits.split(|c: char| !c.is_ascii_digit()).next()?.parse::<i64>().ok()
        };
        // The first offset is that of the monotonic clock itself.
        let offset = text
            .split(".offset:")
            .nth(2)
            .and_then(|rest| rest.trim_start().split(' ').next()?.parse::<i64>().ok());
        let (Some(now), Some(jiffies), Some(offset)) =
            (number("now at "), number("jiffies:"), offset)
        else {
            return fault("/proc/timer_list does not say where the ticks are");
        };
        if now % TICK_NS > TICK_NS / 2 {
            continue; // the list may have been printed across a tick
        }
        let tick = now / TICK_NS;
        let first_tick = (after - offset).max(now) / TICK_NS + 1;
        let ahead = (jiffies + first_tick - tick).rem_euclid(ALIGNMENT);
        return Ok((first_tick + (ALIGNMENT - ahead) % ALIGNMENT) * TICK_NS + offset);
    }
}
