//! A scenario in which some numbers are drawn for each episode.

use dragstrip_scenario::{Problem, Scenario};
use dragstrip_units::Stream;
use serde_json::{Number, Value};

/// A number of the scenario that is drawn between two values.
#[derive(Clone, Debug)]
pub struct Knob {
    /// Its place, as an RFC 6901 pointer such as `/links/2/delay_ns`.
    pub pointer: String,
    /// Value at the lower end.
    pub low: f64,
    /// Value at the upper end.
    pub high: f64,
    /// Number of the draw that it follows: knobs of one draw move together.
    pub draw: usize,
    /// A whole number.
    pub whole: bool,
}

/// A scenario, its knobs, and the flow whose agent learns.
#[derive(Clone, Debug)]
pub struct Template {
    /// At the lower end of all ranges.
    scenario: Scenario,
    /// Its links that have knobs, by number.
    links: Vec<(usize, Value)>,
    knobs: Vec<Knob>,
    /// True for each draw that is uniform in the logarithm.
    logarithmic: Vec<bool>,
    flow: u32,
}

impl Template {
    /// A template; `logarithmic` has an entry for each draw.
    ///
    /// # Errors
    /// A scenario at either end of all ranges that is not valid, a flow without an agent, or a pointer that leads nowhere.
    pub fn new(
        scenario: Value,
        knobs: Vec<Knob>,
        logarithmic: Vec<bool>,
        flow: u32,
    ) -> Result<Self, Problem> {
        let mut links = Vec::new();
        for knob in &knobs {
            let number = link_of(&knob.pointer).ok_or_else(|| outside(knob))?;
            let link = scenario["links"].get(number).ok_or_else(|| outside(knob))?;
            if !links.iter().any(|(other, _)| *other == number) {
                links.push((number, link.clone()));
            }
        }
        let scenario = Scenario::from_value(scenario)?;
        let template = Self { scenario, links, knobs, logarithmic, flow };
        for fraction in [0.0, 1.0] {
            let fractions = vec![fraction; template.logarithmic.len()];
            let scenario = template.at(&fractions, 1)?;
            if let Some(problem) = scenario.validate().err().and_then(|all| all.into_iter().next())
            {
                return Err(problem);
            }
        }
        Ok(template)
    }

    /// The flow whose agent learns.
    #[must_use]
    pub const fn flow(&self) -> u32 {
        self.flow
    }

    /// Draws an episode: the fraction of each range, from 0 to 1, and the scenario's seed.
    pub(crate) fn draw(&self, stream: &mut Stream) -> (Vec<f64>, u32) {
        let fraction = |_: &bool| f64::from(stream.next_u32()) / f64::from(u32::MAX);
        (self.logarithmic.iter().map(fraction).collect(), stream.next_u32())
    }

    /// The scenario at these fractions of the ranges.
    pub(crate) fn at(&self, fractions: &[f64], seed: u32) -> Result<Scenario, Problem> {
        let mut scenario = Scenario { seed: u64::from(seed), ..self.scenario.clone() };
        for (number, link) in &self.links {
            let mut link = link.clone();
            let here = |knob: &&Knob| link_of(&knob.pointer) == Some(*number);
            for knob in self.knobs.iter().filter(here) {
                let start = format!("/links/{number}");
                let pointer = knob.pointer.strip_prefix(&start).unwrap_or_default();
                *link.pointer_mut(pointer).ok_or_else(|| outside(knob))? =
                    self.value(knob, fractions).ok_or_else(|| outside(knob))?;
            }
            scenario.links[*number] = serde_json::from_value(link).map_err(|error| {
                Problem::new(format!("links[{number}]"), String::new(), error.to_string())
            })?;
        }
        Ok(scenario)
    }

    /// A knob's value at these fractions; None if it is not finite.
    fn value(&self, knob: &Knob, fractions: &[f64]) -> Option<Value> {
        let fraction = fractions[knob.draw];
        let value = if self.logarithmic[knob.draw] && knob.low > 0.0 {
            knob.low * libm::pow(knob.high / knob.low, fraction)
        } else {
            knob.low + (knob.high - knob.low) * fraction
        };
        if knob.whole {
            Some(Value::Number(Number::from(libm::floor(value + 0.5) as u64)))
        } else {
            Number::from_f64(value).map(Value::Number)
        }
    }
}

/// Number of the link that a pointer leads into.
fn link_of(pointer: &str) -> Option<usize> {
    pointer.strip_prefix("/links/")?.split('/').next()?.parse().ok()
}

fn outside(knob: &Knob) -> Problem {
    Problem::new(
        knob.pointer.clone(),
        String::new(),
        "a number of a link: other ranges are not drawn",
    )
}
