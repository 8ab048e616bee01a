//! One run of an experiment: its name, its seed, its scenario.

use crate::build::build;
use crate::problem;
use crate::types::Experiment;
use dragstrip_scenario::{Problem, Scenario};
use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};
use serde_json::{Map, Value};
use std::io::{self, Write};

/// The scenario of a repeat, counted from 0, of an experiment with these settings. Its seed is the experiment's plus
/// the repeat's number. Its name contains the settings, or the congestion controls where nothing varies, and the
/// number of the repeat where there are several.
///
/// # Errors
/// The errors of [`build`], and a seed beyond 64 bits.
pub fn build_run(
    experiment: &Experiment,
    settings: &Map<String, Value>,
    repeat: u64,
    repeats: u64,
) -> Result<Scenario, Problem> {
    let seed = experiment.seed.checked_add(repeat).ok_or_else(|| {
        problem("seed", &experiment.seed.to_string(), "a seed that the repeats can count up from")
    })?;
    let mut name = match settings.is_empty() {
        true => algorithms(experiment),
        false => settings.values().map(short).collect::<Vec<_>>().join(" "),
    };
    if repeats > 1 {
        name += &format!(" #{}", repeat + 1);
    }
    build(experiment, &name, seed)
}

/// `cubic+reno`, none twice.
fn algorithms(experiment: &Experiment) -> String {
    let mut names: Vec<&str> = Vec::new();
    for flow in &experiment.flows {
        let name = flow.cc.as_deref().filter(|cc| !cc.is_empty()).unwrap_or("udp");
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.join("+")
}

/// Text as it is; anything else as JSON.
fn short(value: &Value) -> String {
    if let Value::String(text) = value {
        return text.clone();
    }
    let mut bytes = Vec::new();
    // Writing JSON into memory does not fail.
    let _ = value.serialize(&mut Serializer::with_formatter(&mut bytes, Ascii));
    String::from_utf8_lossy(&bytes).into_owned()
}

/// JSON on one line with blanks after commas and colons, in ASCII. A number with a fraction is scientific below
/// 0.0001 and from 1e16.
struct Ascii;

impl Formatter for Ascii {
    fn write_f64<W: ?Sized + Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        let scientific = format!("{value:e}");
        let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
        let exponent: i32 = exponent.parse().unwrap_or(0);
        if value == 0.0 || (-4..16).contains(&exponent) {
            return write!(writer, "{value:?}");
        }
        let sign = if exponent < 0 { '-' } else { '+' };
        write!(writer, "{digits}e{sign}{:02}", exponent.abs())
    }

    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        text: &str,
    ) -> io::Result<()> {
        for character in text.chars() {
            if (' '..='~').contains(&character) {
                write!(writer, "{character}")?;
            } else {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    write!(writer, "\\u{unit:04x}")?;
                }
            }
        }
        Ok(())
    }

    fn begin_array_value<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        writer.write_all(if first { b"" } else { b", " })
    }

    fn begin_object_key<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        writer.write_all(if first { b"" } else { b", " })
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn run(settings: &Value, repeat: u64, repeats: u64) -> (String, u64) {
        let content = json!({
            "duration": "1s", "seed": 7, "path": {"rate": "1mbit"},
            "flows": [
                {"cc": "reno"}, {"cc": "cubic"}, {"cc": "reno"},
                {"application": {"kind": "constant_rate", "rate": "1kbit"}},
            ],
        });
        let experiment = Experiment::from_json(&content.to_string()).unwrap();
        let settings = settings.as_object().unwrap();
        let scenario = build_run(&experiment, settings, repeat, repeats).unwrap();
        (scenario.name, scenario.seed)
    }

    #[test]
    fn settings_name_a_run_or_the_algorithms_do() {
        assert_eq!(run(&json!({}), 0, 1), ("reno+cubic+udp".to_owned(), 7));
        assert_eq!(run(&json!({}), 2, 3), ("reno+cubic+udp #3".to_owned(), 9));
        let settings = json!({"alternative": "näher", "flows.count": 3, "x": true, "y": null});
        assert_eq!(run(&settings, 0, 2).0, "näher 3 true null #1");
    }

    #[test]
    fn values_other_than_texts_are_json() {
        let listed = json!([["a", "ü😀\u{7f}\n\"", 1], {"kind": "bulk", "n": -2}]);
        assert_eq!(
            short(&listed),
            r#"[["a", "\u00fc\ud83d\ude00\u007f\n\"", 1], {"kind": "bulk", "n": -2}]"#
        );
        for (number, text) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (100.0, "100.0"),
            (0.1, "0.1"),
            (0.0001, "0.0001"),
            (0.000_012_5, "1.25e-05"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (-2.5e-300, "-2.5e-300"),
        ] {
            assert_eq!(short(&json!(number)), text);
        }
    }

    #[test]
    fn seeds_end_at_64_bits() {
        let content = json!({"duration": "1s", "seed": u64::MAX, "flows": []}).to_string();
        let experiment = Experiment::from_json(&content).unwrap();
        assert_eq!(build_run(&experiment, &Map::new(), 1, 2).unwrap_err().field, "seed");
    }
}
