//! What a comparison on one path means, as an experiment.
//!
//! ```text
//! s1 ... sN --plain veth-- r --bottleneck-- [loss, jitter] -- d
//!                          r <-- whole RTT, up rate, up queue -- d
//! ```
//!
//! One run per algorithm, or one run with all of them (`together`). The receiver pings the first sender
//! five times a second; the ping's answer passes the bottleneck.

use crate::named::spell_names;
use crate::problem;
use crate::quantity::time;
use crate::words::{FlowWord, time_text};
use crate::workloads::Workload;
use dragstrip_scenario::{Problem, json_problem};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The options of a comparison, as text.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "docs/compare.md")]
pub struct CompareForm {
    pub algorithms: Vec<String>,
    #[serde(default)]
    pub path: Option<String>,
    #[serde(default)]
    pub rate: Option<String>,
    #[serde(default)]
    pub medium: Option<String>,
    #[serde(default)]
    pub trace: Option<String>,
    #[serde(default)]
    pub rtt: Option<String>,
    #[serde(default)]
    pub queue: Option<String>,
    pub duration: String,
    #[serde(default = "bulk")]
    pub workload: String,
    #[serde(default = "one")]
    pub flows: i64,
    #[serde(default)]
    pub both_ways: bool,
    #[serde(default)]
    pub stagger: Option<String>,
    #[serde(default)]
    pub loss: Option<String>,
    #[serde(default)]
    pub jitter: Option<String>,
    #[serde(default)]
    pub up_rate: Option<String>,
    #[serde(default)]
    pub up_medium: Option<String>,
    #[serde(default)]
    pub up_trace: Option<String>,
    #[serde(default)]
    pub up_queue: Option<String>,
    #[serde(default)]
    pub link: Option<String>,
    #[serde(default)]
    pub ecn: bool,
    #[serde(default)]
    pub accurate_ecn: bool,
    #[serde(default)]
    pub sysctl: BTreeMap<String, String>,
    #[serde(default = "auto")]
    pub gso: String,
    #[serde(default = "one")]
    pub seed: i64,
    #[serde(default = "one")]
    pub repeat: i64,
    #[serde(default)]
    pub together: bool,
    #[serde(default)]
    pub programs: BTreeMap<String, String>,
    #[serde(default)]
    pub change: Vec<String>,
}

const fn one() -> i64 {
    1
}

fn bulk() -> String {
    "bulk".to_owned()
}

fn auto() -> String {
    "auto".to_owned()
}

impl CompareForm {
    /// The form that a JSON document describes.
    ///
    /// # Errors
    /// The first field that is unknown, missing or of a wrong type.
    pub fn from_json(text: &str) -> Result<Self, Problem> {
        serde_json::from_str(text).map_err(|error| json_problem(String::new(), &error))
    }

    /// The path, its names written out, and the media that it needs.
    fn path(&self) -> Result<Map<String, Value>, Problem> {
        let mut path = Map::new();
        let mut media = Map::new();
        for (field, text) in [
            ("preset", &self.path),
            ("rate", &self.rate),
            ("medium", &self.medium),
            ("rtt", &self.rtt),
            ("queue", &self.queue),
            ("link", &self.link),
            ("loss", &self.loss),
            ("jitter", &self.jitter),
            ("up_rate", &self.up_rate),
            ("up_medium", &self.up_medium),
            ("up_queue", &self.up_queue),
        ] {
            if let Some(text) = text {
                path.insert(field.to_owned(), json!(text));
            }
        }
        for (field, name, file) in
            [("medium", "recorded", &self.trace), ("up_medium", "recorded-up", &self.up_trace)]
        {
            let Some(file) = file else { continue };
            if path.insert(field.to_owned(), json!(name)).is_some() {
                return Err(problem(&format!("path.{field}"), "", "a medium or a trace, not both"));
            }
            media.insert(name.to_owned(), json!({"kind": "trace", "file": file}));
        }
        if self.path.is_none() {
            let carried = path.contains_key("rate") || path.contains_key("medium");
            let missing = [
                (
                    "rate",
                    carried,
                    "is missing: the bottleneck's rate such as 10mbit, or a medium, a trace or a path",
                ),
                (
                    "rtt",
                    path.contains_key("rtt"),
                    "is missing: the round-trip time of the empty path, such as 40ms",
                ),
                (
                    "queue",
                    path.contains_key("queue"),
                    "is missing: such as 1bdp, 100ms, or the words of tc",
                ),
            ];
            for (field, there, expected) in missing {
                if !there {
                    return Err(problem(&format!("path.{field}"), "", expected));
                }
            }
        }
        let mut content = json!({"path": path, "media": media});
        spell_names(&mut content)?;
        if content["media"].as_object().is_some_and(Map::is_empty) {
            content.as_object_mut().map(|all| all.shift_remove("media"));
        }
        let Value::Object(content) = content else { unreachable!("made as a table") };
        Ok(content)
    }

