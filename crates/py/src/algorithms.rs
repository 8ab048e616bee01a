//! The registry of congestion controls, as JSON.

use dragstrip_cc::{About, EcnMode, Needs, Parameter, Signal, Variable};
use serde_json::{Value, json};

/// A list of rows, in the order of the reference page.
pub fn table() -> Value {
    dragstrip_cc::about().iter().map(row).collect()
}

/// A list of QUIC's stacks and their congestion controls.
pub fn quic_table() -> Value {
    let row = |about: &dragstrip_scenario::quic::About| {
        let absent = dragstrip_quic::absence(about.stack).map(|reason| reason.to_string());
        json!({
            "name": about.name,
            "title": about.title,
            "release": about.stack.release(),
            "stack": about.stack.name(),
            "library": about.stack.is_library(),
            "absent": absent,
        })
    };
    dragstrip_scenario::quic::about().iter().map(row).collect()
}

fn row(about: &About) -> Value {
    let About { name, file, models, module, signal, settles, parameters, variables, needs } = about;
    let Needs { pacing, rtt_stamps, ecn, dice } = needs;
    let ecn = match ecn {
        EcnMode::Classic => "classic",
        EcnMode::Dctcp => "dctcp",
        EcnMode::L4s => "l4s",
    };
    let signal = match signal {
        Signal::Loss => "loss",
        Signal::Delay => "delay",
        Signal::Model => "model",
        Signal::Marks => "marks",
        Signal::Nothing => "nothing",
    };
    json!({
        "name": name,
        "file": file,
        "models": models,
        "module": module,
        "signal": signal,
        "settles": settles,
        "parameters": parameters.iter().map(parameter).collect::<Value>(),
        "variables": variables.iter().map(variable).collect::<Value>(),
        "needs": { "pacing": pacing, "rtt_stamps": rtt_stamps, "ecn": ecn, "dice": dice },
    })
}

fn parameter(parameter: &Parameter) -> Value {
    let Parameter { name, default, range, unit, meaning, source } = parameter;
    json!({
        "name": name,
        "default": default,
        "range": range.to_string(),
        "unit": unit,
        "meaning": meaning,
        "source": source,
    })
}

fn variable(variable: &Variable) -> Value {
    let Variable { name, unit, meaning } = variable;
    json!({ "name": name, "unit": unit.suffix(), "meaning": meaning })
}
