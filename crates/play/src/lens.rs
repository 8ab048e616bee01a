//! The packets of a stretch of a run: the run once more, with each packet's way noted.

use crate::bounds;
use crate::refused::{self, Refused};
use crate::trace::Trace;
use dragstrip_sim as sim;
use serde_json::json;
use wasm_bindgen::prelude::wasm_bindgen;

/// A run whose packets are looked at. It goes forwards only; for what lies before, make another one.
#[wasm_bindgen]
#[derive(Debug)]
pub struct Lens {
    run: sim::Run<Trace>,
}

#[wasm_bindgen]
impl Lens {
    /// The run of a scenario given as JSON; what happens before `from_ns` is not noted.
    ///
    /// # Errors
    /// What is wrong with the scenario, or beyond the bounds.
    #[wasm_bindgen(constructor)]
    pub fn new(scenario: &str, from_ns: f64) -> Result<Lens, Refused> {
        let mut scenario = bounds::read(scenario)?;
        bounds::cost_of(&scenario)?;
        // What is recorded changes nothing of what happens, and nobody reads it here.
        let record = &mut scenario.record;
        record.interval_ns = scenario.duration_ns.max(1);
        (record.rtts, record.every_ack, record.cc_state) = (false, false, false);
        let trace = Trace::new(from_ns as u64);
        Ok(Self { run: sim::Run::new(scenario, trace).map_err(refused::setup)? })
    }

    /// Goes on until `until_ns`, but for no more than `events_max` events; whether it is there.
    pub fn advance(&mut self, until_ns: f64, events_max: u32) -> bool {
        self.run.advance(until_ns as u64, events_max) < events_max
    }

    /// Where each link, by its number in [`Lens::packets`], leads, as JSON: `link`, `from`, `to`, `rate_bps`
    /// and `delay_ns`.
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

    /// Passages of links that had not ended at `from_ns` and had begun at `to_ns`, ten numbers each (`trace.rs`). What
    /// ended before `from_ns` is forgotten.
    pub fn packets(&mut self, from_ns: f64, to_ns: f64) -> Vec<f64> {
        self.run.observer_mut().from(from_ns as u64);
        self.run.observer().rows(to_ns as u64)
    }

    /// There were more than are kept at once.
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
        let made: Value = serde_json::from_str(&runs_of(form).unwrap()).unwrap();
        made["runs"][0]["scenario"].as_str().unwrap().to_owned()
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
        let told: Vec<Value> = serde_json::from_str(&run.events(0.0, END, u32::MAX)).unwrap();
        let drops = told.iter().filter(|it| it["what"] == "drop").count();
        let lost = whole().chunks(10).filter(|row| row[7] == 1.0).count();
        assert!(drops > 20, "{drops}");
        assert_eq!(lost, drops);
    }

    #[test]
    fn a_stretch_has_what_the_whole_has_of_it_however_it_is_reached() {
        let (from, to) = (1e9, 1.2e9);
        let all = whole();
        let inside = |row: &&[f64]| row[4] <= to && (row[6].is_nan() || row[6] >= from);
        let wanted: Vec<f64> = all.chunks(10).filter(inside).flatten().copied().collect();
        let mut lens = Lens::new(&scenario(), 0.3e9).unwrap();
        while !lens.advance(to + 0.4e9, 37) {}
        lens.packets(0.5e9, 0.9e9);
        let found = lens.packets(from, to);
        assert!(found.len() > 3000, "{}", found.len());
        assert_eq!(rows(&found), rows(&wanted));
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
