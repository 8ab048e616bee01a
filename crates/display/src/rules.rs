//! The rules.

use crate::tables::{DASHES, HEADROOM, PALETTE, PANELS, RESERVED, STRIPS, UNITS};

/// Smallest share of a unit that is written in that unit: three digits round it to 1.
const ROUNDED: f64 = 0.9995;

/// Returns the name of each algorithm's colour, the same for equal algorithms.
///
/// Algorithms with a reserved colour get that; the others get the free colours of the palette in the order given, and
/// the palette again where it is used up.
#[must_use]
pub fn colours(algorithms: &[&str]) -> Vec<&'static str> {
    let reserved = |name: &str| RESERVED.iter().find(|row| row.0 == name).map(|row| row.1);
    let taken: Vec<_> = algorithms.iter().filter_map(|name| reserved(name)).collect();
    let mut free = PALETTE.iter().filter(|colour| !taken.contains(colour));
    let mut assigned: Vec<(&str, &'static str)> = Vec::new();
    for name in algorithms {
        if assigned.iter().all(|row| row.0 != *name) {
            let next = || free.next().copied().unwrap_or(PALETTE[assigned.len() % PALETTE.len()]);
            let colour = reserved(name).unwrap_or_else(next);
            assigned.push((name, colour));
        }
    }
    let of = |name: &&str| assigned.iter().find(|row| row.0 == *name).map(|row| row.1);
    algorithms.iter().filter_map(of).collect()
}

/// Returns the place in [`DASHES`] of each curve's pattern: the first curve of a colour has the first one, the next curve of
/// that colour the next.
#[must_use]
pub fn dashes(colours: &[&str]) -> Vec<usize> {
    let before = |at: usize| colours[..at].iter().filter(|colour| **colour == colours[at]).count();
    (0..colours.len()).map(|at| before(at) % DASHES.len()).collect()
}

/// Returns the name of the colour in [`STRIPS`] of each phase or limit.
///
/// A word of no row, such as a phase of somebody's program, gets the colours in the order of the words.
#[must_use]
pub fn strip_colours(words: &[&str]) -> Vec<&'static str> {
    let row = |word: &str| {
        STRIPS.iter().find(|row| row.phases.contains(&word) || row.limits.contains(&word))
    };
    let colour = |(place, word): (usize, &&str)| {
        row(word).unwrap_or(&STRIPS[place % STRIPS.len()]).colour.name
    };
    words.iter().enumerate().map(colour).collect()
}

/// Returns the place of the largest unit in which `greatest` is at least 1, else of the smallest; `sizes` are the units'
/// sizes in base units, from the smallest up.
#[must_use]
pub fn unit_for(greatest: f64, sizes: &[f64]) -> usize {
    let magnitude = if greatest.is_finite() { greatest.abs() } else { 0.0 };
    sizes.iter().rposition(|size| magnitude >= size * ROUNDED).unwrap_or(0)
}

/// An axis from 0 up.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// Title with the unit.
    pub title: String,
    /// The unit's name.
    pub unit: &'static str,
    /// The unit's size in base units.
    pub divisor: f64,
    /// The end of the axis, in units.
    pub high: f64,
    /// The quantity is a share, whose axis ends at 1.
    pub is_share: bool,
}

/// Returns the axis of a panel whose greatest value, in base units, is this one; none if there is no such panel.
#[must_use]
pub fn axis(panel: &str, greatest: f64) -> Option<Axis> {
    let panel = PANELS.iter().find(|row| row.name == panel)?;
    let units = UNITS.iter().find(|row| row.0 == panel.units)?.1;
    let sizes: Vec<f64> = units.iter().map(|unit| unit.0).collect();
    let (divisor, unit) = units[unit_for(greatest, &sizes)];
    let title = match unit {
        "" => panel.title.to_owned(),
        _ => format!("{} ({unit})", panel.title),
    };
    let is_share = panel.units == "share";
    let top = greatest / divisor;
    let high = match top {
        _ if is_share => 1.0,
        _ if top.is_nan() || top == 0.0 => HEADROOM,
        _ => top * HEADROOM,
    };
    Some(Axis { title, unit, divisor, high, is_share })
}

/// An instant of a run that a chart marks.
#[derive(Clone, Debug, PartialEq)]
pub struct Mark {
    /// Seconds after the start.
    pub at_s: f64,
    /// The event, in words.
    pub text: String,
}

