//! Changes during a run, as the user writes them: `[[changes]]`, and `--change "20s rate=2mbit"`.

use crate::problem;
use crate::quantity::LimitText;
use crate::types::{ChangeForm, PathForm, StateForm};
use crate::words::time_text;
use dragstrip_scenario::{ChangeSpec, LinkSpec, Problem};
use dragstrip_units::tc;
use serde_json::{Map, Value, json};

/// The words of `--change`.
const WORDS: [&str; 7] = ["rate", "delay", "rtt", "loss", "limit", "state", "link"];
const EXPECTED: &str = "TIME SETTING=VALUE ..., such as \"20s rate=2mbit delay=80ms\"; settings are rate, delay, rtt, loss, limit, state and link";

/// The entry of `[[changes]]` for this text; its values are parsed with the experiment.
///
/// # Errors
/// A text other than a time followed by settings, each of them once.
pub(crate) fn entry(text: &str) -> Result<Value, Problem> {
    let wrong = || problem("changes", &format!("{text:?}"), EXPECTED);
    let mut words = text.split_whitespace();
    let at = words.next().filter(|at| !at.contains('=')).ok_or_else(wrong)?;
    let mut fields = Map::new();
    fields.insert("at".to_owned(), json!(at));
    for word in words {
        let (key, value) = word.split_once('=').ok_or_else(wrong)?;
        let is_valid = WORDS.contains(&key) && !value.is_empty();
        if !is_valid || fields.insert(key.to_owned(), json!(value)).is_some() {
            return Err(wrong());
        }
    }
    if fields.keys().all(|key| key == "at" || key == "link") {
        return Err(wrong());
    }
    Ok(Value::Object(fields))
}

/// The instant of one change, whose values are read: a row of a file is checked before it becomes an entry.
///
/// # Errors
/// The first field that is wrong.
pub fn change_at(content: &Value) -> Result<u64, Problem> {
    let change: ChangeForm = crate::tables::read(content)?;
    Ok(change.at.unwrap_or_default().0)
}

/// Converts these entries to changes of links; on a dumbbell `path`, an entry without a link applies to the
/// bottleneck.
pub(crate) fn changes(
    forms: &[ChangeForm],
    path: Option<&PathForm>,
    links: &[LinkSpec],
) -> Result<Vec<ChangeSpec>, Problem> {
    let mut specs = Vec::new();
    for (index, form) in forms.iter().enumerate() {
        let ChangeForm { at, link, rate, delay, rtt, loss, limit, state, file: _ } = form;
        let at_ns = at.unwrap_or_default().0;
        let field = |name: &str| format!("changes[{index}].{name}");
        let bottleneck = || links.iter().find(|link| link.from == "r" && path.is_some());
        let name = match (link, bottleneck()) {
            (Some(name), _) => name.clone(),
            (None, Some(_)) => bottleneck_of(links).to_owned(),
            (None, None) => {
                let expected = "is missing: the name of a link; only [path] has a bottleneck";
                return Err(problem(&field("link"), "", expected));
            }
        };
        let link_spec = links.iter().find(|link| link.name == name);
        let mut spec = ChangeSpec {
            at_ns,
            link: name.clone(),
            rate_bps: rate.map(|rate| rate.0),
            delay_ns: delay.map(|delay| delay.0),
            loss: loss.map(|loss| loss.0),
            up: state.map(|state| state == StateForm::Up),
            ..ChangeSpec::default()
        };
        if let Some(LimitText(text)) = limit {
            if link_spec.is_some_and(LinkSpec::counts_packets) {
                let packets = text.parse::<u32>().map_err(|_| {
                    let expected = "a whole number of packets, such as 100";
                    problem(&field("limit"), &format!("{text:?}"), expected)
                })?;
                spec.limit_packets = Some(packets);
            } else {
                let bytes = tc::parse_size(text).map_err(|error| {
                    problem(&field("limit"), &format!("{text:?}"), &error.expected)
                })?;
                spec.limit_bytes = Some(bytes.get());
            }
        }
        let back =
            rtt.map(|rtt| return_path(rtt.0, form, path, links, &field("rtt"))).transpose()?;
        if back.is_none() || !spec.is_empty() {
            specs.push(spec);
        }
        specs.extend(back);
    }
    Ok(specs)
}

