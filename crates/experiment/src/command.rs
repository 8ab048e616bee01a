//! A race's options in the words of a command line.

use crate::race::{RaceForm, Takes};
use serde_json::Value;

/// The equivalent command line. Default values are left out, except the duration.
#[must_use]
pub fn command_line(form: &RaceForm) -> String {
    let mut words = vec!["dragstrip".to_owned(), "compare".to_owned()];
    let mut flags = Vec::new();
    for option in crate::race::OPTIONS {
        let form_value = form.value(option.name);
        let word = option.word();
        let mut say = |value: &str| words.extend([word.clone(), quoted(value)]);
        match option.takes {
            Takes::Text | Takes::Count => {
                let text = form_value.map(plain).or_else(|| Some(option.default.to_owned()));
                let text = text.filter(|text| !text.is_empty());
                let differs = |text: &String| option.name == "duration" || text != option.default;
                if let Some(text) = text.filter(differs) {
                    say(&text);
                }
            }
            Takes::Texts => {
                form_value
                    .and_then(Value::as_array)
                    .into_iter()
                    .flatten()
                    .for_each(|text| say(&plain(text)));
            }
            Takes::Pairs => {
                for (key, value) in form_value.and_then(Value::as_object).into_iter().flatten() {
                    say(&format!("{key}={}", plain(value)));
                }
            }
            Takes::Files => {
                let names = form_value.and_then(Value::as_object).into_iter().flatten();
                names.for_each(|(name, _)| say(&format!("{name}.cc")));
            }
            Takes::Flag if form.flag(option.name) => flags.push(word),
            Takes::Flag => {}
        }
    }
    words.extend(flags);
    if form.algorithms.iter().any(|name| name.starts_with('-')) {
        words.push("--".to_owned());
    }
    words.extend(form.algorithms.iter().map(|name| quoted(name)));
    words.join(" ")
}

/// A text as it is, anything else as JSON.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// A word for a POSIX shell.
fn quoted(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"%+,-./:=@_".contains(&byte);
    if !word.is_empty() && word.bytes().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_says_what_differs_from_the_defaults() {
        let form = r#"{"algorithms": ["cubic", "bbr*4@80ms"], "rate": "10mbit", "rtt": "40ms", "queue": "bfifo limit 200kb",
            "duration": "30s", "together": true, "change": ["9s rate=2mbit"], "seed": 7, "ecn": true, "sysctl": {"net.ipv4.tcp_rmem": "1 2 3"}}"#;
        let form = RaceForm::from_json(form).unwrap();
        assert_eq!(
            command_line(&form),
            "dragstrip compare --rate 10mbit --rtt 40ms --queue 'bfifo limit 200kb' --duration 30s --sysctl \
             'net.ipv4.tcp_rmem=1 2 3' --seed 7 --change '9s rate=2mbit' --ecn --together cubic 'bbr*4@80ms'"
        );
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted("$(x)"), "'$(x)'");
    }
}