/// Returns the mark for a finding about two flows: the instant at which the second one backs off, or starts late. None
/// where the finding names no instant.
#[must_use]
pub fn mark(flows: &[&str], figure: impl Fn(&str) -> Option<f64>) -> Option<Mark> {
    let [_, second] = flows else { return None };
    if let Some(at_s) = figure("peak_s") {
        return Some(Mark { at_s, text: format!("{second} backs off") });
    }
    let is_late = figure("later_s").is_some_and(|later_s| later_s > 0.0);
    let at_s = figure("from_s").filter(|_| is_late)?;
    Some(Mark { at_s, text: format!("{second} starts") })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::{COLOURS, Colour};
    use serde_json::Value;

    /// The cases that the tests of the report and of the page read too.
    fn cases() -> Vec<Value> {
        serde_json::from_str(include_str!("../../../tests/viewer/looks.json")).unwrap()
    }

    fn colour(name: &str) -> Option<&'static Colour> {
        COLOURS.iter().find(|colour| colour.name == name)
    }

    fn texts(list: &Value) -> Vec<&str> {
        list.as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect()
    }

    #[test]
    fn every_case_has_its_colours_and_dashes() {
        for case in cases() {
            let names = colours(&texts(&case["algorithms"]));
            let shades: Vec<&str> = names.iter().map(|name| colour(name).unwrap().light).collect();
            assert_eq!(shades, texts(&case["colours"]));
            let patterns: Vec<&[u32]> = dashes(&names).into_iter().map(|at| DASHES[at]).collect();
            assert_eq!(serde_json::to_value(patterns).unwrap(), case["dashes"]);
        }
    }

    #[test]
    fn the_tables_refer_to_what_exists() {
        for name in PALETTE.iter().chain(RESERVED.iter().map(|row| &row.1)) {
            assert!(colour(name).is_some(), "{name}");
        }
        for panel in PANELS {
            assert!(axis(panel.name, 1.0).is_some(), "{}", panel.name);
        }
        for (kind, units) in UNITS {
            assert!(units.is_sorted_by(|a, b| a.0 < b.0), "{kind}");
        }
    }

    #[test]
    fn phases_and_limits_have_colours_that_no_curve_has() {
        let words = ["slow_start", "startup", "mine", "loss"];
        assert_eq!(strip_colours(&words), ["lime", "lime", "maroon", "maroon"]);
        assert_eq!(strip_colours(&["cwnd", "pacing"]), ["aqua", "violet"]);
        let mut limits: Vec<&str> = STRIPS.iter().flat_map(|row| row.limits).copied().collect();
        limits.sort_unstable();
        assert_eq!(limits, ["app", "cwnd", "handshake", "pacing", "rwnd", "small_queue", "sndbuf"]);
        for Colour { name, light, dark } in STRIPS.iter().map(|row| row.colour) {
            let same =
                |curve: &&Colour| curve.name == name || curve.light == light || curve.dark == dark;
            assert!(COLOURS.iter().find(same).is_none(), "{name}");
        }
    }

    #[test]
    fn an_axis_has_the_largest_unit_of_which_there_is_one() {
        let facts = |panel, greatest| {
            let axis = axis(panel, greatest).unwrap();
            (axis.title, axis.divisor, axis.high)
        };
        assert_eq!(facts("cwnd", 160e3), ("Window (kB)".to_owned(), 1e3, 160.0 * 1.05));
        assert_eq!(facts("cwnd", 999.0), ("Window (B)".to_owned(), 1.0, 999.0 * 1.05));
        assert_eq!(facts("cwnd", 999.6).1, 1e3);
        assert_eq!(facts("share", 0.4), ("Share of the goodput".to_owned(), 1.0, 1.0));
        assert_eq!(facts("queue", 0.0).2, 1.05);
        assert_eq!(facts("rtt", f64::NAN).2, 1.05);
        assert_eq!(axis("no such", 1.0), None);
        assert_eq!(unit_for(-2e6, &[1.0, 1e3, 1e6]), 2);
        assert_eq!(unit_for(f64::INFINITY, &[1.0, 1e3]), 0);
    }

    #[test]
    fn a_mark_is_where_the_second_flow_backs_off_or_starts_late() {
        let of = |flows: &[&str], figures: &[(&str, f64)]| {
            mark(flows, |name| figures.iter().find(|row| row.0 == name).map(|row| row.1))
                .map(|mark| (mark.at_s, mark.text))
        };
        let pair = ["cubic", "vegas"];
        assert_eq!(of(&pair, &[("peak_s", 4.5)]), Some((4.5, "vegas backs off".to_owned())));
        assert_eq!(
            of(&pair, &[("from_s", 5.0), ("later_s", 5.0)]),
            Some((5.0, "vegas starts".to_owned()))
        );
        assert_eq!(of(&pair, &[("from_s", 0.0), ("later_s", 0.0)]), None);
        assert_eq!(of(&pair, &[("from_s", 1.0)]), None);
        assert_eq!(of(&["cubic"], &[("peak_s", 1.0)]), None);
    }
}
