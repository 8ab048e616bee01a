//! Maps a field of the scenario to the field of the experiment that it comes from: a problem with
//! `links[4].qdisc.limit` is reported as `path.queue.limit`, the field that the user wrote.

use crate::arrivals::arrivals;
use crate::flows::flows_of;
use crate::media::RENAMED;
use crate::types::{ChangeForm, Experiment};
use crate::words::spelt_out;
use dragstrip_scenario::{Problem, Scenario};
use dragstrip_units::{ByteCount, Duration, Rate, tc};

/// A problem of an experiment's scenario, in the fields and quantities of the experiment.
pub(crate) fn in_experiment_terms(
    problem: Problem,
    scenario: &Scenario,
    experiment: &Experiment,
) -> Problem {
    let Problem { field, value, expected } = problem;
    let value = match field.split_once(".cc_options.") {
        Some((_, name)) => format!("{name}={value}"),
        None => quantity(&field, &value).unwrap_or(value),
    };
    let expected = first_quantities(&field, expected);
    Problem { field: experiment_field(&field, scenario, experiment), value, expected }
}

fn experiment_field(field: &str, scenario: &Scenario, experiment: &Experiment) -> String {
    let Some((head, index, rest)) = entry(field) else {
        if let Some(medium) = field.strip_prefix("media.") {
            let (stem, last) = medium.rsplit_once('.').unwrap_or((medium, ""));
            let renamed = RENAMED.iter().find(|(_, core)| *core == last);
            let last = renamed.map_or(last, |(field, _)| field);
            return if last.is_empty() { field.to_owned() } else { format!("media.{stem}.{last}") };
        }
        return unsuffixed(field);
    };
    let of_entry = |list: &str, at: usize, rest: &str| match rest {
        "" => format!("{list}[{at}]"),
        rest => format!("{list}[{at}].{rest}"),
    };
    match head {
        "links" => {
            let name = scenario.links.get(index).map_or("", |link| link.name.as_str());
            if experiment.path.is_some() {
                return of_path(name, rest);
            }
            let directions = |at: usize| 1 + usize::from(experiment.links[at].both_ways);
            of_entry("links", position(experiment.links.len(), directions, index), &of_link(rest))
        }
        "nodes" => match scenario.nodes.get(index) {
            Some(node) if rest != "name" => format!("hosts.{}.{}", node.name(), of_host(rest)),
            _ => of_entry("nodes", index, rest),
        },
        "changes" => {
            let parts = |at: usize| parts_of(&experiment.changes[at]);
            let word = match rest {
                "limit_bytes" | "limit_packets" => "limit".to_owned(),
                "up" => "state".to_owned(),
                rest => unsuffixed(rest),
            };
            of_entry("changes", position(experiment.changes.len(), parts, index), &word)
        }
        "flows" => {
            let flow_forms = spelt_out(&experiment.flows).unwrap_or_default();
            let arrived = arrivals(experiment, &flow_forms, scenario.seed).unwrap_or_default();
            let count = |at: usize| {
                let arrived = arrived.get(at).and_then(Option::as_deref);
                usize::try_from(flows_of(&flow_forms[at], arrived)).unwrap_or(usize::MAX)
            };
            let rest = rest.strip_prefix("transport.").unwrap_or(rest);
            let rest = rest
                .strip_prefix("socket.")
                .map_or_else(|| unsuffixed(rest), |rest| rest.replace("_bytes", "_buffer"));
            let rest = match rest.as_str() {
                "application.bytes" => "bytes",
                other => other,
            };
            of_entry("flows", position(flow_forms.len(), count, index), rest)
        }
        _ => of_entry(head, index, &unsuffixed(rest)),
    }
}

/// `flows[3].transport.cc` in its list, its index and the rest.
fn entry(field: &str) -> Option<(&str, usize, &str)> {
    let (head, rest) = field.split_once('[')?;
    let (index, rest) = rest.split_once(']')?;
    let is_list = matches!(head, "links" | "nodes" | "flows" | "probes" | "changes" | "routes");
    is_list.then_some((head, index.parse().ok()?, rest.strip_prefix('.').unwrap_or(rest)))
}

/// The entry among `entries` that contains element `index` of their concatenated parts.
fn position(entries: usize, parts: impl Fn(usize) -> usize, index: usize) -> usize {
    let mut before = 0_usize;
    for at in 0..entries {
        before = before.saturating_add(parts(at));
        if index < before {
            return at;
        }
    }
    entries.saturating_sub(1)
}

/// Number of changes of the scenario that an entry makes: an entry that sets the round trip and other values makes
/// two.
fn parts_of(change: &ChangeForm) -> usize {
    let ChangeForm { at: _, link: _, rate, delay, rtt, loss, limit, state, file: _ } = change;
    let sets_more =
        rate.is_some() || delay.is_some() || loss.is_some() || limit.is_some() || state.is_some();
    1 + usize::from(rtt.is_some() && sets_more)
}

fn of_link(rest: &str) -> String {
    let (first, inner) = rest.split_once('.').unwrap_or((rest, ""));
    match first {
        "qdisc" if matches!(inner, "rate_bps" | "ceil_bps") => "rate".to_owned(),
        // Their words are one field.
        "qdisc" => "queue".to_owned(),
        "netem" => "netem".to_owned(),
        other => unsuffixed(other),
    }
}

fn of_path(link: &str, rest: &str) -> String {
    let words = of_link(rest);
    match link {
        "r-d" | "r-w" => format!("path.{words}"),
        "d-r" | "w-r" => format!("path.up_{words}"),
        link => format!("path.senders.{words} (link {link})"),
    }
}

fn of_host(rest: &str) -> String {
    let renamed = rest.replace("_packets", "").replace("rtt_deviation", "deviation");
    // A sysctl with dots is quoted, as in a dotted path.
    let renamed = renamed.replace("[\"", ".\"").replace("\"]", "\"");
    unsuffixed(&renamed)
}

/// The text of a quantity by the ending of its field in the scenario.
fn quantity(field: &str, value: &str) -> Option<String> {
    // Some checks write a remark after the number.
    let number = value.split_once(" (").map_or(value, |(number, _)| number);
    let number: u64 = number.parse().ok()?;
    let text = if field.ends_with("_ns") {
        tc::format_time(Duration::from_nanos(number))
    } else if field.ends_with("_bps") {
        Rate::from_bits_per_second(number).map_or_else(|| "0bit".to_owned(), tc::format_rate)
    } else if field.ends_with("_bytes") {
        tc::format_size(ByteCount::new(number))
    } else {
        return None;
    };
    Some(format!("{text:?}"))
}

/// Only a scenario's fields carry units in their names.
fn unsuffixed(field: &str) -> String {
    let ending = ["_ns", "_bps", "_bytes"].into_iter().find(|ending| field.ends_with(ending));
    ending.and_then(|ending| field.strip_suffix(ending)).unwrap_or(field).to_owned()
}

/// `at least 1` of a field in base units with its unit: `at least 1ns`.
fn first_quantities(field: &str, expected: String) -> String {
    let Some((lead, rest)) = ["at least ", "at most "]
        .into_iter()
        .find_map(|lead| Some((lead, expected.strip_prefix(lead)?)))
    else {
        return expected;
    };
    let digits =
        rest.len() - rest.trim_start_matches(|character: char| character.is_ascii_digit()).len();
    match quantity(field, &rest[..digits]) {
        Some(text) => {
            let text = text.trim_matches('"');
            let behind = rest[digits..].replacen(&format!("({text}, "), "(", 1);
            format!("{lead}{text}{behind}")
        }
        None => expected,
    }
}
