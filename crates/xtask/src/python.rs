//! Parts of generated Python modules: names and docstrings.

use std::fmt::Write as _;

/// pyproject.toml's line length.
const WIDTH: usize = 110;

/// The word with a capital letter.
pub fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Appends an indented docstring, on several lines if it is longer than one.
pub fn docstring(text: &mut String, description: &str) {
    let description = description.replace('\n', " ");
    let whole = format!("    \"\"\"{description}\"\"\"");
    if whole.chars().count() <= WIDTH {
        let _ = writeln!(text, "{whole}");
        return;
    }
    let mut line = "    \"\"\"".to_owned();
    for word in description.split(' ') {
        if line.chars().count() + 1 + word.chars().count() > WIDTH {
            let _ = writeln!(text, "{}", line.trim_end());
            line = "    ".to_owned();
        }
        line.push_str(word);
        line.push(' ');
    }
    let _ = writeln!(text, "{}\n    \"\"\"", line.trim_end());
}

/// The Python name of a field: a reserved word gets an underscore, and the schema's name as its alias.
pub fn identifier(name: &str) -> (String, Option<&str>) {
    const RESERVED: &[&str] = &["from", "import", "in", "is", "lambda", "global", "with", "as"];
    if RESERVED.contains(&name) {
        (format!("{name}_"), Some(name))
    } else {
        (name.to_owned(), None)
    }
}
