//! Expansion of a comparison on one path to an experiment.
//!
//! ```text
//! s1 ... sN --plain veth-- r --bottleneck-- [loss, jitter] -- d
//!                          r <-- whole RTT, up rate, up queue -- d      with uploads: a router w in front of d
//! ```
//!
//! One run per algorithm, or one run with all of them (`together`). The receiver pings the first sender
//! five times a second; the ping's answer passes the bottleneck.

use crate::assign::assign;
use crate::presets::hosts::{HOSTS, NamedHost};
use crate::presets::spell_names;
use crate::problem;
use crate::quantity::time;
use crate::race::{ALGORITHMS, Place, RaceForm, Takes, number_of};
use crate::types::FlowForm;
use crate::words::{FlowWord, time_text};
use crate::workloads::Workload;
use dragstrip_scenario::{GsoMode, Problem};
use serde_json::{Map, Value, json};

/// The value of `hosts` that stands for every kind, one run each.
const ALL_HOSTS: &str = "all";

/// The experiment that these options describe, as its file would say it. Values are placed as they were given: what is
/// wrong with one is found where the experiment is checked.
///
/// # Errors
/// No algorithm, no path, and names that are not known.
pub fn compare(form: &RaceForm) -> Result<Value, Problem> {
    let algorithms = &form.algorithms;
    if algorithms.is_empty() {
        // `--flows cubic` has taken the algorithm for its number.
        for (option, value) in form.all().filter(|(option, _)| option.takes == Takes::Count) {
            if !number_of(value).is_number() {
                return Err(problem(
                    option.name,
                    &value.to_string(),
                    "a whole number, not negative",
                ));
            }
        }
        let expected = "is missing: name at least one, such as cubic";
        return Err(problem(&ALGORITHMS.word(), "", expected));
    }
    let together = form.flag("together");
    let per_run = if together { algorithms.len() } else { 1 };
    let flows = flows(form, &algorithms[..per_run])?;
    let both_ways = flows.iter().any(sends_back);
    let mut content = json!({
        "name": "compare",
        "title": format!("{} {}", algorithms.join(", "), place(form, both_ways)),
        "duration": form.text("duration").unwrap_or_default(),
        "seed": 1,
        "repeat": 1,
        "cold_arp": true,
        "hosts": {"*": {"sysctl": sysctls(form)}},
        "flows": flows,
        "probes": [{"from": "d", "target": "s1", "interval": "200ms"}],
    });
    // A kind of host has its own bursts.
    if form.value("hosts").is_none() {
        content["hosts"]["*"]["gso"] = json!(form.text("gso").unwrap_or_default());
    }
    if form.flag("no_rtts") {
        content["record"] = json!({"rtts": false});
    }
    if let Some(programs) = form.value("programs").filter(|value| *value != &json!({})) {
        content["programs"] = programs.clone();
    }
    for (field, value) in path(form, both_ways)? {
        content[field] = value;
    }
    for (option, value) in form.all() {
        match option.place {
            Place::Field(_) if option.name == "hosts" && value == ALL_HOSTS => {}
            Place::Field(field) if !field.starts_with("path.") => {
                let value =
                    if option.takes == Takes::Count { number_of(value) } else { value.clone() };
                assign(&mut content, field, &value)?;
            }
            Place::Flows(field) => assign(&mut content, &format!("flows.{field}"), value)?,
            Place::Field(_) | Place::Sysctl(_) | Place::SysctlIs(..) | Place::Rule => {}
        }
    }
    let changes = form.value("change").and_then(Value::as_array);
    let changes = changes.into_iter().flatten().filter_map(Value::as_str);
    let changes: Vec<Value> = changes.map(crate::changes::entry).collect::<Result<_, _>>()?;
    if !changes.is_empty() {
        content["changes"] = Value::Array(changes);
    }
    if !together {
        content["vary"] = json!({"flows.cc": algorithms});
    }
    if form.value("hosts").is_some_and(|value| value == ALL_HOSTS) {
        // Media carry single frames.
        let carries = |kind: &&NamedHost| {
            content["path"].get("medium").is_none() || kind.settings().gso != Some(GsoMode::Whole)
        };
        let kinds: Vec<&str> = HOSTS.iter().filter(carries).map(|kind| kind.name).collect();
        content["vary"]["hosts.*.preset"] = json!(kinds);
    }
    Ok(content)
}

