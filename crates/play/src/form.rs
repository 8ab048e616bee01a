//! From a form to scenarios, and to the words of a command line.

use crate::bounds::{self, RUNS_MAX, VARIANTS_MAX};
use crate::refused::{self, Refused};
use dragstrip_experiment::{self as experiment, Everything, RaceForm, Variants};
use dragstrip_scenario::{Problem, Scenario};
use dragstrip_units::{ByteCount, Duration, Rate, tc};
use serde_json::{Value, json};
use wasm_bindgen::prelude::wasm_bindgen;

/// The runs that `dragstrip compare` makes of a form, the JSON of its options: `{title, command, experiment, runs: [{name, scenario,
/// cost}]}`, with each scenario as text.
///
/// # Errors
/// An invalid form, or one beyond the bounds.
#[wasm_bindgen]
pub fn runs_of(form: &str) -> Result<String, Refused> {
    bounds::text(form, "form")?;
    let form = read(form)?;
    let content = experiment::compare(&form).map_err(of_form)?;
    let algorithms = experiment::algorithms();
    let content = experiment::checked(content, &algorithms).map_err(of_form)?;
    let variants = Variants::new(content.clone()).map_err(of_form)?;
    let repeats = content["repeat"].as_u64().unwrap_or(1);
    let count = u64::from(variants.count()).saturating_mul(repeats);
    if count > RUNS_MAX as u64 {
        let expected = format!("at most {RUNS_MAX} runs; more on the command line");
        return Err(refused::wrong("repeat", &format!("{count} runs"), &expected));
    }
    let mut runs = Vec::new();
    for scenario in scenarios(&variants, repeats, repeats).map_err(of_form)? {
        let text = serde_json::to_string(&scenario).unwrap_or_default();
        let cost = bounds::cost_of(&bounds::read(&text)?)?;
        runs.push(json!({"name": scenario.name, "scenario": text, "cost": cost}));
    }
    let title = &content["title"];
    let command = experiment::command_line(&form);
    Ok(json!({"title": title, "command": command, "experiment": content, "runs": runs}).to_string())
}

/// The runs of an experiment as people write it, given as JSON: `{names, scenario}`, the names of all that varies, of the
/// first repeat, and the scenario of number `pick` as text.
///
/// # Errors
/// An invalid experiment, or more runs than a page has room for.
#[wasm_bindgen]
pub fn runs_of_experiment(content: &str, pick: u32) -> Result<String, Refused> {
    bounds::text(content, "experiment")?;
    let content = serde_json::from_str(content)
        .map_err(|error| refused::wrong("experiment", "", &format!("JSON: {error}")))?;
    let algorithms = experiment::algorithms();
    let content = experiment::checked(content, &algorithms).map_err(refused::problem)?;
    let repeats = content["repeat"].as_u64().unwrap_or(1);
    let variants = Variants::new(content.clone()).map_err(refused::problem)?;
    if variants.count() as usize > VARIANTS_MAX {
        let expected = format!("at most {VARIANTS_MAX} runs; more on the command line");
        return Err(refused::wrong("vary", &format!("{} runs", variants.count()), &expected));
    }
    let runs = scenarios(&variants, 1, repeats).map_err(refused::problem)?;
    let names: Vec<&str> = runs.iter().map(|run| run.name.as_str()).collect();
    let picked = runs.get(pick.min(variants.count() - 1) as usize);
    let picked = picked.map(|run| serde_json::to_string(run).unwrap_or_default());
    Ok(json!({"names": names, "scenario": picked}).to_string())
}

/// The scenarios of the first `count` of `repeats` repeats, all variants in turn, each validated.
fn scenarios(variants: &Variants, count: u64, repeats: u64) -> Result<Vec<Scenario>, Problem> {
    let algorithms = experiment::algorithms();
    let runs = experiment::expand(variants, 0..count, repeats, &algorithms, &mut Everything)?;
    Ok(runs.into_iter().map(|run| run.scenario).collect())
}

fn read(form: &str) -> Result<RaceForm, Refused> {
    let form = RaceForm::from_json(form).map_err(refused::problem)?;
    for field in ["trace", "up_trace"] {
        if let Some(file) = form.value(field) {
            let expected = "none here: it is a file, which a page cannot read";
            return Err(refused::wrong(field, &file.to_string(), expected));
        }
    }
    Ok(form)
}

