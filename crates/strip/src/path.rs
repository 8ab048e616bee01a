//! From the options of a race to the network of one run.

use dragstrip_experiment::{self as experiment, Everything, RaceForm, Variants};
use dragstrip_scenario::{Problem, Scenario};
use serde_json::{Map, Value};
use std::fmt;

/// A path that cannot be had: the option, its value, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The option or field.
    pub field: String,
    /// Its value, and what is expected.
    pub message: String,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}

impl std::error::Error for Error {}

impl From<Problem> for Error {
    fn from(problem: Problem) -> Self {
        let message = problem.to_string();
        let message = message.strip_prefix(&format!("{}: ", problem.field)).unwrap_or(&message);
        Self { message: message.to_owned(), field: problem.field }
    }
}

impl From<dragstrip_sim::SetupError> for Error {
    fn from(error: dragstrip_sim::SetupError) -> Self {
        Self { field: error.field, message: error.message }
    }
}

/// The algorithm of a flow that keeps a place for the caller's ends and is left out again.
const PLACE: &str = "reno";

/// The scenario of one run in which `rivals` share the path, and the two hosts that are the caller's. Without rivals it has one flow,
/// which a scenario must have.
pub(crate) fn scenario(
    options: &[(&str, &str)],
    rivals: &[&str],
    seed: u64,
) -> Result<(Scenario, [String; 2]), Error> {
    let mut values = Map::new();
    for (name, text) in options {
        let option = experiment::option_of(name);
        let is_flag = option.is_some_and(|option| option.takes == experiment::Takes::Flag);
        let value = match *text {
            "true" if is_flag => Value::Bool(true),
            "false" if is_flag => Value::Bool(false),
            text => Value::String(text.to_owned()),
        };
        values.insert((*name).to_owned(), value);
    }
    let algorithms = std::iter::once(PLACE).chain(rivals.iter().copied());
    values.insert("algorithms".to_owned(), algorithms.collect());
    values.insert("together".to_owned(), Value::Bool(true));
    values.insert("seed".to_owned(), seed.into());
    let mut content = experiment::compare(&RaceForm::new(values)?)?;
    // The caller's ends are no hosts that ask for addresses first.
    content["cold_arp"] = Value::Bool(false);
    let known = experiment::algorithms();
    let variants = Variants::new(experiment::checked(content, &known)?)?;
    let mut runs = experiment::expand(&variants, 0..1, 1, &known, &mut Everything)?;
    let alone = runs.len() == 1;
    let Some(run) = runs.pop().filter(|_| alone) else {
        let expected = "one value of each option: a strip is one path".to_owned();
        return Err(Error { field: "options".to_owned(), message: expected });
    };
    let mut scenario = run.scenario;
    scenario.probes.clear();
    let place = &scenario.flows[0];
    let ends = [place.sender.clone(), place.receiver.clone()];
    if !rivals.is_empty() {
        scenario.flows.remove(0);
    }
    Ok((scenario, ends))
}
