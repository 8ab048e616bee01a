//! Combinations of an experiment's alternatives and of the values of its `vary`.

use crate::assign::{assign, path_parts};
use crate::presets::spell_names;
use crate::problem;
use dragstrip_scenario::{Problem, json_problem};
use serde_json::{Map, Value};

/// Fields of an experiment that are left out of its combinations.
const APART: [&str; 4] = ["vary", "alternatives", "ablations", "flow_tables"];

/// Fields set together.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Choice {
    /// Name of an alternative; empty for a value of `vary`.
    name: String,
    /// Dotted path → value.
    set: Map<String, Value>,
}

/// All combinations of an experiment, each built on request.
#[derive(Clone, Debug)]
pub struct Variants {
    base: Value,
    axes: Vec<Vec<Choice>>,
    count: u32,
}

/// A combination.
#[derive(Clone, Debug)]
pub struct Variant {
    /// Settings of this combination: dotted path → value, and `alternative` → name.
    pub settings: Map<String, Value>,
    /// The experiment with these settings, which varies nothing any more.
    pub content: Value,
}

impl Variants {
    /// The variants of an experiment. Alternatives come first, then the paths of `vary` in their order.
    ///
    /// # Errors
    /// Content that is no table, alternatives without name or settings, a varied path without a list of values (the
    /// problem's value is JSON), and more combinations than can be counted in 32 bits.
    pub fn new(mut content: Value) -> Result<Self, Problem> {
        spell_names(&mut content)?;
        let Value::Object(mut base) = content else {
            return Err(problem("", "", "is no experiment: a table of fields is expected"));
        };
        let [vary, alternatives, ..] =
            APART.map(|part| base.shift_remove(part).unwrap_or_default());
        let mut axes = Vec::new();
        if !alternatives.is_null() {
            let choices: Vec<Choice> = serde_json::from_value(alternatives)
                .map_err(|error| json_problem("alternatives".to_owned(), &error))?;
            axes.extend((!choices.is_empty()).then_some(choices));
        }
        for (path, values) in varied(&vary, "vary")? {
            let choice = |value| Choice {
                name: String::new(),
                set: Map::from_iter([(path.clone(), value)]),
            };
            axes.push(values.into_iter().map(choice).collect());
        }
        let count = axes.iter().try_fold(1_u32, |count, axis: &Vec<Choice>| {
            count.checked_mul(u32::try_from(axis.len()).ok()?)
        });
        let expected = format!("at most {} combinations", u32::MAX);
        let count = count.ok_or_else(|| problem("vary", "", &expected))?;
        Ok(Self { base: Value::Object(base), axes, count })
    }

    /// Number of combinations; one where nothing varies.
    #[must_use]
    pub const fn count(&self) -> u32 {
        self.count
    }

    /// The combination of this number, counted from 0; the last axis turns fastest.
    ///
    /// # Errors
    /// The errors of [`assign`].
    pub fn get(&self, number: u32) -> Result<Variant, Problem> {
        let mut rest = number as usize;
        let mut combination = Vec::with_capacity(self.axes.len());
        for axis in self.axes.iter().rev() {
            combination.push(&axis[rest % axis.len()]);
            rest /= axis.len();
        }
        let mut variant = Variant { settings: Map::new(), content: self.base.clone() };
        for Choice { name, set } in combination.into_iter().rev() {
            for (path, value) in set {
                assign(&mut variant.content, path, value)?;
                if path_parts(path).first() == Some(&"path") {
                    spell_names(&mut variant.content)?; // what comes next may change the path that was named
                }
            }
            if name.is_empty() {
                variant.settings.extend(set.clone());
            } else {
                variant.settings.insert("alternative".to_owned(), Value::String(name.clone()));
            }
        }
        Ok(variant)
    }
}

/// Dotted path → its values, in the order of the table. `field` is the table's own, for messages.
///
/// # Errors
/// A path without a list of at least one value; the problem's value is JSON.
pub fn varied(table: &Value, field: &str) -> Result<Vec<(String, Vec<Value>)>, Problem> {
    let wrong = |path: &str, value: &Value| problem(path, &value.to_string(), "a list of values");
    if !matches!(table, Value::Null | Value::Object(_)) {
        return Err(wrong(field, table));
    }
    let mut axes = Vec::new();
    for (path, values) in flat(table) {
        match values.as_array() {
            Some(list) if !list.is_empty() => axes.push((path, list.clone())),
            _ => return Err(wrong(&format!("{field}.{path}"), &values)),
        }
    }
    Ok(axes)
}

