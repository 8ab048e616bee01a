//! Flows that arrive: when each comes and how much it carries, drawn from the run's seed.

use crate::applications::ArrivalForm;
use crate::problem;
use crate::quantity::size;
use crate::types::{Experiment, FlowForm};
use dragstrip_scenario::Problem;
use dragstrip_units::Stream;

/// As many flows as one entry may have.
const ARRIVALS_MAX: usize = 100_000;

/// Sizes that have a name: bytes and the share of flows that carry no more.
const NAMED: [(&str, &[(f64, f64)]); 1] = [(
    "web-search",
    // DCTCP (SIGCOMM 2010), figure 4, as HPCC's traffic generator has it.
    &[
        (0.0, 0.0),
        (10_000.0, 0.15),
        (20_000.0, 0.2),
        (30_000.0, 0.3),
        (50_000.0, 0.4),
        (80_000.0, 0.53),
        (200_000.0, 0.6),
        (1_000_000.0, 0.7),
        (2_000_000.0, 0.8),
        (5_000_000.0, 0.9),
        (10_000_000.0, 0.97),
        (30_000_000.0, 1.0),
    ],
)];

/// A distribution of sizes: between two points it is linear.
#[derive(Clone, Debug, PartialEq)]
pub struct Sizes(Vec<(f64, f64)>);

impl Sizes {
    /// The distribution that a text means: a name, one size, or lines of a size in bytes and the share of flows that
    /// carry no more, with or without a column between them.
    ///
    /// # Errors
    /// Text that is none of them, with the line that is wrong.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        if let Some((_, points)) = NAMED.iter().find(|(name, _)| *name == text) {
            return Ok(Self(points.to_vec()));
        }
        if let Ok(bytes) = size(text) {
            let bytes = bytes as f64;
            return Ok(Self(vec![(bytes, 0.0), (bytes, 1.0)]));
        }
        if !text.trim().contains('\n') {
            let names: Vec<&str> = NAMED.iter().map(|(name, _)| *name).collect();
            let expected = format!("{}, a size such as 100kb, or a file", names.join(", "));
            return Err(problem("", &format!("{text:?}"), &expected));
        }
        Self::lines(text)
    }

    fn lines(text: &str) -> Result<Self, Problem> {
        let mut points: Vec<(f64, f64)> = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            let wrong = |expected| problem("", &format!("line {}: {line:?}", at + 1), expected);
            let columns: Option<Vec<f64>> = line
                .split([' ', '\t', ','])
                .filter(|word| !word.is_empty())
                .map(|word| {
                    word.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0)
                })
                .collect();
            let columns = columns.filter(|columns| (2..=3).contains(&columns.len()));
            let Some(columns) = columns else {
                return Err(wrong(
                    "a size in bytes and the share of flows up to it, such as 10000 0.15",
                ));
            };
            let point = (columns[0], columns[columns.len() - 1]);
            if points.last().is_some_and(|last| point.0 < last.0 || point.1 < last.1) {
                return Err(wrong("sizes and shares that ascend from line to line"));
            }
            points.push(point);
        }
        let whole = points.last().map_or(0.0, |last| last.1);
        if whole != 1.0 && whole != 100.0 {
            let value = format!("the last share is {whole}");
            return Err(problem("", &value, "shares up to 1, or up to 100 in per cent"));
        }
        for point in &mut points {
            point.1 /= whole;
        }
        if points[0].1 > 0.0 {
            points.insert(0, (points[0].0, 0.0));
        }
        if points[points.len() - 1].0 < 1.0 {
            return Err(problem("", "no size above 0", "sizes in bytes"));
        }
        Ok(Self(points))
    }

    /// The mean in bytes.
    #[must_use]
    pub fn mean(&self) -> f64 {
        let parts =
            self.0.windows(2).map(|two| (two[0].0 + two[1].0) / 2.0 * (two[1].1 - two[0].1));
        parts.sum()
    }

    /// The size of which this share of flows carry no more; at least a byte.
    #[must_use]
    pub fn at(&self, share: f64) -> u64 {
        let two = self.0.windows(2).find(|two| share < two[1].1);
        let Some([low, high]) = two else { return self.0[self.0.len() - 1].0 as u64 };
        let fraction = (share - low.1) / (high.1 - low.1);
        libm::round(low.0 + (high.0 - low.0) * fraction).max(1.0) as u64
    }

    /// True when all flows carry the same amount.
    fn is_one(&self) -> bool {
        self.0[0].0 == self.0[self.0.len() - 1].0
    }
}

