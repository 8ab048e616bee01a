//! Names for media and for whole paths, and their fields.
//!
//! `medium = "adsl2+"` needs no entry in `[media]`, and `path = "home DSL"` (or `preset = "home DSL"` together with
//! other fields of `[path]`, which override it) is short for the fields of a known path. The tables are
//! [`media::MEDIA`] and [`paths::PATHS`].

pub mod hosts;
pub mod media;
pub mod paths;

use crate::problem;
use dragstrip_scenario::Problem;
use dragstrip_units::suggest;
use media::{MEDIA, NamedMedium};
use paths::{NamedPath, PATHS};
use serde_json::{Map, Value, json};

/// Fields of a path that say the same in different words: where one is given, the preset's others go.
const RIVALS: &[&[&str]] = &[
    &["rate", "medium"],
    &["up_rate", "up_medium"],
    &["rtt", "delay", "up_delay"],
    &["netem", "loss", "jitter"],
];

/// Writes out the names in an experiment's `path` and adds the media that they need.
///
/// # Errors
/// A preset that is not known.
pub fn spell_names(content: &mut Value) -> Result<(), Problem> {
    let Some(table) = content.as_object_mut() else { return Ok(()) };
    let given_media = table.get("media").and_then(Value::as_object).cloned();
    let Some(path) = table.get_mut("path") else { return Ok(()) };
    if let Value::String(name) = path {
        *path = json!({ "preset": name });
    }
    let Some(fields) = path.as_object_mut() else { return Ok(()) };
    let mut media = Map::new();
    if let Some(name) = fields.shift_remove("preset") {
        let preset_path = name.as_str().and_then(preset).ok_or_else(|| unknown(&name))?;
        let given_fields: Vec<String> = fields.keys().cloned().collect();
        for (field, value) in preset_path.fields {
            let rivals = RIVALS.iter().find(|rivals| rivals.contains(field));
            let is_given = |name: &str| given_fields.iter().any(|present| present == name);
            if !is_given(field)
                && !rivals.is_some_and(|rivals| rivals.iter().any(|rival| is_given(rival)))
            {
                fields.insert((*field).to_owned(), json!(value));
            }
        }
        for (name, form) in preset_path.media {
            if ["medium", "up_medium"].iter().any(|field| fields.get(*field) == Some(&json!(name)))
            {
                media.insert((*name).to_owned(), form_of(form));
            }
        }
    }
    for (field, back) in [("medium", false), ("up_medium", true)] {
        let Some(name) = fields.get(field).and_then(Value::as_str).map(str::to_owned) else {
            continue;
        };
        if media.contains_key(&name)
            || given_media.as_ref().is_some_and(|all| all.contains_key(&name))
        {
            continue;
        }
        let named_medium = medium(&name).ok_or_else(|| no_medium(field, &name))?;
        let down =
            if back { named_medium.up.unwrap_or(named_medium.form) } else { named_medium.form };
        media.entry(name.clone()).or_insert_with(|| form_of(down));
        let alone = !fields.contains_key("up_medium") && !fields.contains_key("up_rate");
        if let Some(up) = named_medium.up.filter(|_| alone && !back) {
            let name = format!("{name}-up");
            media.insert(name.clone(), form_of(up));
            fields.insert("up_medium".to_owned(), json!(name));
        }
    }
    if !media.is_empty() {
        let all = table.entry("media").or_insert_with(|| json!({}));
        if let Some(all) = all.as_object_mut() {
            for (name, form) in media {
                all.entry(name).or_insert(form);
            }
        }
    }
    Ok(())
}

/// The path of this name, case-insensitive.
fn preset(name: &str) -> Option<&'static NamedPath> {
    let matches_name = |candidate: &&str| candidate.eq_ignore_ascii_case(name);
    PATHS.iter().find(|path| matches_name(&path.name) || path.aliases.iter().any(matches_name))
}

fn medium(name: &str) -> Option<&'static NamedMedium> {
    MEDIA.iter().find(|medium| medium.name == name)
}

fn no_medium(field: &str, name: &str) -> Problem {
    let names: Vec<&str> = MEDIA.iter().map(|medium| medium.name).collect();
    let expected =
        format!("an entry of [media], or one of {} (dragstrip list --media)", names.join(", "));
    let expected = suggest(name, names, &expected);
    problem(&format!("path.{field}"), &format!("{name:?}"), &expected)
}

fn unknown(name: &Value) -> Problem {
    let names: Vec<&str> = PATHS.iter().map(|path| path.name).collect();
    let expected = format!("one of {} (dragstrip list --paths)", names.join(", "));
    let names_and_aliases =
        PATHS.iter().flat_map(|path| path.aliases.iter().chain([&path.name])).copied();
    let expected = suggest(name.as_str().unwrap_or_default(), names_and_aliases, &expected);
    problem("path.preset", &name.to_string(), &expected)
}

/// Parses an entry of the tables; a test checks that they are valid.
fn form_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Experiment, build};

    fn spell_content(content: &Value) -> Value {
        let mut content = content.clone();
        spell_names(&mut content).unwrap();
        content
    }

    fn scenario(path: &Value) -> dragstrip_scenario::Scenario {
        let content = json!({"duration": "1s", "path": path, "flows": [{"cc": "cubic"}]});
        let experiment = Experiment::from_json(&spell_content(&content).to_string()).unwrap();
        let scenario = build(&experiment, "x", 1).unwrap();
        assert_eq!(scenario.validate(), Ok(()), "{path}");
        scenario
    }

    #[test]
    fn every_named_path_can_be_run() {
        for path in PATHS {
            for name in [&path.name].into_iter().chain(path.aliases) {
                scenario(&json!(name));
                scenario(&json!(name.to_uppercase()));
            }
            assert!(!path.sources.is_empty() && !path.chosen.is_empty(), "{}", path.name);
        }
    }

    #[test]
    fn every_named_medium_can_be_run_and_goes_both_ways() {
        for medium in MEDIA {
            let scenario = scenario(&json!({"medium": medium.name, "rtt": "20ms"}));
            let up = scenario.links.iter().find(|link| link.name == "d-r").unwrap();
            assert!(up.medium.is_some(), "{}", medium.name);
        }
    }

    #[test]
    fn given_fields_override_the_preset() {
        let content = json!({"path": {"preset": "LTE", "rate": "5mbit", "delay": "3ms", "queue": "fq_codel"}});
        let path = &spell_content(&content)["path"];
        assert_eq!((&path["rate"], &path["queue"]), (&json!("5mbit"), &json!("fq_codel")));
        assert_eq!((path.get("rtt"), path.get("preset")), (None, None));
        let own_medium = json!({"path": {"medium": "adsl2"}, "media": {"adsl2": {"kind": "wifi_g", "rate": "54mbit"}}});
        assert_eq!(spell_content(&own_medium)["media"]["adsl2"]["kind"], "wifi_g");
        let plain = json!({"path": {"rate": "1mbit"}, "flows": []});
        assert_eq!(spell_content(&plain), plain);
    }

    #[test]
    fn an_unknown_path_is_refused() {
        for name in [json!("home dls"), json!(3)] {
            let problem = spell_names(&mut json!({"path": {"preset": name}})).unwrap_err();
            assert_eq!((problem.field.as_str(), problem.value), ("path.preset", name.to_string()));
        }
    }
}
