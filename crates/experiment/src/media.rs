//! Media: the experiment's words for the scenario's fields. What is not said has the core's default.

use crate::problem;
use crate::quantity::{rate, size, time};
use dragstrip_scenario::{MediumSpec, Problem, json_problem};
use dragstrip_units::{ParseError, tc};
use serde_json::{Map, Value};

/// Reads a quantity of text into the number that the scenario has.
type Read = fn(&str) -> Result<Value, ParseError>;

const RATE: Read = |text| rate(text).map(Value::from);
const SIZE: Read = |text| size(text).map(Value::from);
const TIME: Read = |text| time(text).map(Value::from);
const SHARE: Read = |text| tc::parse_percent(text).map(Value::from);
const NAME: Read = |text| Ok(Value::from(text));

/// The experiment's field, the scenario's, and how its text is read; others are the same in both.
const FIELDS: &[(&str, &str, Read)] = &[
    ("rate", "rate_bps", RATE),
    ("phy", "phy_bps", RATE),
    ("dte", "dte_bps", RATE),
    ("interleaving", "interleaving_ns", TIME),
    ("air_time", "air_time_ns", TIME),
    ("burst", "burst_ns", TIME),
    ("beacon", "beacon_ns", TIME),
    ("beacon_period", "beacon_period_ns", TIME),
    ("processing", "processing_ns", TIME),
    ("aggregate_bytes", "aggregate_bytes", SIZE),
    ("block", "block_bytes", SIZE),
    ("buffer", "buffer_bytes", SIZE),
    ("frame_error", "frame_error", SHARE),
    ("ring", "ring_packets", NAME),
    ("aggregate", "aggregate_packets", NAME),
];

/// The scenario's field for one of the experiment's.
fn translated(field: &str) -> (&str, Read) {
    let known = FIELDS.iter().find(|(own, _, _)| *own == field);
    known.map_or((field, NAME), |(_, core, read)| (core, *read))
}

/// The medium that a table of the experiment describes. A trace brings its `opportunities_ms`: files are read elsewhere.
pub(crate) fn medium(form: &Map<String, Value>) -> Result<MediumSpec, Problem> {
    let mut core = Map::new();
    for (field, value) in form {
        let (name, read) = translated(field);
        let value = if let Value::String(text) = value {
            let wrong =
                |error: ParseError| problem(field, &format!("{:?}", error.value), &error.expected);
            read(text).map_err(wrong)?
        } else {
            value.clone()
        };
        core.insert(name.to_owned(), value);
    }
    serde_json::from_value(Value::Object(core)).map_err(|error| json_problem(String::new(), &error))
}

/// Whether stations share it, so that it carries both ways; of others each link has its own.
pub(crate) fn shared(form: &Map<String, Value>) -> bool {
    let kind = form.get("kind").and_then(Value::as_str);
    !matches!(kind, Some("adsl" | "modem" | "trace"))
}