/// A flow that arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrival {
    /// From the run's beginning.
    pub start_ns: u64,
    /// Bytes that it carries.
    pub bytes: u64,
}

/// Uniform from 0 to below 1.
fn share(stream: &mut Stream) -> f64 {
    (stream.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

/// The flows of each entry that has arrivals, in the order of time. They depend only on the seed and the entry's
/// position: all alternatives have the same, whichever hosts send them.
///
/// # Errors
/// A load of a path without a rate, sizes that cannot be read, none or too many flows.
pub(crate) fn arrivals(
    experiment: &Experiment,
    flows: &[FlowForm],
    seed: u64,
) -> Result<Vec<Option<Vec<Arrival>>>, Problem> {
    let of = |(index, flow): (usize, &FlowForm)| {
        let Some(form) = &flow.arrivals else { return Ok(None) };
        let at = format!("flows[{index}]");
        draw_arrivals(experiment, flow, form, (seed, index))
            .map(Some)
            .map_err(|fault| fault.within(&at))
    };
    flows.iter().enumerate().map(of).collect()
}

fn draw_arrivals(
    experiment: &Experiment,
    flow: &FlowForm,
    form: &ArrivalForm,
    (seed, index): (u64, usize),
) -> Result<Vec<Arrival>, Problem> {
    let sizes = sizes_of(flow)?;
    let end_ns = experiment.duration.0;
    let mut dice = Stream::named(seed, &format!("sizes of arrivals {index}"));
    let times = match form {
        ArrivalForm::Listed { times } => {
            let mut times: Vec<u64> =
                times.iter().map(|time| flow.start.0.saturating_add(time.0)).collect();
            times.sort_unstable();
            times.retain(|time| *time < end_ns);
            times
        }
        ArrivalForm::Poisson { load, every, until } => {
            let gap_ns = match (load, every) {
                (Some(load), None) => {
                    let offered = rate(experiment, flow)? as f64 * load.0;
                    sizes.mean() * 8e9 / offered
                }
                (None, Some(every)) => every.0 as f64,
                _ => return Err(problem("arrivals", "", "either load or every")),
            };
            if !(gap_ns >= 1.0 && gap_ns.is_finite()) {
                let field = if load.is_some() { "arrivals.load" } else { "arrivals.every" };
                return Err(problem(field, "", "a load or a time above zero"));
            }
            let until_ns = until.map_or(end_ns / 3 * 2, |until| until.0.min(end_ns));
            let mut dice = Stream::named(seed, &format!("arrivals {index}"));
            let mut now = flow.start.0 as f64;
            let mut times = Vec::new();
            while times.len() <= ARRIVALS_MAX {
                now -= gap_ns * libm::log(1.0 - share(&mut dice));
                if now >= until_ns as f64 {
                    break;
                }
                times.push(now as u64);
            }
            times
        }
    };
    if times.is_empty() {
        return Err(problem("arrivals", "no flow comes", "at least one within the run"));
    }
    if times.len() > ARRIVALS_MAX {
        let expected = format!("at most {ARRIVALS_MAX} flows: a lower load or a shorter run");
        return Err(problem("arrivals", "", &expected));
    }
    let mut bytes = || if sizes.is_one() { sizes.at(0.0) } else { sizes.at(share(&mut dice)) };
    Ok(times.into_iter().map(|start_ns| Arrival { start_ns, bytes: bytes() }).collect())
}

/// The size distribution of an entry's flows.
pub(crate) fn sizes_of(flow: &FlowForm) -> Result<Sizes, Problem> {
    match (&flow.sizes, flow.bytes) {
        (Some(text), None) => Sizes::parse(text).map_err(|fault| fault.within("sizes")),
        (None, Some(bytes)) => {
            let bytes = bytes.0.max(1) as f64;
            Ok(Sizes(vec![(bytes, 0.0), (bytes, 1.0)]))
        }
        (Some(_), Some(_)) => Err(problem("sizes", "", "either sizes or bytes")),
        (None, None) => Err(problem(
            "sizes",
            "",
            "is missing: what flows that arrive carry, such as web-search",
        )),
    }
}

/// Bit/s of the direction in which a flow sends.
fn rate(experiment: &Experiment, flow: &FlowForm) -> Result<u64, Problem> {
    let path = experiment.path.as_ref();
    let rate = path.and_then(|path| if flow.reverse { path.up_rate } else { path.rate });
    let none = || {
        let name = if flow.reverse { "up_rate" } else { "rate" };
        let expected =
            format!("every, such as \"100ms\": no path.{name} is given to count a load by");
        problem("arrivals.load", "", &expected)
    };
    rate.map(|rate| rate.0).ok_or_else(none)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build;
    use dragstrip_scenario::{Application, Scenario};
    use serde_json::{Value, json};

    fn build_flow(flow: &Value, seed: u64) -> Result<Scenario, Problem> {
        let content = json!({
            "duration": "300s", "path": {"rate": "100mbit", "rtt": "20ms"}, "flows": [flow],
        });
        build(&Experiment::from_json(&content.to_string())?, "x", seed)
    }

    fn flows(scenario: &Scenario) -> Vec<(u64, u64)> {
        let of = |flow: &dragstrip_scenario::FlowSpec| {
            let Application::Bulk { bytes: Some(bytes) } = flow.application else {
                panic!("{flow:?}");
            };
            (flow.start_ns, bytes)
        };
        scenario.flows.iter().map(of).collect()
    }

    #[test]
    fn a_load_is_that_share_of_the_rate() {
        let poisson = json!({"cc": "cubic", "count": 3, "sizes": "web-search",
            "arrivals": {"kind": "poisson", "load": "50%"}});
        let scenario = build_flow(&poisson, 1).unwrap();
        assert_eq!(scenario.validate(), Ok(()));
        let all = flows(&scenario);
        assert!(all.windows(2).all(|two| two[0].0 <= two[1].0));
        assert!(all[all.len() - 1].0 < 200_000_000_000);
        // 200 s at 50 Mbit/s in flows of 1.71 MB: 731, of which a Poisson process has a deviation of 27, and the sum of
        // their sizes, whose deviation is 3.7 MB, one of 9 %.
        assert!((731_i64 - all.len() as i64).abs() < 81, "{}", all.len());
        let offered = all.iter().map(|flow| flow.1 as f64).sum::<f64>() * 8.0 / 200.0;
        assert!((offered / 50e6 - 1.0).abs() < 0.27, "{offered}");
        let gaps: Vec<f64> = all.windows(2).map(|two| (two[1].0 - two[0].0) as f64).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        // In a Poisson process 1 - 1/e = 63.2 % of the gaps are below the mean.
        let below = gaps.iter().filter(|gap| **gap < mean).count() as f64 / gaps.len() as f64;
        assert!((below - 0.632).abs() < 0.054, "{below}");
        // Three hosts send in turn.
        let senders: Vec<&str> = scenario.flows.iter().map(|flow| flow.sender.as_str()).collect();
        assert_eq!(senders[..4], ["s1", "s2", "s3", "s1"]);
        assert_eq!(scenario.flows[9].label, "cubic-10");
        let other_flows = |cc: &str, seed| {
            let mut flow = poisson.clone();
            flow["cc"] = json!(cc);
            flows(&build_flow(&flow, seed).unwrap())
        };
        assert_eq!(other_flows("bbr", 1), all, "whoever sends");
        assert_ne!(other_flows("cubic", 2), all);
    }

    #[test]
    fn flows_come_at_listed_times() {
        let listed = json!({"cc": "reno", "start": "1s", "bytes": "9kb",
            "arrivals": {"kind": "listed", "times": ["2s", "0s", "400s"]}});
        let listed_flows = flows(&build_flow(&listed, 1).unwrap());
        assert_eq!(listed_flows, [(1_000_000_000, 9_216), (3_000_000_000, 9_216)]);
    }

    #[test]
    fn invalid_arrivals_are_refused() {
        let poisson = |fields: Value| {
            let mut flow = json!({"cc": "reno", "sizes": "web-search"});
            for (field, value) in fields.as_object().into_iter().flatten() {
                flow[field] = value.clone();
            }
            if flow["sizes"].is_null() {
                flow.as_object_mut().map(|all| all.remove("sizes"));
            }
            build_flow(&flow, 1).unwrap_err()
        };
        let load = json!({"kind": "poisson", "load": "50%"});
        for (fields, field, expected) in [
            (json!({"arrivals": {"kind": "poisson"}}), "flows[0].arrivals", "either load or"),
            (
                json!({"arrivals": {"kind": "poisson", "load": "1%", "every": "1s"}}),
                "flows[0].arrivals",
                "either load or",
            ),
            (
                json!({"arrivals": {"kind": "poisson", "load": "0%"}}),
                "flows[0].arrivals.load",
                "above zero",
            ),
            (
                json!({"arrivals": {"kind": "poisson", "every": "1us"}}),
                "flows[0].arrivals",
                "at most 100000 flows",
            ),
            (json!({"arrivals": load, "reverse": true}), "flows[0].arrivals.load", "every"),
            (json!({"arrivals": load, "bytes": "1mb"}), "flows[0].sizes", "either sizes"),
            (json!({"arrivals": load, "sizes": null}), "flows[0].sizes", "is missing"),
            (json!({"arrivals": load, "sizes": "web"}), "flows[0].sizes", "web-search, a size"),
            (
                json!({"arrivals": {"kind": "listed", "times": []}}),
                "flows[0].arrivals",
                "at least one",
            ),
        ] {
            let problem = poisson(fields.clone());
            assert_eq!(problem.field, field, "{fields}");
            assert!(problem.expected.contains(expected), "{fields}: {problem}");
        }
    }

    #[test]
    fn a_file_of_sizes_has_two_or_three_columns() {
        let two = Sizes::parse("# bytes share\n1000 0\n3000, 50\n\n9000 100\n").unwrap();
        assert_eq!(two, Sizes(vec![(1000.0, 0.0), (3000.0, 0.5), (9000.0, 1.0)]));
        assert_eq!((two.mean(), two.at(0.25), two.at(0.75)), (4000.0, 2000, 6000));
        let three = Sizes::parse("1000 1 0.4\n2000 2 1\n").unwrap();
        assert_eq!((three.at(0.39), three.at(0.7), three.mean()), (1000, 1500, 1300.0));
        for (text, value) in [
            ("1000 0\nx 1\n", "line 2: \"x 1\""),
            ("1000 0\n900 1\n", "line 2: \"900 1\""),
            ("1000 0\n2000 0.9\n", "the last share is 0.9"),
            ("0 0\n0 1\n", "no size above 0"),
            ("1 2 3 4\n1 1\n", "line 1: \"1 2 3 4\""),
        ] {
            assert_eq!(Sizes::parse(text).unwrap_err().value, value, "{text}");
        }
    }
}