/// The name of a dumbbell's bottleneck: from the router to the receiver, or to the second router.
fn bottleneck_of(links: &[LinkSpec]) -> &str {
    let far = |link: &&LinkSpec| link.from == "r" && (link.to == "d" || link.to == "w");
    links.iter().find(far).map_or("r-d", |link| &link.name)
}

/// The whole path's new round trip, made as [`PathForm::rtt`] is: on the return path, which all flows share.
fn return_path(
    rtt_ns: u64,
    form: &ChangeForm,
    path: Option<&PathForm>,
    links: &[LinkSpec],
    field: &str,
) -> Result<ChangeSpec, Problem> {
    let wrong = |expected: &str| Err(problem(field, &time_text(rtt_ns), expected));
    let (Some(path), None) = (path, &form.link) else {
        return wrong("delay: a link has no round trip");
    };
    let whole = path.delay.0.saturating_add(path.rtt.unwrap_or(path.up_delay).0);
    let Some(back) =
        links.iter().find(|link| link.to == "r" && (link.from == "d" || link.from == "w"))
    else {
        return wrong("delay: there is no return path");
    };
    let least = whole.saturating_sub(back.delay_ns);
    match rtt_ns.checked_sub(least) {
        Some(delay) => Ok(ChangeSpec {
            at_ns: form.at.unwrap_or_default().0,
            link: back.name.clone(),
            delay_ns: Some(delay),
            ..ChangeSpec::default()
        }),
        None => wrong(&format!("at least {}: the rest of the path has it", time_text(least))),
    }
}

#[cfg(test)]
mod tests {
    use super::entry;
    use crate::{Experiment, RaceForm, build, compare};
    use dragstrip_scenario::{ChangeSpec, Problem, Scenario};
    use serde_json::json;

    fn scenario(changes: &[&str], queue: &str) -> Result<Scenario, Problem> {
        let form = json!({
            "algorithms": ["cubic"], "rate": "10mbit", "rtt": "40ms", "queue": queue, "duration": "30s",
            "change": changes,
        });
        let content = compare(&RaceForm::from_json(&form.to_string())?)?;
        build(&Experiment::from_json(&content.to_string())?, "x", 1)
    }

    #[test]
    fn one_text_changes_several_settings() {
        let scenario = scenario(
            &["20s rate=2mbit delay=80ms rtt=60ms", "25s state=down", "26s limit=50 loss=1%"],
            "pfifo limit 100",
        )
        .unwrap();
        let at = |s: u64, link: &str| ChangeSpec {
            at_ns: s * 1_000_000_000,
            link: link.to_owned(),
            ..ChangeSpec::default()
        };
        let expected = [
            ChangeSpec { rate_bps: Some(2_000_000), delay_ns: Some(80_000_000), ..at(20, "r-d") },
            ChangeSpec { delay_ns: Some(60_000_000), ..at(20, "d-r") },
            ChangeSpec { up: Some(false), ..at(25, "r-d") },
            ChangeSpec { limit_packets: Some(50), loss: Some(0.01), ..at(26, "r-d") },
        ];
        assert_eq!(scenario.changes, expected);
        assert_eq!(scenario.validate(), Ok(()));
    }

    #[test]
    fn a_limit_is_counted_as_the_queue_counts() {
        let bytes = scenario(&["1s limit=50kb"], "bfifo limit 100kb").unwrap();
        assert_eq!(bytes.changes[0].limit_bytes, Some(51_200));
        let error = scenario(&["1s limit=50kb"], "pfifo limit 100").unwrap_err();
        assert_eq!((error.field.as_str(), error.value.as_str()), ("changes[0].limit", "\"50kb\""));
    }

    #[test]
    fn empty_changes_are_refused() {
        for text in
            ["", "20s", "rate=2mbit", "20s rate", "20s rate=", "20s rat=1mbit", "20s link=r-d"]
        {
            assert_eq!(entry(text).unwrap_err().field, "changes", "{text}");
        }
        assert!(entry("20s rate=1mbit rate=2mbit").is_err());
    }
}
