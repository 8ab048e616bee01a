//! The packets of a stretch of a run: a second run that traces each packet.

use crate::bounds;
use crate::refused::{self, Refused};
use crate::trace::Trace;
use dragstrip_sim as sim;
use serde_json::json;
use wasm_bindgen::prelude::wasm_bindgen;

/// A run with a trace of its packets. It only advances; an earlier stretch takes another `Lens`.
#[wasm_bindgen]
#[derive(Debug)]
pub struct Lens {
    run: sim::Run<Trace>,
}

#[wasm_bindgen]
impl Lens {
    /// Creates the run of a scenario given as JSON; passages that end before `from_ns` are not traced.
    ///
    /// # Errors
    /// An invalid scenario, or one beyond the bounds.
    #[wasm_bindgen(constructor)]
    pub fn new(scenario: &str, from_ns: f64) -> Result<Lens, Refused> {
        let mut scenario = bounds::read(scenario)?;
        bounds::cost_of(&scenario)?;
        // The recording has no influence on the run, and has no reader here.
        let record = &mut scenario.record;
        record.interval_ns = scenario.duration_ns.max(1);
        (record.rtts, record.every_ack, record.cc_state) = (false, false, false);
        let trace = Trace::new(from_ns as u64);
        Ok(Self { run: sim::Run::new(scenario, trace).map_err(refused::setup)? })
    }

    /// Advances to `until_ns`, by at most `events_max` events; true when it has arrived there.
    pub fn advance(&mut self, until_ns: f64, events_max: u32) -> bool {
        self.run.advance(until_ns as u64, events_max) < events_max
    }

    /// The links in the order of their numbers in [`Lens::packets`], as JSON: `link`, `from`, `to`, `rate_bps` and
    /// `delay_ns`.
    #[must_use]
    pub fn links(&self) -> String {
        let scenario = self.run.scenario();
        let rows = scenario.links.iter().map(|link| {
            let facts = scenario.link_facts(link);
            json!({
                "link": link.name,
                "from": link.from,
                "to": link.to,
                "rate_bps": facts.fastest_bps,
                "delay_ns": facts.delay_ns,
            })
        });
        rows.collect::<serde_json::Value>().to_string()
    }

    /// Passages of links that had not ended at `from_ns` and had begun at `to_ns`, ten numbers each (`trace.rs`). Passages
    /// that ended before `from_ns` are dropped.
    pub fn packets(&mut self, from_ns: f64, to_ns: f64) -> Vec<f64> {
        self.run.observer_mut().from(from_ns as u64);
        self.run.observer().rows(to_ns as u64)
    }

    /// True when passages were left out: there were too many.
    #[must_use]
    #[wasm_bindgen(getter)]
    pub fn full(&self) -> bool {
        self.run.observer().is_full()
    }
}

#[cfg(test)]
mod tests {
    use super::Lens;
    use crate::form::runs_of;
    use crate::run::Run;
    use serde_json::Value;

    const END: f64 = 4e9;

    fn scenario() -> String {
        let form = r#"{"algorithms": ["cubic", "vegas"], "rate": "5mbit", "rtt": "40ms", "queue": "pfifo limit 20",
            "loss": "0.5%", "duration": "4s", "together": true, "seed": 1}"#;
        let runs: Value = serde_json::from_str(&runs_of(form).unwrap()).unwrap();
        runs["runs"][0]["scenario"].as_str().unwrap().to_owned()
    }

    fn rows(values: &[f64]) -> Vec<Vec<u64>> {
        let mut rows: Vec<Vec<u64>> =
            values.chunks(10).map(|row| row.iter().map(|it| it.to_bits()).collect()).collect();
        rows.sort();
        rows
    }

    fn whole() -> Vec<f64> {
        let mut lens = Lens::new(&scenario(), 0.0).unwrap();
        assert!(lens.advance(END, u32::MAX));
        lens.packets(0.0, END)
    }

    #[test]
    fn every_loss_of_the_run_is_there() {
        let mut run = Run::new(&scenario(), 0.0).unwrap();
        run.advance(END, 1e9);
        let events: Vec<Value> = serde_json::from_str(&run.events(0.0, END, u32::MAX)).unwrap();
        let drops = events.iter().filter(|it| it["what"] == "drop").count();
        let lost = whole().chunks(10).filter(|row| row[7] == 1.0).count();
        assert!(drops > 20, "{drops}");
        assert_eq!(lost, drops);
    }

    #[test]
    fn a_stretch_has_what_the_whole_has_of_it_however_it_is_reached() {
        let (from, to) = (1e9, 1.2e9);
        let all = whole();
        let inside = |row: &&[f64]| row[4] <= to && (row[6].is_nan() || row[6] >= from);
        let expected: Vec<f64> = all.chunks(10).filter(inside).flatten().copied().collect();
        let mut lens = Lens::new(&scenario(), 0.3e9).unwrap();
        while !lens.advance(to + 0.4e9, 37) {}
        lens.packets(0.5e9, 0.9e9);
        let passages = lens.packets(from, to);
        assert!(passages.len() > 3000, "{}", passages.len());
        assert_eq!(rows(&passages), rows(&expected));
        assert!(!lens.full());
    }

    #[test]
    fn what_is_lost_is_sent_again() {
        let all = whole();
        let data = |row: &&[f64]| row[0] >= 0.0 && row[1] == 0.0 && row[3] == 0.0;
        let again = all.chunks(10).filter(data).filter(|row| row[8] as u32 & 2 == 2);
        let first = all.chunks(10).find(|row| row[7] == 1.0).unwrap();
        let earliest = again.map(|row| row[4]).fold(END, f64::min);
        assert!(earliest > first[6] && earliest < END, "{earliest}");
    }
}
