//! A run that a page advances and draws.

use crate::bounds::{self, STALLED_EVENTS, STALLED_NS};
use crate::curves::{self, Request, Span};
use crate::moment;
use crate::refused::{self, Refused};
use crate::watch::Fates;
use dragstrip_display as display;
use dragstrip_measures::{Finding, Measured, MissingColumn, Summary, explain, summarise};
use dragstrip_scenario::Scenario;
use dragstrip_sim as sim;
use serde_json::{Value, json};
use wasm_bindgen::prelude::wasm_bindgen;

/// Events between two checks of progress.
const STEP_EVENTS: u32 = 4_096;
/// Pixels of a picture: beyond any screen.
const PIXELS_MAX: u32 = 1 << 16;

/// The figures of a run and its explanation.
#[derive(serde::Serialize)]
struct Results<'a> {
    measures: &'a Summary,
    sentence: String,
    marks: Vec<(f64, String)>,
}

/// A run of the simulator.
#[wasm_bindgen]
#[derive(Debug)]
pub struct Run {
    run: sim::Run<Fates>,
    /// Recorded as the scenario says, and so with a hash.
    as_written: bool,
    /// The instant of the last progress by [`STALLED_NS`], and the events since then.
    since_ns: u64,
    events: u64,
}

#[wasm_bindgen]
impl Run {
    /// Creates a run of a scenario given as JSON. It is recorded every `interval_ns` for a picture, which changes nothing of what
    /// happens; 0: as the scenario says, and then it has a hash.
    ///
    /// # Errors
    /// An invalid scenario, or one beyond the bounds.
    #[wasm_bindgen(constructor)]
    pub fn new(scenario: &str, interval_ns: f64) -> Result<Run, Refused> {
        let mut scenario = bounds::read(scenario)?;
        let as_written = interval_ns.is_nan() || interval_ns < 1.0;
        if !as_written {
            scenario.record.interval_ns = interval_ns as u64;
        }
        bounds::cost_of(&scenario)?;
        let mut run = sim::Run::new(scenario, Fates::default()).map_err(refused::setup)?;
        run.keep_tables_plain();
        Ok(Self { run, as_written, since_ns: 0, events: 0 })
    }

    /// Advances to `until_ns`, by about `events_max` events at most. Returns JSON: `now_ns`, `events`, `done`,
    /// `stalled`, true when it makes no progress and will not advance, and `fault`, the error that ended it (in a
    /// program's arithmetic), as `{field, value, expected}`.
    pub fn advance(&mut self, until_ns: f64, events_max: f64) -> String {
        let (until_ns, most) = (until_ns as u64, events_max as u64);
        let mut done = 0;
        let mut fault = self.run.fault();
        while done < most && !self.run.is_done() && !self.stalled() && fault.is_none() {
            let step = STEP_EVENTS.min(u32::try_from(most - done).unwrap_or(STEP_EVENTS));
            let events = u64::from(self.run.advance(until_ns, step));
            done += events;
            self.count(events);
            fault = self.run.fault();
            if events < u64::from(step) {
                break;
            }
        }
        json!({
            "now_ns": self.run.now_ns(),
            "events": done,
            "done": self.run.is_done(),
            "stalled": self.stalled(),
            "fault": fault.map(refused::fault),
        })
        .to_string()
    }

    fn count(&mut self, events: u64) {
        if self.run.now_ns() >= self.since_ns + STALLED_NS {
            (self.since_ns, self.events) = (self.run.now_ns(), 0);
        } else {
            self.events += events;
        }
    }

    fn stalled(&self) -> bool {
        self.events > STALLED_EVENTS
    }

    /// The simulated time until now, ns.
    #[must_use]
    #[wasm_bindgen(getter)]
    pub fn now_ns(&self) -> f64 {
        self.run.now_ns() as f64
    }

    /// The duration of the whole run, ns.
    #[must_use]
    #[wasm_bindgen(getter)]
    pub fn duration_ns(&self) -> f64 {
        self.run.end_ns() as f64
    }

    /// True when the run is at its end.
    #[must_use]
    #[wasm_bindgen(getter)]
    pub fn done(&self) -> bool {
        self.run.is_done()
    }