/// Flattens a table to leaf values by dotted path: TOML makes tables of `flows.cc = [...]`. A quoted key stays as it
/// is.
#[must_use]
pub fn flat(table: &Value) -> Map<String, Value> {
    let mut fields = Map::new();
    gather(table, "", &mut fields);
    fields
}

fn gather(table: &Value, prefix: &str, fields: &mut Map<String, Value>) {
    for (key, value) in table.as_object().into_iter().flatten() {
        let path = format!("{prefix}{key}");
        if value.is_object() {
            gather(value, &format!("{path}."), fields);
        } else {
            fields.insert(path, value.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn variants(content: &Value) -> Result<Variants, Problem> {
        Variants::new(content.clone())
    }

    #[test]
    fn alternatives_come_first_and_the_last_axis_turns_fastest() {
        let content = json!({
            "alternatives": [
                {"name": "slow", "set": {"path.rate": "1mbit", "path.rtt": "9ms"}},
                {"name": "fast", "set": {"path.rate": "9mbit"}},
            ],
            "path": {"rtt": "5ms"},
            "flows": [{"cc": "reno"}],
            "vary": {"path": {"rtt": ["1ms", "2ms"]}, "flows.cc": ["cubic", "bic"]},
            "ablations": [], "flow_tables": [],
        });
        let variants = variants(&content).unwrap();
        assert_eq!(variants.count(), 8);
        let Variant { settings, content } = variants.get(5).unwrap();
        let expected_settings =
            json!({"alternative": "fast", "path.rtt": "1ms", "flows.cc": "bic"});
        assert_eq!(Value::Object(settings.clone()), expected_settings);
        let order: Vec<&String> = settings.keys().collect();
        assert_eq!(order, ["alternative", "path.rtt", "flows.cc"]);
        let expected_content =
            json!({"path": {"rtt": "1ms", "rate": "9mbit"}, "flows": [{"cc": "bic"}]});
        assert_eq!(content, expected_content);
    }

    #[test]
    fn whole_paths_and_media_vary() {
        let content = json!({
            "path": "LTE",
            "vary": {"path": ["home DSL", "LTE"], "path.queue": ["fq_codel", "1bdp"]},
        });
        let variants = variants(&content).unwrap();
        let path = |at| variants.get(at).unwrap().content["path"].clone();
        assert_eq!((&path(1)["medium"], &path(1)["queue"]), (&json!("dsl-down"), &json!("1bdp")));
        assert_eq!((&path(2)["rate"], &path(2)["queue"]), (&json!("30mbit"), &json!("fq_codel")));
        let content = json!({"path": {"rtt": "9ms"}, "vary": {"path.medium": ["adsl2", "wifi-n"]}});
        let variant = Variants::new(content.clone()).unwrap().get(0).unwrap();
        assert_eq!(variant.content["media"]["adsl2-up"]["rate"], "1mbit");
    }

    #[test]
    fn nothing_varied_is_one_variant() {
        let variants = variants(&json!({"seed": 3})).unwrap();
        assert_eq!(variants.count(), 1);
        let Variant { settings, content } = variants.get(0).unwrap();
        assert_eq!((settings, content), (Map::new(), json!({"seed": 3})));
    }

    #[test]
    fn a_path_needs_a_list_of_values() {
        let problem_of = |vary: &Value| {
            let Problem { field, value, .. } = variants(&json!({"vary": vary})).unwrap_err();
            format!("{field}: {value}")
        };
        assert_eq!(problem_of(&json!({"flows": {"cc": "reno"}})), "vary.flows.cc: \"reno\"");
        assert_eq!(problem_of(&json!({"path.rate": []})), "vary.path.rate: []");
        assert_eq!(problem_of(&json!([1])), "vary: [1]");
        let many = vec![0; 2048];
        assert_eq!(problem_of(&json!({"a": many, "b": many, "c": many})), "vary: ");
    }
}
