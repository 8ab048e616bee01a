//! The reference page's description of a table.

use super::{Row, Table, ordered};

/// A row for the reference page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Described {
    /// tc's words.
    pub words: Vec<&'static str>,
    /// Placeholder for the value after the word; empty: nothing follows.
    pub value: &'static str,
    /// tc wants to be told.
    pub mandatory: bool,
    /// Default of tc and the kernel, in tc's words.
    pub default: String,
    /// The least value.
    pub least: Option<String>,
    /// The greatest value.
    pub most: Option<String>,
    /// A range of another kind.
    pub range: &'static str,
    /// The value stands behind another row's.
    pub behind: bool,
    /// Meaning of the words.
    pub about: String,
}

/// One line of the reference page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// tc's words with what follows them: `` `limit PACKETS` ``.
    pub words: String,
    /// `from 1 to 65536`.
    pub range: String,
    /// In tc's words; `mandatory`.
    pub default: String,
    /// Meaning of the value.
    pub about: String,
}

/// The lines of a table, in the order of tc's text.
#[must_use]
pub fn describe<S: Table>() -> Vec<Line> {
    ordered::<S>()
        .iter()
        .flat_map(|(row, followers)| {
            let mut first = line(row);
            let names: Vec<&str> = followers.iter().map(|row| row.part.describe().value).collect();
            if !names.is_empty() {
                let optional = names.iter().map(|name| format!(" [{name}")).collect::<String>();
                first.words.truncate(first.words.len() - 1);
                first.words += &format!("{optional}{}`", "]".repeat(names.len()));
            }
            std::iter::once(first).chain(followers.iter().map(|row| line(row)))
        })
        .filter(|line| !line.words.is_empty())
        .collect()
}

fn line<S>(row: &Row<S>) -> Line {
    let Described { words, value, mandatory, default, least, most, range, behind, about } =
        row.part.describe();
    let value = match value {
        "NUMBER" if row.name.ends_with("_packets") => "PACKETS",
        "NUMBER" if row.name.ends_with("_bytes") => "BYTES",
        "NUMBER" if row.name.ends_with("_percent") => "PERCENT",
        other => other,
    };
    let words: Vec<String> = if behind {
        vec![format!("`{value}`")]
    } else {
        let with_value = |word: &&str| {
            // The word for no value at all is the last.
            let blank =
                if value.is_empty() || (**word == default && words.len() > 1) { "" } else { " " };
            let value = if blank.is_empty() { "" } else { value };
            format!("`{word}{blank}{value}`")
        };
        words.iter().map(with_value).collect()
    };
    let range = match (least, most) {
        (Some(least), Some(most)) => format!("{least} to {most}"),
        (Some(least), None) => format!("at least {least}"),
        (None, Some(most)) => format!("at most {most}"),
        (None, None) => range.to_owned(),
    };
    let default = if mandatory { "mandatory".to_owned() } else { code(&default) };
    let about = if about.is_empty() { row.help.trim().to_owned() } else { about };
    Line { words: words.join(", "), range, default, about }
}

/// tc's words as code; a sentence stays one.
fn code(text: &str) -> String {
    if text.is_empty() || text.contains(' ') { text.to_owned() } else { format!("`{text}`") }
}
