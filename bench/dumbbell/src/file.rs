//! What a file holds: a scenario that is run, or a capture that is inspected.

use crate::sim;
use dragstrip_inspect::Session;
use dragstrip_scenario::Scenario;
use std::fs;

/// Reads the one file that the arguments name, and answers with what `command` makes of it.
pub fn of(
    mut arguments: impl Iterator<Item = String>,
    command: impl Fn(Vec<u8>) -> Result<String, String>,
) -> Result<String, String> {
    let (Some(name), None) = (arguments.next(), arguments.next()) else {
        return Err("one file is needed".to_owned());
    };
    #[expect(clippy::disallowed_methods, reason = "a program of its own, which is given a file")]
    let bytes = fs::read(&name).map_err(|error| format!("{name}: {error}"))?;
    command(bytes).map_err(|error| format!("{name}: {error}"))
}

/// Runs a scenario once; the answer counts the full-sized segments that its receivers took.
pub fn scenario(bytes: Vec<u8>) -> Result<String, String> {
    let text = String::from_utf8(bytes).map_err(|error| error.to_string())?;
    let scenario = Scenario::from_json(&text)
        .map_err(|problem| format!("{}: {}", problem.field, problem.expected))?;
    let recording = dragstrip_sim::run(&scenario, &mut |_| true)
        .map_err(|error| format!("{}: {}", error.field, error.message))?;
    let packets = sim::data_packets(&recording)?;
    Ok(serde_json::json!({ "data_packets": packets }).to_string())
}

/// Inspects a capture as `dragstrip inspect` does; the answer counts its packets.
pub fn inspect(bytes: Vec<u8>) -> Result<String, String> {
    let mut session = Session::new(1, false);
    session.feed(0, &bytes).map_err(|fault| fault.to_string())?;
    session.end(0).map_err(|fault| fault.to_string())?;
    let (inspected, ..) = session.finish();
    let packets: u64 = inspected.files.iter().map(|file| file.packets).sum();
    Ok(serde_json::json!({ "packets": packets }).to_string())
}
