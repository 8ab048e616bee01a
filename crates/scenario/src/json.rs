//! JSON to scenario, with errors that say where.

use crate::types::{NodeSpec, Scenario};
use dragstrip_units::Problem;
use dragstrip_units::suggest;
use serde::Deserializer;

impl Scenario {
    /// Parses a scenario from a JSON document, with the ticks of each host's profile as the default; its contents are
    /// not validated yet.
    ///
    /// # Errors
    /// The first thing that is not of the form the schema gives: broken JSON, an unknown or missing
    /// field, a wrong type.
    pub fn from_json(text: &str) -> Result<Self, Problem> {
        let mut reader = serde_json::Deserializer::from_str(text);
        let scenario = Self::read(&mut reader)?;
        reader.end().map_err(|error| json_problem(String::new(), &error))?;
        Ok(scenario)
    }

    /// The scenario that a JSON value describes, as [`Scenario::from_json`] reads it.
    ///
    /// # Errors
    /// The first field that is unknown or missing, or of a wrong type.
    pub fn from_value(document: serde_json::Value) -> Result<Self, Problem> {
        Self::read(document)
    }

    fn read<'de>(
        document: impl Deserializer<'de, Error = serde_json::Error>,
    ) -> Result<Self, Problem> {
        let mut scenario: Self = serde_path_to_error::deserialize(document).map_err(|error| {
            let path = error.path().to_string();
            let path = if path == "." { String::new() } else { path };
            json_problem(path, &error.into_inner())
        })?;
        for node in &mut scenario.nodes {
            if let NodeSpec::Host(host) = node {
                host.tick_hz = Some(host.ticks_per_second());
            }
        }
        Ok(scenario)
    }

    /// The JSON Schema of a scenario, as `docs/reference/scenario.schema.json` holds it.
    #[cfg(feature = "schema")]
    #[must_use]
    pub fn schema() -> serde_json::Value {
        schemars::schema_for!(Self).to_value()
    }
}

/// Converts serde's error for a document to a problem, `path` being the field: parses its message, which contains the
/// field's name and the accepted ones.
#[must_use]
pub fn json_problem(path: String, error: &serde_json::Error) -> Problem {
    let message = error.to_string();
    if !error.is_data() {
        return Problem::new(path, format!("broken JSON: {message}"), "a JSON document");
    }
    let (message, _position) = message.rsplit_once(" at line ").unwrap_or((&message, ""));
    if let Some((field, accepted)) = quoted_after(message, "unknown field ") {
        let expected = one_of(field, &accepted);
        return Problem::new(join(&path, field), "an unknown field", expected);
    }
    if let Some((variant, accepted)) = quoted_after(message, "unknown variant ") {
        return Problem::new(path, format!("{variant:?}"), one_of(variant, &accepted));
    }
    if let Some((field, _)) = quoted_after(message, "missing field ") {
        return Problem::new(join(&path, field), "nothing", "a value: the field is mandatory");
    }
    // "invalid type: string \"x\", expected u64"; numbers out of range read the same.
    match message.rsplit_once(", expected ") {
        Some((got, expected)) => {
            let got = got.split_once(": ").map_or(got, |(_, got)| got);
            Problem::new(path, got, plain_type(expected))
        }
        None => Problem::new(path, message, "what docs/reference/scenario.schema.json says"),
    }
}

/// "unknown field `x`, expected one of `a`, `b`" → (x, [a, b]).
fn quoted_after<'a>(message: &'a str, start: &str) -> Option<(&'a str, Vec<&'a str>)> {
    let mut quoted = message.strip_prefix(start)?.split('`').skip(1).step_by(2);
    Some((quoted.next()?, quoted.collect()))
}

fn one_of(word: &str, accepted: &[&str]) -> String {
    if accepted.is_empty() {
        return "no field at all".to_owned();
    }
    suggest(word, accepted.iter().copied(), &format!("one of {}", accepted.join(", ")))
}