/// The sysctls of all hosts: `--sysctl` overrides the effects of other options.
fn sysctls(form: &RaceForm) -> Map<String, Value> {
    let mut sysctls = Map::new();
    for (option, value) in form.all() {
        match option.place {
            Place::SysctlIs(key, is) if value == &Value::Bool(true) => {
                sysctls.insert(key.to_owned(), json!(is));
            }
            Place::Sysctl(key) => {
                sysctls.insert(key.to_owned(), value.clone());
            }
            Place::SysctlIs(..) | Place::Field(_) | Place::Flows(_) | Place::Rule => {}
        }
    }
    let settings = form.value("sysctl").and_then(Value::as_object);
    sysctls.extend(settings.into_iter().flatten().map(|(key, value)| (key.clone(), value.clone())));
    sysctls
}

/// True when the data of an entry of `[[flows]]` take the return path. Errors in an entry are reported when the
/// experiment is checked.
fn sends_back(entry: &Value) -> bool {
    serde_json::from_value(entry.clone()).is_ok_and(|flow: FlowForm| flow.sends_back())
}

/// Gives a return path that carries data the way there's rate or trace, and its queue: without one it would carry as much
/// as windows allow. Named media bring their own way back.
fn limit_return(path: &mut Map<String, Value>, media: &Value) {
    if path.contains_key("up_rate") || path.contains_key("up_medium") {
        return;
    }
    let recorded = |name: &Value| name.as_str().is_some_and(|name| media[name]["kind"] == "trace");
    let alike = [
        ("up_rate", path.get("rate")),
        ("up_medium", path.get("medium").filter(|medium| recorded(medium))),
    ];
    let Some((field, value)) =
        alike.into_iter().find_map(|(field, way)| Some((field, way?.clone())))
    else {
        return;
    };
    path.insert(field.to_owned(), value);
    if let Some(queue) = path.get("queue").filter(|_| !path.contains_key("up_queue")).cloned() {
        path.insert("up_queue".to_owned(), queue);
    }
}

/// The path, its names written out, and the media that it needs; `both_ways`: it carries data both ways.
fn path(form: &RaceForm, both_ways: bool) -> Result<Map<String, Value>, Problem> {
    let mut path = Map::new();
    let mut media = Map::new();
    for (option, value) in form.all() {
        if let Place::Field(field) = option.place
            && let Some(field) = field.strip_prefix("path.")
        {
            path.insert(field.to_owned(), value.clone());
        }
    }
    for (option, field, name) in
        [("trace", "medium", "recorded"), ("up_trace", "up_medium", "recorded-up")]
    {
        let Some(file) = form.value(option) else { continue };
        if path.contains_key("rate") && option == "trace" {
            return Err(problem(option, &file.to_string(), "no trace beside a rate"));
        }
        if path.insert(field.to_owned(), json!(name)).is_some() {
            return Err(problem(&format!("path.{field}"), "", "a medium or a trace, not both"));
        }
        media.insert(name.to_owned(), json!({"kind": "trace", "file": file}));
    }
    if form.value("path").is_none() {
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
        ];
        for (field, forward, expected) in missing {
            if !forward {
                return Err(problem(&format!("path.{field}"), "", expected));
            }
        }
        if let Some(queue) = default_queue(form) {
            path.insert("queue".to_owned(), json!(queue));
        }
    }
    let mut content = json!({"path": path, "media": media});
    spell_names(&mut content)?;
    let media = content["media"].clone();
    if let Some(path) = content["path"].as_object_mut().filter(|_| both_ways) {
        limit_return(path, &media);
    }
    if content["media"].as_object().is_some_and(Map::is_empty) {
        content.as_object_mut().map(|all| all.shift_remove("media"));
    }
    let Value::Object(content) = content else { unreachable!("made as a table") };
    Ok(content)
}

