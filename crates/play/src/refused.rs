//! What is refused, as JSON.

use dragstrip_scenario::Problem;
use dragstrip_sim::SetupError;
use serde_json::{Value, json};

/// Why something is refused: a JSON list of `{field, value, expected}`.
pub type Refused = String;

fn row(found: &Problem) -> Value {
    let Problem { field, value, expected } = found;
    json!({"field": field, "value": value, "expected": expected})
}

/// One problem.
#[expect(clippy::needless_pass_by_value, reason = "as map_err hands it over")]
pub fn one(problem: Problem) -> Refused {
    Value::Array(vec![row(&problem)]).to_string()
}

/// Several.
#[expect(clippy::needless_pass_by_value, reason = "as map_err hands them over")]
pub fn all(problems: Vec<Problem>) -> Refused {
    problems.iter().map(row).collect::<Value>().to_string()
}

/// A scenario that cannot be built.
pub fn setup(error: SetupError) -> Refused {
    one(Problem { field: error.field, value: String::new(), expected: error.message })
}

/// What has ended a run, as a row of such a list.
pub fn fault(error: SetupError) -> Value {
    row(&Problem { field: error.field, value: String::new(), expected: error.message })
}

/// `field` has `value` where `expected` would be right.
pub fn wrong(field: &str, value: &str, expected: &str) -> Refused {
    one(Problem::new(field, value, expected))
}
