//! Policies: their models by hand, and what is refused.

use super::*;
use crate::Text;
use crate::testing::view;

fn policy(rest: &str) -> Result<Policy, String> {
    let text = format!(r#"{{"policy": 1, "step": {{"ms": 10}}, "action": "rate_factor", {rest}}}"#);
    Policy::parse(&text).map_err(|misread| misread.to_string())
}

/// The action of a policy at the end of a step in which the window is 20 packets and none is in flight.
fn action(rest: &str) -> Option<f64> {
    let policy = policy(rest).unwrap_or_else(|misread| panic!("{misread}"));
    let mut agent: Agent<crate::Algorithm> = Agent::new(&Arc::new(policy), None);
    agent.close(&view(), &Window::new(20), 0)
}

#[test]
fn models_by_hand() {
    let seen = r#""observe": ["cwnd_packets", "in_flight_packets"], "model":"#;
    let close = |model: &str, expected: f64| {
        let given = action(&format!("{seen} {model}")).expect("an action");
        assert!((given - expected).abs() < 1e-12, "{model}: {given}");
    };
    close(r#"{"linear": {"weights": [[0.01, 5]], "bias": [0.25]}}"#, 0.45);
    close(r#"{"linear": {"weights": [[1, 0]], "bias": [0]}}"#, 1.0); // clipped
    close(
        r#"{"tree": [{"input": 0, "threshold": 20, "low": 1, "high": 2}, {"action": 0.5}, {"action": -1}]}"#,
        0.5,
    );
    close(r#"{"log": [0.125, 0.5]}"#, 0.125);
    let layers = r#"[{"weights": [[0.1, 0], [-0.1, 0]], "bias": [0, 0]}, {"weights": [[0.25, 1]], "bias": [0.1]}]"#;
    close(&format!(r#"{{"mlp": {{"layers": {layers}, "activation": "relu"}}}}"#), 0.6);
    let expected = 0.1 + 0.25 * libm::tanh(2.0) + libm::tanh(-2.0);
    close(&format!(r#"{{"mlp": {{"layers": {layers}, "activation": "tanh"}}}}"#), expected);
    assert_eq!(action(r#""observe": ["cwnd_packets"]"#), None, "from outside");
}

#[test]
fn inputs_are_normalised_and_a_history_begins_with_the_first_step() {
    let rest = r#""observe": ["cwnd_packets"], "history": 2, "mean": [10, 10], "deviation": [20, 40],
        "model": {"linear": {"weights": [[0.5, 1]], "bias": [0]}}"#;
    assert_eq!(action(rest), Some(0.5));
}

#[test]
fn a_policy_of_the_wrong_shape_is_refused_with_what_would_be_right() {
    let linear = |weights: &str, bias: &str| {
        format!(
            r#""observe": ["rtt_ms"], "model": {{"linear": {{"weights": {weights}, "bias": {bias}}}}}"#
        )
    };
    for (rest, message) in [
        (linear("[[1, 2]]", "[0]"), "got model.linear.weights: a row of 2, expected 1"),
        (linear("[[1], [2]]", "[0, 0]"), "got model: 2 outputs, expected 1"),
        (linear("[[1]]", "[]"), "got model.linear.bias: 0 values, expected 1"),
        (r#""observe": ["rtt"]"#.to_owned(), "got observe: \"rtt\", expected one of time_s"),
        (r#""history": 0"#.to_owned(), "got history: 0"),
        (r#""delta": 2"#.to_owned(), "got delta: 2, expected 0.000001 to 0.9"),
        (r#""colour": 1"#.to_owned(), "unknown field `colour`"),
        (r#""mean": [1]"#.to_owned(), "got mean: 1 values, expected 0 finite numbers"),
        (r#""model": {"tree": [{"action": 1}, {"input": 0, "threshold": 1, "low": 0, "high": 0}]}"#.to_owned(), "got model.tree[1]"),
        (r#""inner": "cubic""#.to_owned(), "expected the action window_factor beside it"),
    ] {
        let error = policy(&rest).expect_err(&rest);
        assert!(error.contains(message), "{error}");
    }
    let text = r#"{"policy": 1, "step": "ack", "action": "window_factor", "inner": "qubic"}"#;
    let error = Text::parse(text).expect_err("no such algorithm");
    assert_eq!(
        error.to_string(),
        "1:1: got inner: \"qubic\", expected a congestion control, such as cubic"
    );
}