/// Inside an enum serde has lost the path below it, so that the field is missing at its end.
fn join(path: &str, field: &str) -> String {
    let last = path.rsplit('.').next().unwrap_or_default();
    match (path.is_empty(), last == field) {
        (true, _) => field.to_owned(),
        (false, true) => path.to_owned(),
        (false, false) => format!("{path}.{field}"),
    }
}

/// Rust's names of types in words.
fn plain_type(expected: &str) -> String {
    match expected {
        "u64" | "u32" => "a whole number, not negative".to_owned(),
        "i32" | "i64" => "a whole number".to_owned(),
        "f64" => "a number".to_owned(),
        "a sequence" => "a list".to_owned(),
        "a map" => "an object".to_owned(),
        _ => expected.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use crate::{Problem, Scenario, fixture};
    use serde_json::{Value, json};

    fn refused(change: impl FnOnce(&mut Value)) -> Problem {
        let mut document = serde_json::to_value(fixture::scenario()).unwrap();
        change(&mut document);
        Scenario::from_json(&document.to_string()).expect_err("the change breaks the document")
    }

    #[test]
    fn a_scenario_survives_a_round_trip() {
        let text = serde_json::to_string(&fixture::scenario()).unwrap();
        assert_eq!(Scenario::from_json(&text), Ok(fixture::scenario()));
    }

    #[test]
    fn defaults_may_be_left_out() {
        let scenario = Scenario::from_json(
            r#"{"name": "x", "duration_ns": 1, "links": [], "flows": [],
                "nodes": [{"kind": "host", "name": "a"}]}"#,
        )
        .unwrap();
        assert_eq!(scenario.nodes[0].host().unwrap().mtu_bytes, 1500);
        assert_eq!(scenario.record.interval_ns, 100_000_000);
    }

    #[test]
    fn an_unknown_field_is_named_with_the_nearest_known_one() {
        let problem = refused(|scenario| scenario["links"][1]["dely_ns"] = json!(5));
        assert_eq!(problem.field, "links[1].dely_ns");
        assert!(problem.expected.ends_with("did you mean \"delay_ns\"?"), "{problem}");
    }

    #[test]
    fn unknown_fields_inside_enums_are_found_too() {
        let problem = refused(|scenario| scenario["flows"][0]["transport"]["ccc"] = json!("reno"));
        assert_eq!(problem.field, "flows[0].transport.ccc");
        let problem = refused(|scenario| scenario["nodes"][0]["mtu"] = json!(1500));
        assert_eq!(problem.field, "nodes[0].mtu");
        let problem = refused(|scenario| {
            scenario["links"][0]["qdisc"] =
                json!({"kind": "netem", "limit_packets": 1, "dely_ns": 3});
        });
        assert_eq!(problem.field, "links[0].qdisc.dely_ns");
    }

    #[test]
    fn wrong_types_and_missing_fields_are_named() {
        let problem = refused(|scenario| scenario["duration_ns"] = json!("30s"));
        assert_eq!(
            problem.to_string(),
            "duration_ns: got string \"30s\", expected a whole number, not negative"
        );
        let problem = refused(|scenario| scenario["links"][0]["delay_ns"] = json!(-5));
        assert_eq!(
            (problem.field.as_str(), problem.value.as_str()),
            ("links[0].delay_ns", "integer `-5`")
        );
        let problem = refused(|scenario| {
            scenario.as_object_mut().unwrap().remove("flows");
        });
        assert_eq!((problem.field.as_str(), problem.value.as_str()), ("flows", "nothing"));
        let problem = refused(|scenario| scenario["links"][0]["qdisc"] = json!({"kind": "bfifi"}));
        assert_eq!(problem.field, "links[0].qdisc.kind");
        assert!(problem.expected.contains("did you mean \"bfifo\"?"), "{problem}");
    }

    #[test]
    fn broken_json_says_where() {
        let problem = Scenario::from_json("{\"name\": ").unwrap_err();
        assert!(problem.value.contains("line 1 column"), "{problem}");
        let problem = Scenario::from_json("{} {}").unwrap_err();
        assert_eq!(problem.field, "name");
        assert!(Scenario::from_json("").is_err());
    }
}