    /// Where, in the title's words.
    fn place(&self) -> String {
        let Self { path, rate, medium, trace, rtt, queue, .. } = self;
        let mut parts: Vec<String> = Vec::new();
        parts.extend(path.clone());
        let carrier = rate.as_ref().or(medium.as_ref()).or(trace.as_ref());
        parts.extend(carrier.cloned());
        parts.extend(rtt.as_ref().map(|rtt| format!("{rtt} round trip")));
        parts.extend(queue.clone());
        parts.extend(self.loss.as_ref().map(|loss| format!("loss {loss}")));
        parts.extend(self.jitter.as_ref().map(|jitter| format!("jitter {jitter}")));
        parts.extend((self.flows > 1).then(|| format!("{} flows each", self.flows)));
        parts.extend(self.together.then(|| "together".to_owned()));
        let joined = parts.join(", ");
        if path.is_some() { format!("on {joined}") } else { format!("at {joined}") }
    }

    /// The entries of `[[flows]]`. Flows of one run start one after the other, `stagger` apart.
    fn flows(&self, algorithms: &[String]) -> Result<Vec<Value>, Problem> {
        let (workload, times) = Workload::named(&self.workload)?;
        let step = self.stagger.as_deref().map(|text| {
            let wrong = |error: dragstrip_units::ParseError| {
                problem("stagger", &format!("{:?}", error.value), &error.expected)
            };
            time(text).map_err(wrong)
        });
        let step = step.transpose()?;
        let times = i64::try_from(times).unwrap_or(i64::MAX);
        let mut entries = Vec::new();
        let mut before = 0_u64;
        for name in algorithms {
            let word = FlowWord::parse(name, "ALGORITHM")?;
            let own = word.count.unwrap_or(1);
            for part in workload.flows {
                let parts = i64::try_from(part.count).unwrap_or(i64::MAX);
                let count = self.flows.saturating_mul(times).saturating_mul(parts);
                let mut entry = part.entry();
                entry.insert("cc".to_owned(), json!(name));
                entry.insert("count".to_owned(), json!(count));
                if let Some(stagger) = part.stagger {
                    entry.insert("stagger".to_owned(), json!(stagger));
                }
                if let Some(step) = step {
                    entry.insert("stagger".to_owned(), json!(time_text(step)));
                    let start = step.saturating_mul(before);
                    if start > 0 && word.start.is_none() {
                        entry.insert("start".to_owned(), json!(time_text(start)));
                    }
                }
                before =
                    before.saturating_add(own.saturating_mul(u64::try_from(count).unwrap_or(0)));
                let mut back = entry.clone();
                entries.push(Value::Object(entry));
                if self.both_ways {
                    let reverse = !part.reverse;
                    back.insert("reverse".to_owned(), json!(reverse));
                    entries.push(Value::Object(back));
                }
            }
        }
        Ok(entries)
    }
}

