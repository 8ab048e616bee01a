//! `generate`: everything that is written from the Rust types, or compared with what is there.

use crate::output::Output;
use crate::{Failure, experiment, look, measures, names, pages, race, recording, result, schema};
use dragstrip_scenario::Scenario;
use std::path::Path;

/// All generated files as they should be.
fn outputs(root: &Path) -> Result<Vec<Output>, Failure> {
    let json = Scenario::schema();
    let model = schema::Model::read(&json);
    let schema = serde_json::to_string_pretty(&json)
        .map_err(|error| Failure::Usage(format!("the schema cannot be written: {error}")))?;
    let mut outputs =
        vec![Output { path: "docs/reference/scenario.schema.json", text: schema + "\n" }];
    outputs.extend(pages::all(root, &model)?);
    outputs.extend(recording::all());
    outputs.push(measures::page());
    outputs.push(names::page());
    outputs.push(look::file());
    outputs.extend(experiment::all()?);
    outputs.extend(race::all());
    outputs.extend(result::all(root)?);
    Ok(outputs)
}

/// The generated files that are missing or differ.
fn stale(root: &Path, outputs: &[Output]) -> Vec<&'static str> {
    let differs = |output: &&Output| {
        std::fs::read_to_string(root.join(output.path)).ok().as_deref() != Some(&output.text)
    };
    outputs.iter().filter(differs).map(|output| output.path).collect()
}

/// Writes what is missing or differs.
pub fn write(root: &Path) -> Result<String, Failure> {
    let outputs = outputs(root)?;
    let stale = stale(root, &outputs);
    for output in outputs.iter().filter(|output| stale.contains(&output.path)) {
        crate::write(&root.join(output.path), &output.text)?;
    }
    match stale.as_slice() {
        [] => Ok(format!("{} files are current", outputs.len())),
        written => Ok(format!("wrote {}", written.join(", "))),
    }
}

/// Only compares.
pub fn check(root: &Path) -> Result<String, Failure> {
    let outputs = outputs(root)?;
    match stale(root, &outputs).as_slice() {
        [] => Ok(format!("{} files are current", outputs.len())),
        stale => Err(Failure::Found(format!(
            "not current: {} (cargo xtask generate writes them)",
            stale.join(", ")
        ))),
    }
}

#[cfg(test)]
mod tests {
    use crate::{Failure, root};

    #[test]
    fn the_generated_files_are_current() {
        let checked = super::check(&root());
        assert!(checked.is_ok(), "{checked:?}");
    }

    #[test]
    fn an_empty_tree_is_not_current() {
        let elsewhere = root().join("crates/xtask/src");
        // Without the algorithms' sources the pages cannot even be composed.
        assert!(matches!(super::check(&elsewhere), Err(Failure::Usage(_))));
        let outputs = super::outputs(&root()).unwrap();
        assert_eq!(super::stale(&elsewhere, &outputs).len(), outputs.len());
    }
}
