//! The experiment as a document: read from JSON with the names in it written out, and its JSON Schema.

use crate::presets::spell_names;
use crate::tables::read;
use crate::types::Experiment;
use dragstrip_scenario::{Problem, json_problem};
use serde_json::Value;

impl Experiment {
    /// The experiment that a JSON document describes. Names of paths and media are written out; `rules` are not applied.
    ///
    /// # Errors
    /// The first field that is unknown, missing, or no quantity.
    pub fn from_json(text: &str) -> Result<Self, Problem> {
        let mut content: Value =
            serde_json::from_str(text).map_err(|error| json_problem(String::new(), &error))?;
        spell_names(&mut content)?;
        Self::read(&content)
    }

    /// The experiment that content describes in which no path or medium is named any more.
    ///
    /// # Errors
    /// The errors of [`Experiment::from_json`].
    pub(crate) fn read(content: &Value) -> Result<Self, Problem> {
        read(content)
    }

    /// The JSON Schema of an experiment, as `docs/reference/experiment.schema.json` holds it in draft 7.
    #[must_use]
    pub fn schema() -> Value {
        let mut schema = schemars::schema_for!(Self).to_value();
        let by_name = serde_json::json!({"type": "string", "description": "A path by name."});
        if let Some(choices) = schema["properties"]["path"]["anyOf"].as_array_mut() {
            choices.push(by_name);
        }
        schema
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn outcome_text(changes: &Value) -> String {
        let mut content = json!({
            "duration": "1s", "path": {"rate": "10mbit", "rtt": "40ms"}, "flows": [{"cc": "cubic"}],
        });
        for (field, value) in changes.as_object().into_iter().flatten() {
            content[field] = value.clone();
        }
        let Problem { field, value, expected } =
            Experiment::from_json(&content.to_string()).unwrap_err();
        format!("{field}|{value}|{expected}")
    }

    #[test]
    fn an_error_knows_its_field_however_deep() {
        for (changes, expected) in [
            (
                json!({"path": {"rat": "1mbit"}}),
                "path.rat||is not a known field; did you mean \"rate\"? (known: preset, rate, medium",
            ),
            (json!({"flows": [{"cc": 3}]}), "flows[0].cc|3|a text"),
            (
                json!({"flows": {"cc": "reno"}}),
                "flows|a table|a list of tables: [[flows]] instead of [flows]",
            ),
            (json!({"duration": null}), "duration|null|text with a unit, such as \"40ms\""),
            (
                json!({"flows": [{"application": {"kind": "constant_rate", "rate": "x"}}]}),
                "flows[0].application.rate|\"x\"|a rate with its unit",
            ),
            (
                json!({"flows": [{"application": {"kind": "on_off", "on": "1s"}}]}),
                "flows[0].application.off||is missing",
            ),
            (
                json!({"flows": [{"application": {"kind": "bulky"}}]}),
                "flows[0].application.kind|\"bulky\"|one of bulk, on_off",
            ),
            (json!({"flows": [{"application": {}}]}), "flows[0].application.kind||is missing"),
            (
                json!({"media": {"air": {"kind": "wifi_n", "mcs": 3, "mcss": 4}}}),
                "media.air.mcss||is not a known field; did you mean \"mcs\"?",
            ),
            (
                json!({"path": {"rate": "1mbit", "senders": [{"rate": "9"}]}}),
                "path.senders[0].rate|\"9\"|a rate with its unit",
            ),
            (json!({"claims": [{"id": "a"}]}), "claims[0].source||is missing"),
            (
                json!({"hosts": {"*": {"sysctl": {"x": true}}}}),
                "hosts.*.sysctl.x|true|the value as sysctl takes it",
            ),
        ] {
            let message = outcome_text(&changes);
            assert!(message.starts_with(expected), "{message}\n{expected}");
        }
    }

    #[test]
    fn documents_survive_a_round_trip() {
        let text = json!({
            "duration": "1500ms", "path": {"rate": "10mbit", "rtt": "40ms", "loss": "0.07%"},
            "flows": [{"application": {"kind": "constant_rate", "rate": "1mbit"}}],
            "hosts": {"s?": {"sysctl": {"net.ipv4.tcp_ecn": 1}}, "*": {}},
        });
        let experiment = Experiment::from_json(&text.to_string()).unwrap();
        let json_text = serde_json::to_string(&experiment).unwrap();
        let again = Experiment::from_json(&json_text).unwrap();
        assert_eq!(serde_json::to_string(&again).unwrap(), json_text);
        assert!(json_text.contains(
            r#""application":{"kind":"constant_rate","rate":"1mbit","datagram":"1470b"}"#
        ));
    }
}