/// The queue of a path that is not one by name, where none is given: what the path holds, or, without a rate to count it
/// by, what Linux gives to an interface.
fn default_queue(form: &RaceForm) -> Option<&'static str> {
    let is_given = |name: &str| form.value(name).is_some();
    let default = if is_given("rate") { "1bdp" } else { "pfifo" };
    (!is_given("path") && !is_given("queue")).then_some(default)
}

/// The path's description in the title.
fn place(form: &RaceForm, both_ways: bool) -> String {
    let text_of = |name: &str| form.value(name).and_then(Value::as_str);
    let path = text_of("path");
    let mut parts: Vec<String> = Vec::new();
    parts.extend(path.map(str::to_owned));
    let carrier = text_of("rate").or_else(|| text_of("medium")).or_else(|| text_of("trace"));
    parts.extend(carrier.map(str::to_owned));
    parts.extend(text_of("rtt").map(|rtt| format!("{rtt} round trip")));
    parts.extend(text_of("queue").map(str::to_owned));
    parts.extend(default_queue(form).map(|queue| format!("{queue} (the default queue)")));
    let back = text_of("up_rate").or_else(|| text_of("up_medium")).or_else(|| text_of("up_trace"));
    parts.extend(back.map(|back| match text_of("up_queue") {
        Some(queue) => format!("{back} back, {queue}"),
        None => format!("{back} back"),
    }));
    let alike = both_ways && back.is_none() && path.is_none();
    parts.extend(alike.then(|| "the same back".to_owned()));
    parts.extend(text_of("loss").map(|loss| format!("loss {loss}")));
    parts.extend(text_of("jitter").map(|jitter| format!("jitter {jitter}")));
    let flows = form.count("flows").ok().filter(|flows| *flows > 1);
    parts.extend(flows.map(|flows| format!("{flows} flows each")));
    parts.extend(form.flag("together").then(|| "together".to_owned()));
    let joined = parts.join(", ");
    if path.is_some() { format!("on {joined}") } else { format!("at {joined}") }
}