    /// The flows as the scenario has them, as JSON.
    #[must_use]
    pub fn flows(&self) -> String {
        let flows = self.run.scenario().flows.iter().enumerate();
        let row = |(number, flow): (usize, &dragstrip_scenario::FlowSpec)| {
            let cc = flow.transport.name();
            json!({
                "flow": number,
                "label": flow.label,
                "cc": cc,
                "sender": flow.sender,
                "receiver": flow.receiver,
                "start_ns": flow.start_ns,
                "stop_ns": flow.stop_ns,
            })
        };
        flows.map(row).collect::<Value>().to_string()
    }

    /// The links whose queues are recorded, as JSON.
    #[must_use]
    pub fn links(&self) -> String {
        let scenario = self.run.scenario();
        let names = self.run.tables().queues.link.names();
        let row = |name: &String| {
            let plain = name.strip_suffix(":netem").unwrap_or(name);
            let link = scenario.links.iter().find(|link| link.name == plain);
            let facts = link.map(|link| scenario.link_facts(link));
            json!({
                "link": name,
                "from": link.map(|link| &link.from),
                "to": link.map(|link| &link.to),
                "rate_bps": facts.as_ref().and_then(|facts| facts.fastest_bps),
                "delay_ns": facts.as_ref().map(|facts| facts.delay_ns),
                "buffer": facts.as_ref().map(|facts| facts.buffer),
            })
        };
        names.iter().map(row).collect::<Value>().to_string()
    }

    /// The series of a flow, link or probe between two instants in so many pixels: first, least, greatest and last
    /// value of each, NaN where there is no value. Rates are taken over `window_ns`.
    ///
    /// # Errors
    /// A series that does not exist.
    pub fn lines(
        &self,
        series: &str,
        subject: u32,
        from_ns: f64,
        to_ns: f64,
        pixels: u32,
        window_ns: f64,
    ) -> Result<Vec<f64>, Refused> {
        let flows = &self.run.scenario().flows;
        let start_ns = flows.get(subject as usize).map_or(0, |flow| flow.start_ns as i64);
        let of_flow = matches!(series, "goodput" | "throughput");
        let request = Request {
            series,
            subject,
            window_ns: window_ns as i64,
            start_ns: if of_flow { start_ns } else { 0 },
        };
        let span = Span { from_ns: from_ns as i64, to_ns: to_ns as i64 };
        let count = pixels.min(PIXELS_MAX) as usize;
        curves::pixels(self.run.tables(), request, span, count).ok_or_else(|| unknown(series))
    }

    /// The states of a flow between two instants, as triples of start, end and word. `series` is `limit` or `state`.
    ///
    /// # Errors
    /// A series that does not exist.
    pub fn strip(
        &self,
        series: &str,
        flow: u32,
        from_ns: f64,
        to_ns: f64,
    ) -> Result<Vec<f64>, Refused> {
        let span = Span { from_ns: from_ns as i64, to_ns: to_ns as i64 };
        curves::strip(&self.run.tables().samples, series, flow, span).ok_or_else(|| unknown(series))
    }

    /// The words of such a series by their numbers, as JSON.
    ///
    /// # Errors
    /// A series that does not exist.
    pub fn words(&self, series: &str) -> Result<String, Refused> {
        let column = curves::texts(&self.run.tables().samples, series);
        Ok(json!(column.ok_or_else(|| unknown(series))?.names()).to_string())
    }

    /// The state of flows and queues at an instant, as JSON.
    #[must_use]
    pub fn at(&self, at_ns: f64) -> String {
        moment::at(self.run.tables(), self.run.scenario(), at_ns as i64).to_string()
    }

    /// The events between two instants, as JSON; at most `most`.
    #[must_use]
    pub fn events(&self, from_ns: f64, to_ns: f64, most: u32) -> String {
        let span = Span { from_ns: from_ns as i64, to_ns: to_ns as i64 };
        let fates = self.run.observer();
        let (tables, scenario) = (self.run.tables(), self.run.scenario());
        moment::events(tables, fates, scenario, span, most as usize).to_string()
    }