/// A problem of the experiment, named after the form's field.
fn of_form(problem: Problem) -> Refused {
    // The editor marks a program's line and column, which the field holds.
    let option =
        experiment::option_of(&problem.field).filter(|it| it.takes != experiment::Takes::Files);
    let field = option.map_or(problem.field, |option| option.name.to_owned());
    refused::problem(Problem { field, ..problem })
}

/// The parts of an algorithm's word as JSON: `{name, count, rtt, start}`; the name keeps its options. Empty times are
/// not given.
///
/// # Errors
/// A text that is no such word.
#[wasm_bindgen]
pub fn flow_word(word: &str) -> Result<String, Refused> {
    let parsed = experiment::FlowWord::parse(word, "algorithms").map_err(refused::problem)?;
    let time = |text: Option<u64>| {
        text.map_or_else(String::new, |ns| tc::format_time(Duration::from_nanos(ns)))
    };
    let count = parsed.count.unwrap_or(1);
    let (rtt, start) = (time(parsed.rtt_ns()), time(parsed.start_ns()));
    Ok(json!({"name": parsed.head, "count": count, "rtt": rtt, "start": start}).to_string())
}

/// The command line that a form, the JSON of its options, stands for.
///
/// # Errors
/// A form that cannot be read.
#[wasm_bindgen]
pub fn command_line(form: &str) -> Result<String, Refused> {
    bounds::text(form, "form")?;
    Ok(experiment::command_line(&read(form)?))
}

/// A quantity in tc's words in base units (bit/s, B, ns, a share of 1); `kind` is `rate`, `size`, `time` or `percent`.
///
/// # Errors
/// A text that is no such quantity.
#[wasm_bindgen]
pub fn parse(kind: &str, text: &str) -> Result<f64, Refused> {
    let parsed = match kind {
        "rate" => tc::parse_rate(text).map(|rate| rate.bits_per_second() as f64),
        "size" => tc::parse_size(text).map(|size| size.get() as f64),
        "time" => tc::parse_time(text).map(|time| time.as_nanos() as f64),
        "percent" => tc::parse_percent(text),
        _ => return Err(refused::wrong("kind", kind, "rate, size, time or percent")),
    };
    parsed.map_err(|error| refused::wrong("", &error.value, &error.expected))
}

/// A quantity in tc's words, which [`parse`] reads again; empty where there is none.
#[must_use]
#[wasm_bindgen]
pub fn written(kind: &str, value: f64) -> String {
    if !(value.is_finite() && value >= 0.0) {
        return String::new();
    }
    match kind {
        "rate" => {
            Rate::from_bits_per_second(value as u64).map_or_else(String::new, tc::format_rate)
        }
        "size" => tc::format_size(ByteCount::new(value as u64)),
        "time" => tc::format_time(Duration::from_nanos(value as u64)),
        "percent" => tc::format_percent(value),
        _ => String::new(),
    }
}

/// The interval, ns, at which a run of this length is recorded for a picture: 4,000 times, but not more often than every millisecond.
#[must_use]
#[wasm_bindgen]
pub fn picture_interval(duration_ns: f64) -> f64 {
    const ROWS: u64 = 4_000;
    const LEAST_NS: u64 = 1_000_000;
    (duration_ns as u64 / ROWS).max(LEAST_NS) as f64
}

/// All algorithms with their parameters, queue disciplines, and paths, media and workloads by name, as JSON.
#[must_use]
#[wasm_bindgen]
pub fn names() -> String {
    let about = dragstrip_cc::about().iter().map(|about| {
        let parameter = |it: &dragstrip_cc::Parameter| {
            json!({
                "name": it.name,
                "default": it.default,
                "range": it.range.to_string(),
                "unit": it.unit,
                "meaning": it.meaning,
            })
        };
        let parameters: Value = about.parameters.iter().map(parameter).collect();
        json!({"name": about.name, "models": about.models, "parameters": parameters})
    });
    let queues = dragstrip_qdisc::KINDS
        .iter()
        .map(|kind| json!({"name": kind.name, "words": (kind.words)(), "example": kind.least}));
    json!({
        "algorithms": about.collect::<Value>(),
        "queues": queues.collect::<Value>(),
        "paths": experiment::PATHS,
        "media": experiment::MEDIA,
        "workloads": experiment::WORKLOADS,
    })
    .to_string()
}