/// The entries of `[[flows]]`. Flows of one run start one after the other, `stagger` apart.
fn flows(form: &RaceForm, algorithms: &[String]) -> Result<Vec<Value>, Problem> {
    let workload = match form.value("workload") {
        Some(value) if !value.is_string() => {
            return Err(problem("workload", &value.to_string(), "a text"));
        }
        _ => form.text("workload").unwrap_or_default(),
    };
    let (workload, times, options) = Workload::parse(workload)?;
    let stagger = form.value("stagger");
    // A text that is not a time is refused when the experiment is checked.
    let step = stagger.and_then(Value::as_str).and_then(|text| time(text).ok());
    let times = i64::try_from(times).unwrap_or(i64::MAX);
    let flows = form.count("flows");
    let mut entries = Vec::new();
    let mut before = 0_u64;
    for name in algorithms {
        // A text that is not a word is refused when the experiment is checked.
        let word = FlowWord::parse(name, "").ok();
        let word_count = word.as_ref().and_then(|word| word.count).unwrap_or(1);
        let starts = word.is_some_and(|word| word.start.is_some());
        for part in workload.flows {
            let parts = i64::try_from(part.count).unwrap_or(i64::MAX);
            let count =
                flows.clone().map(|flows| flows.saturating_mul(times).saturating_mul(parts));
            let mut entry = part.entry();
            entry.extend(options.clone());
            if !part.without_cc {
                entry.insert("cc".to_owned(), json!(name));
            }
            entry.insert("count".to_owned(), count.clone().map_or_else(|text| text, Value::from));
            if let Some(stagger) = part.stagger {
                entry.insert("stagger".to_owned(), json!(stagger));
            }
            if let Some(given) = stagger {
                let text = step.map_or_else(|| given.clone(), |step| json!(time_text(step)));
                entry.insert("stagger".to_owned(), text);
                let start = step.unwrap_or(0).saturating_mul(before);
                if start > 0 && !starts {
                    entry.insert("start".to_owned(), json!(time_text(start)));
                }
            }
            let count = count.map_or(0, |count| u64::try_from(count).unwrap_or(0));
            before = before.saturating_add(word_count.saturating_mul(count));
            let mut back = entry.clone();
            entries.push(Value::Object(entry));
            if form.flag("both_ways") {
                let reverse = !part.reverse;
                back.insert("reverse".to_owned(), json!(reverse));
                entries.push(Value::Object(back));
            }
        }
    }
    Ok(entries)
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
        compare(&RaceForm::from_json(&form.to_string()).unwrap()).unwrap()
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
        assert!(scenario.record.rtts);
    }

    #[test]
    fn rtts_are_recorded_once_an_interval_where_that_is_asked_for() {
        let race = form(&json!({"together": true, "no_rtts": true}));
        let experiment = Experiment::from_json(&race.to_string()).unwrap();
        let scenario = build(&experiment, "both", 1).unwrap();
        assert!(!scenario.record.rtts);
    }

    /// A kind of host has bursts of its own, which `--gso` overrides.
    #[test]
    fn kinds_of_hosts_take_the_place_of_the_default_bursts() {
        let hosts = |changes: Value| form(&changes)["hosts"]["*"].clone();
        assert_eq!(hosts(json!({})), json!({"sysctl": {}, "gso": "auto"}));
        assert_eq!(hosts(json!({"hosts": "veth"})), json!({"sysctl": {}, "preset": "veth"}));
        let both = hosts(json!({"hosts": "card", "gso": "off"}));
        assert_eq!((&both["preset"], &both["gso"]), (&json!("card"), &json!("off")));
        let all = form(&json!({"hosts": "all", "together": true}));
        assert_eq!(all["hosts"]["*"], json!({"sysctl": {}}));
        let kinds = json!(["plain", "veth", "card", "server", "paced"]);
        assert_eq!(all["vary"], json!({"hosts.*.preset": kinds}));
        let options = json!({"algorithms": ["cubic"], "medium": "adsl2", "rtt": "40ms",
            "duration": "1s", "hosts": "all"});
        let content = compare(&RaceForm::from_json(&options.to_string()).unwrap()).unwrap();
        assert_eq!(content["vary"]["hosts.*.preset"], json!(["plain", "card", "server", "paced"]));
    }

    /// An unlimited return path would carry what windows allow: 441 Mbit/s against 10.
    #[test]
    fn a_way_back_that_carries_data_is_as_fast_as_the_way_there() {
        let up = |changes: Value| {
            let content = form(&changes);
            let experiment = Experiment::from_json(&content.to_string()).unwrap();
            let scenario = build(&experiment, "x", 1).unwrap();
            assert_eq!(scenario.validate(), Ok(()));
            let path = &content["path"];
            (path["up_rate"].clone(), path["up_queue"].clone())
        };
        let alike = (json!("10mbit"), json!("bfifo limit 200kb"));
        for sends in [
            json!({"both_ways": true}),
            json!({"workload": "rrul"}),
            json!({"workload": "tcp_upload"}),
            json!({"workload": "tcp_12up"}),
            json!({"workload": "web", "both_ways": true}),
        ] {
            assert_eq!(up(sends.clone()), alike, "{sends}");
        }
        // Requests and ACKs alone do not fill it.
        for sends in [json!({}), json!({"workload": "web"}), json!({"workload": "rpc"})] {
            assert_eq!(up(sends.clone()), (Value::Null, Value::Null), "{sends}");
        }
        let options = json!({"both_ways": true, "up_rate": "1mbit"});
        assert_eq!(up(options), (json!("1mbit"), Value::Null), "what is given stays as it is");
        let content = form(&json!({"both_ways": true}));
        let title = content["title"].as_str().unwrap();
        assert!(title.ends_with("bfifo limit 200kb, the same back"), "{title}");
        // A line has its medium in each direction; a shared medium carries both anyway.
        for (medium, back) in
            [("adsl2", json!("adsl2-up")), ("modem", json!("modem-up")), ("wifi-n", Value::Null)]
        {
            let options = json!({"algorithms": ["cubic"], "medium": medium, "rtt": "40ms",
                "duration": "1s", "both_ways": true});
            let content = compare(&RaceForm::from_json(&options.to_string()).unwrap()).unwrap();
            let path = &content["path"];
            assert_eq!(path["up_medium"], back);
            let experiment = Experiment::from_json(&content.to_string()).unwrap();
            assert_eq!(build(&experiment, "x", 1).unwrap().validate(), Ok(()));
        }
    }

    #[test]
    fn a_title_names_what_else_limits_the_path() {
        let options = json!({"algorithms": ["cubic"], "rate": "10mbit", "rtt": "40ms", "queue": "fq_codel",
            "up_rate": "1mbit", "up_queue": "pfifo limit 50", "loss": "1%"});
        let content = compare(&RaceForm::from_json(&options.to_string()).unwrap()).unwrap();
        let title =
            "cubic at 10mbit, 40ms round trip, fq_codel, 1mbit back, pfifo limit 50, loss 1%";
        assert_eq!(content["title"], title);
    }

    #[test]
    fn a_path_by_name_needs_no_more() {
        let race_form = RaceForm::from_json(
            r#"{"algorithms": ["cubic"], "path": "home DSL", "queue": "fq_codel", "duration": "1s"}"#,
        );
        let content = compare(&race_form.unwrap()).unwrap();
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
        ] {
            let form = RaceForm::from_json(&options.to_string()).unwrap();
            assert_eq!(compare(&form).unwrap_err().field, field);
        }
        for (carrier, queue) in [("rate", "1bdp"), ("medium", "pfifo")] {
            let of = if carrier == "rate" { "1mbit" } else { "adsl2" };
            let options =
                json!({"algorithms": ["cubic"], carrier: of, "rtt": "1ms", "duration": "1s"});
            let content = compare(&RaceForm::from_json(&options.to_string()).unwrap()).unwrap();
            assert_eq!(content["path"]["queue"], queue);
            let title = content["title"].as_str().unwrap();
            assert!(title.ends_with(&format!("{queue} (the default queue)")), "{title}");
            let experiment = Experiment::from_json(&content.to_string()).unwrap();
            assert_eq!(build(&experiment, "x", 1).unwrap().validate(), Ok(()));
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
    fn an_explicit_start_is_not_staggered_but_its_further_flows_are() {
        let content =
            form(&json!({"algorithms": ["cubic*2+3s", "bbr"], "together": true, "stagger": "5s"}));
        let variant = crate::Variants::new(content.clone()).unwrap().get(0).unwrap();
        let experiment = crate::Experiment::from_json(&variant.content.to_string()).unwrap();
        let scenario = crate::build_run(&experiment, &variant.settings, 0, 1).unwrap();
        let starts: Vec<_> =
            scenario.flows.iter().map(|flow| flow.start_ns / 1_000_000_000).collect();
        assert_eq!(starts, [3, 8, 10]);
    }

    #[test]
    fn a_workload_has_its_flows_for_each_algorithm() {
        let content = form(&json!({"workload": "rrul", "flows": 2}));
        let counts: Vec<_> =
            content["flows"].as_array().unwrap().iter().map(|flow| &flow["count"]).collect();
        assert_eq!(counts, [2; 8]);
        let experiment = Experiment::from_json(&content.to_string()).unwrap();
        let scenario = build(&experiment, "x", 1).unwrap();
        assert_eq!(scenario.validate(), Ok(()));
        let up = scenario
            .flows
            .iter()
            .filter(|flow| flow.sender == "d" && flow.receiver.starts_with('s'));
        assert_eq!((scenario.flows.len(), up.count()), (16, 8));
        // flent's rrul.conf: CS0, CS1, CS5 and EF, each way.
        let marks: Vec<u8> = scenario.flows.iter().map(|flow| flow.dscp).collect();
        let of_one_way = [0, 0, 8, 8, 40, 40, 46, 46];
        assert_eq!(marks, [of_one_way, of_one_way].concat());
        assert_eq!(scenario.nodes.len(), 11, "eight senders, r, w, d");
    }

    #[test]
    fn no_algorithm_is_refused() {
        let none = json!({"algorithms": [], "rate": "1mbit", "rtt": "1ms", "queue": "sfq", "duration": "1s"});
        let problem = compare(&RaceForm::from_json(&none.to_string()).unwrap()).unwrap_err();
        assert_eq!(problem.field, "ALGORITHM");
    }
}