/// The experiment that these options describe, as its file would say it.
///
/// # Errors
/// No algorithm, no path, and names that are not known.
pub fn compare(form: &CompareForm) -> Result<Value, Problem> {
    let algorithms = &form.algorithms;
    if algorithms.is_empty() {
        let expected = "is missing: name at least one, such as cubic";
        return Err(problem("ALGORITHM", "", expected));
    }
    let mut sysctl = form.sysctl.clone();
    if form.ecn || form.accurate_ecn {
        let value = if form.accurate_ecn { "3" } else { "1" };
        sysctl.entry("net.ipv4.tcp_ecn".to_owned()).or_insert_with(|| value.to_owned());
    }
    let each = if form.together { algorithms.len() } else { 1 };
    let flows = form.flows(&algorithms[..each])?;
    let mut content = json!({
        "name": "compare",
        "title": format!("{} {}", algorithms.join(", "), form.place()),
        "duration": form.duration,
        "seed": form.seed,
        "repeat": form.repeat,
        "cold_arp": true,
        "hosts": {"*": {"sysctl": sysctl, "gso": form.gso}},
        "flows": flows,
        "probes": [{"from": "d", "target": "s1", "interval": "200ms"}],
    });
    if !form.programs.is_empty() {
        content["programs"] = json!(form.programs);
    }
    for (field, value) in form.path()? {
        content[field] = value;
    }
    if !form.change.is_empty() {
        let changes = form.change.iter().map(|text| crate::changes::entry(text));
        content["changes"] = changes.collect::<Result<_, _>>()?;
    }
    if !form.together {
        content["vary"] = json!({"flows.cc": algorithms});
    }
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Experiment, build};

    fn form(changes: &Value) -> Value {
        let mut form = json!({
            "algorithms": ["cubic", "bbr"], "rate": "10mbit", "rtt": "40ms", "queue": "bfifo limit 200kb", "duration": "30s",
        });
        for (field, value) in changes.as_object().into_iter().flatten() {
            form[field] = value.clone();
        }
        compare(&CompareForm::from_json(&form.to_string()).unwrap()).unwrap()
    }

    #[test]
    fn algorithms_run_alone_or_together() {
        let alone = form(&json!({"flows": 3}));
        assert_eq!(alone["vary"]["flows.cc"], json!(["cubic", "bbr"]));
        assert_eq!(alone["flows"], json!([{"cc": "cubic", "count": 3}]));
        let together = form(&json!({"together": true, "ecn": true}));
        assert_eq!(together.get("vary"), None);
        let experiment = Experiment::from_json(&together.to_string()).unwrap();
        let scenario = build(&experiment, "both", 1).unwrap();
        assert_eq!(scenario.flows.len(), 2);
        assert_eq!(scenario.nodes[0].host().unwrap().sysctl["net.ipv4.tcp_ecn"], "1");
        let accurate = form(&json!({"accurate_ecn": true}));
        assert_eq!(accurate["hosts"]["*"]["sysctl"]["net.ipv4.tcp_ecn"], "3");
        assert_eq!(scenario.validate(), Ok(()));
    }

    #[test]
    fn a_path_by_name_needs_no_more() {
        let named = CompareForm::from_json(
            r#"{"algorithms": ["cubic"], "path": "home DSL", "queue": "fq_codel", "duration": "1s"}"#,
        );
        let content = compare(&named.unwrap()).unwrap();
        assert_eq!(content["title"], "cubic on home DSL, fq_codel");
        assert_eq!(content["path"]["queue"], "fq_codel");
        let experiment = Experiment::from_json(&content.to_string()).unwrap();
        assert_eq!(build(&experiment, "x", 1).unwrap().validate(), Ok(()));
        for (field, options) in [
            (
                "path.rate",
                json!({"algorithms": ["cubic"], "rtt": "1ms", "queue": "1bdp", "duration": "1s"}),
            ),
            (
                "path.rtt",
                json!({"algorithms": ["cubic"], "rate": "1mbit", "queue": "1bdp", "duration": "1s"}),
            ),
            (
                "path.queue",
                json!({"algorithms": ["cubic"], "medium": "adsl2", "rtt": "1ms", "duration": "1s"}),
            ),
        ] {
            let form = CompareForm::from_json(&options.to_string()).unwrap();
            assert_eq!(compare(&form).unwrap_err().field, field);
        }
    }

    #[test]
    fn flows_run_both_ways_and_start_one_after_the_other() {
        let content = form(
            &json!({"algorithms": ["cubic*2@20ms", "bbr:x=1"], "together": true, "both_ways": true, "stagger": "5s"}),
        );
        let flows = content["flows"].as_array().unwrap();
        let starts: Vec<_> =
            flows.iter().map(|flow| flow.get("start").and_then(Value::as_str)).collect();
        assert_eq!(starts, [None, None, Some("10s"), Some("10s")]);
        let reverse: Vec<_> = flows.iter().map(|flow| flow.get("reverse").is_some()).collect();
        assert_eq!(reverse, [false, true, false, true]);
    }

    #[test]
    fn a_start_of_its_own_is_not_staggered_but_its_further_flows_are() {
        let content =
            form(&json!({"algorithms": ["cubic*2+3s", "bbr"], "together": true, "stagger": "5s"}));
        let text = content.to_string();
        let variant = crate::Variants::from_json(&text).unwrap().get(0).unwrap();
        let one = crate::Experiment::from_json(&variant.content.to_string()).unwrap();
        let made = crate::build_run(&one, &variant.settings, 0, 1).unwrap();
        let starts: Vec<_> = made.flows.iter().map(|flow| flow.start_ns / 1_000_000_000).collect();
        assert_eq!(starts, [3, 8, 10]);
    }

    #[test]
    fn a_workload_has_its_flows_for_each_algorithm() {
        let content = form(&json!({"workload": "rrul", "flows": 2}));
        let counts: Vec<_> =
            content["flows"].as_array().unwrap().iter().map(|flow| &flow["count"]).collect();
        assert_eq!(counts, [8, 8]);
        let experiment = Experiment::from_json(&content.to_string()).unwrap();
        let scenario = build(&experiment, "x", 1).unwrap();
        assert_eq!(scenario.validate(), Ok(()));
        let up = scenario
            .flows
            .iter()
            .filter(|flow| flow.sender == "d" && flow.receiver.starts_with('s'));
        assert_eq!((scenario.flows.len(), up.count()), (16, 8));
        assert_eq!(scenario.nodes.len(), 10);
    }

    #[test]
    fn no_algorithm_is_refused() {
        let none = json!({"algorithms": [], "rate": "1mbit", "rtt": "1ms", "queue": "sfq", "duration": "1s"});
        let problem = compare(&CompareForm::from_json(&none.to_string()).unwrap()).unwrap_err();
        assert_eq!(problem.field, "ALGORITHM");
    }
}
