//! Refusals as JSON.

use dragstrip_scenario::Problem;
use dragstrip_sim::SetupError;
use serde_json::{Value, json};

/// The problems of a refused input: a JSON list of `{field, value, expected}`.
pub type Refused = String;

fn row(problem: &Problem) -> Value {
    let Problem { field, value, expected } = problem;
    json!({"field": field, "value": value, "expected": expected})
}

/// A refusal for a single problem.
#[expect(clippy::needless_pass_by_value, reason = "as map_err hands it over")]
pub fn problem(problem: Problem) -> Refused {
    Value::Array(vec![row(&problem)]).to_string()
}

/// A refusal for several problems.
#[expect(clippy::needless_pass_by_value, reason = "as map_err hands them over")]
pub fn problems(problems: Vec<Problem>) -> Refused {
    problems.iter().map(row).collect::<Value>().to_string()
}

/// A refusal of a scenario that cannot be built.
pub fn setup(error: SetupError) -> Refused {
    self::problem(Problem { field: error.field, value: String::new(), expected: error.message })
}

/// The fault that ended a run, as a row of such a list.
pub fn fault(error: SetupError) -> Value {
    row(&Problem { field: error.field, value: String::new(), expected: error.message })
}

/// A refusal of `value` in `field`, with what is expected there.
pub fn wrong(field: &str, value: &str, expected: &str) -> Refused {
    self::problem(Problem::new(field, value, expected))
}
