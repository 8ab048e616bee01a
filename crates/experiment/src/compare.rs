//! What a comparison on one path means, as an experiment.
//!
//! ```text
//! s1 ... sN --plain veth-- r --bottleneck-- [loss, jitter] -- d
//!                          r <-- whole RTT, up rate, up queue -- d
//! ```
//!
//! One run per algorithm, or one run with all of them (`together`). The receiver pings the first sender
//! five times a second; the ping's answer passes the bottleneck.

use crate::problem;
use dragstrip_scenario::{Problem, json_problem};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The options of a comparison, as text.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "docs/compare.md")]
pub struct CompareForm {
    pub algorithms: Vec<String>,
    pub rate: String,
    pub rtt: String,
    pub queue: String,
    pub duration: String,
    #[serde(default = "one")]
    pub flows: i64,
    #[serde(default)]
    pub loss: Option<String>,
    #[serde(default)]
    pub jitter: Option<String>,
    #[serde(default)]
    pub up_rate: Option<String>,
    #[serde(default)]
    pub up_queue: Option<String>,
    #[serde(default = "htb")]
    pub link: String,
    #[serde(default)]
    pub ecn: bool,
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
}

const fn one() -> i64 {
    1
}

fn htb() -> String {
    "htb".to_owned()
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
}

/// The experiment that these options describe, as its file would say it.
///
/// # Errors
/// No algorithm.
pub fn compare(form: &CompareForm) -> Result<Value, Problem> {
    let CompareForm { algorithms, rate, rtt, queue, .. } = form;
    if algorithms.is_empty() {
        let expected = "is missing: name at least one, such as cubic";
        return Err(problem("ALGORITHM", "", expected));
    }
    let mut path = Map::new();
    for (field, text) in [("rate", rate), ("rtt", rtt), ("queue", queue), ("link", &form.link)] {
        path.insert(field.to_owned(), json!(text));
    }
    for (field, text) in [
        ("loss", &form.loss),
        ("jitter", &form.jitter),
        ("up_rate", &form.up_rate),
        ("up_queue", &form.up_queue),
    ] {
        if let Some(text) = text {
            path.insert(field.to_owned(), json!(text));
        }
    }
    let mut sysctl = form.sysctl.clone();
    if form.ecn {
        sysctl.entry("net.ipv4.tcp_ecn".to_owned()).or_insert_with(|| "1".to_owned());
    }
    let each = if form.together { algorithms.len() } else { 1 };
    let flow = |name: &String| json!({"cc": name, "count": form.flows});
    let mut content = json!({
        "name": "compare",
        "title": format!("{} at {rate}, {rtt} round trip, {queue}", algorithms.join(", ")),
        "duration": form.duration,
        "seed": form.seed,
        "repeat": form.repeat,
        "cold_arp": true,
        "path": path,
        "hosts": {"*": {"sysctl": sysctl, "gso": form.gso}},
        "flows": algorithms.iter().take(each).map(flow).collect::<Vec<_>>(),
        "probes": [{"from": "d", "target": "s1", "interval": "200ms"}],
    });
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
        assert_eq!(scenario.validate(), Ok(()));
    }

    #[test]
    fn no_algorithm_is_refused() {
        let none = json!({"algorithms": [], "rate": "1mbit", "rtt": "1ms", "queue": "sfq", "duration": "1s"});
        let problem = compare(&CompareForm::from_json(&none.to_string()).unwrap()).unwrap_err();
        assert_eq!(problem.field, "ALGORITHM");
    }
}