    /// The figures of the run until now, as JSON: `measures`, which is `summary` of a run in the result document
    /// (docs/reference/result-json.md), the `sentence` of its strongest cause, empty where none is known, and `marks`: the
    /// instants that causes name, each a pair of seconds and text.
    ///
    /// # Errors
    /// None that a run of the simulator has.
    pub fn measures(&self) -> Result<String, Refused> {
        let measured = self.measured()?;
        let summary = summarise(&measured).map_err(missing)?;
        let why = explain(&measured).map_err(missing)?;
        let sentence = why.first().map_or_else(String::new, |it| it.sentence.clone());
        let marks = why.iter().filter_map(mark).collect();
        serde_json::to_string(&Results { measures: &summary, sentence, marks })
            .map_err(|error| refused::wrong("", "", &error.to_string()))
    }

    fn measured(&self) -> Result<Measured, Refused> {
        let so_far = self.run.now_ns().max(1);
        let scenario = Scenario { duration_ns: so_far, ..self.run.scenario().clone() };
        Measured::new(scenario, self.run.recording()).map_err(missing)
    }

    /// The hash of the recording, which the same scenario has everywhere: `recording_sha256` of a provenance.
    ///
    /// # Errors
    /// The run is not at its end, or is recorded for a picture.
    pub fn sha256(&self) -> Result<String, Refused> {
        self.at_end()?;
        Ok(self.run.recording().sha256())
    }

    fn at_end(&self) -> Result<(), Refused> {
        if self.as_written && self.run.is_done() && self.run.fault().is_none() {
            return Ok(());
        }
        Err(refused::wrong("", "", "a run at its end, recorded as its scenario says"))
    }
}

fn mark(finding: &Finding) -> Option<(f64, String)> {
    let flows: Vec<&str> = finding.flows.iter().map(String::as_str).collect();
    let mark = display::mark(&flows, |name| finding.figures.get(name).copied())?;
    Some((mark.at_s, mark.text))
}

fn unknown(series: &str) -> Refused {
    refused::wrong("series", &format!("{series:?}"), "a series of this page's core")
}

fn missing(error: MissingColumn) -> Refused {
    refused::wrong("", "", &error.to_string())
}

#[cfg(test)]
mod tests {
    use super::Run;
    use crate::form::runs_of;
    use dragstrip_testkit::{Budget, runner, scenarios};
    use proptest::strategy::{Strategy, ValueTree};
    use proptest::test_runner::Config;
    use serde_json::Value;

    /// A picture before the end is of any instant, also of one before a change of the path.
    #[test]
    fn a_run_with_changes_has_figures_at_every_instant() {
        let form = r#"{"algorithms": ["cubic", "bbr"], "path": "Starlink", "duration": "6s",
            "change": ["1500ms rate=120mbit", "3s rate=200mbit", "4500ms rate=150mbit"]}"#;
        let runs: Value = serde_json::from_str(&runs_of(form).unwrap()).unwrap();
        for run in runs["runs"].as_array().unwrap() {
            let mut run = Run::new(run["scenario"].as_str().unwrap(), 5e6).unwrap();
            for step in 1..=60 {
                run.advance(f64::from(step) * 1e8, 1e9);
                let results: Value = serde_json::from_str(&run.measures().unwrap()).unwrap();
                assert!(
                    results["measures"]["flows"][0]["goodput_bps"].is_number(),
                    "{step}: {results}"
                );
            }
            assert!(run.done());
        }
    }

    #[test]
    fn random_runs_have_figures_and_curves_at_every_instant() {
        let mut runner = runner(Config::default(), 11);
        let strategy = scenarios(Budget { duration_ns: 3_000_000_000, flows: 4 });
        let mut pictures = 0;
        for number in 0..150 {
            let scenario = strategy.new_tree(&mut runner).unwrap().current();
            let Ok(mut run) = Run::new(&serde_json::to_string(&scenario).unwrap(), 5e6) else {
                continue;
            };
            let end_ns = run.duration_ns();
            for part in 0..=7 {
                let at_ns = f64::from(part) * end_ns / 7.0;
                run.advance(at_ns, 1e9);
                let figures = run.measures();
                assert!(figures.is_ok(), "scenario {number} at {at_ns} ns: {figures:?}");
                for series in ["cwnd", "ssthresh", "rtt", "goodput"] {
                    run.lines(series, 0, 0.0, end_ns, 100, 5e7).unwrap();
                }
                pictures += 1;
            }
        }
        assert!(pictures > 800, "{pictures}");
    }
}
