//! Citations: every file, section and link that docs, comments and messages name must be there.
//!
//! Four forms are looked for: a Markdown link, a path that begins with one of our folders, a page
//! (`NAME.md`, alone or with a section), and in Markdown a source file between backticks.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

/// All files of the tree, relative to its root, and what their pages' headings are called in links.
pub struct Tree {
    files: BTreeSet<PathBuf>,
    folders: BTreeSet<PathBuf>,
    /// First folders of paths: a citation begins with one of them.
    tops: BTreeSet<String>,
}

impl Tree {
    /// A tree of these files, their paths relative to its root.
    pub fn new(files: impl IntoIterator<Item = PathBuf>) -> Self {
        let files: BTreeSet<PathBuf> = files.into_iter().collect();
        let folders: BTreeSet<PathBuf> = files
            .iter()
            .flat_map(|file| file.ancestors().skip(1).map(Path::to_path_buf).collect::<Vec<_>>())
            .collect();
        let tops = folders
            .iter()
            .filter(|folder| folder.components().count() == 1)
            .map(|folder| folder.display().to_string())
            .collect();
        Self { files, folders, tops }
    }

    fn has(&self, path: &Path) -> bool {
        self.files.contains(path) || self.folders.contains(path)
    }

    /// True when some file's path has this ending.
    fn has_ending(&self, path: &str) -> bool {
        self.files.iter().any(|file| file.ends_with(path))
    }

    /// Lists the paths that `text`, the content of the file `name`, cites and the tree lacks; `read` gives a page's
    /// text.
    pub fn complaints(
        &self,
        name: &str,
        text: &str,
        read: impl Fn(&Path) -> Option<String>,
    ) -> Vec<String> {
        let markdown = name.ends_with(".md");
        let folder = Path::new(name).parent().unwrap_or(Path::new(""));
        let mut complaints = Vec::new();
        let mut fenced = false;
        for (number, line) in text.lines().enumerate() {
            if is_test(name) && !is_comment(line) {
                continue; // tests make up files of their own
            }
            fenced ^= markdown && line.trim_start().starts_with("```");
            let mut wrong: Vec<String> = Vec::new();
            if markdown && !fenced {
                wrong.extend(links(line).filter_map(|link| self.broken(name, folder, link, &read)));
                wrong.extend(backticked(line).filter_map(|source| self.missing_source(source)));
            }
            wrong.extend(words(line).filter_map(|word| self.missing(folder, word)));
            wrong.extend(sections(line).filter_map(|(page, section)| {
                let page = self.page(folder, page)?;
                let has_section = read(&page)?.lines().any(|heading| {
                    heading.starts_with('#')
                        && heading.trim_start_matches(['#', ' ', '§']).starts_with(section)
                });
                (!has_section).then(|| format!("{} has no section {section}", page.display()))
            }));
            wrong.sort();
            wrong.dedup();
            complaints.extend(wrong.iter().map(|wrong| format!("{name}:{}: {wrong}", number + 1)));
        }
        complaints
    }

    /// A Markdown link whose file or heading is not there.
    fn broken(
        &self,
        name: &str,
        folder: &Path,
        link: &str,
        read: &impl Fn(&Path) -> Option<String>,
    ) -> Option<String> {
        if link.contains("://") || link.starts_with("mailto:") {
            return None;
        }
        let (file, heading) = link.split_once('#').unwrap_or((link, ""));
        let path = if file.is_empty() { PathBuf::from(name) } else { plain(&folder.join(file))? };
        if !self.has(&path) {
            return Some(format!("the link {link} leads nowhere"));
        }
        if heading.is_empty() || !file.ends_with(".md") && !file.is_empty() {
            return None;
        }
        let has_heading = read(&path)?.lines().any(|line| {
            line.contains(&format!("id=\"{heading}\""))
                || line.starts_with('#') && anchor(line) == heading
        });
        (!has_heading).then(|| format!("the link {link} names no heading"))
    }

    /// A path below one of our folders, or a page, that is not there.
    fn missing(&self, folder: &Path, word: &str) -> Option<String> {
        let word = word.split('#').next().unwrap_or(word).trim_end_matches(['.', '/', '-']);
        let (first, rest) = word.split_once('/').unwrap_or((word, ""));
        if self.tops.contains(first) && !rest.is_empty() {
            // From the top, or from a folder above the file: its crate's.
            let exists = folder
                .ancestors()
                .any(|above| plain(&above.join(word)).is_some_and(|path| self.has(&path)));
            return (!exists).then(|| format!("{word} does not exist"));
        }
        (word.len() > 3 && word.ends_with(".md") && self.page(folder, word).is_none())
            .then(|| format!("there is no page {word}"))
    }

    /// The cited page: next to the file, in docs/, at the top, or any path with this ending.
    fn page(&self, folder: &Path, word: &str) -> Option<PathBuf> {
        let places = [
            plain(&folder.join(word)),
            plain(&Path::new("docs").join(word)),
            plain(Path::new(word)),
        ];
        let relative = places.into_iter().flatten().find(|path| self.has(path));
        relative.or_else(|| self.files.iter().find(|file| file.ends_with(word)).cloned())
    }

    /// A source file between backticks, by name or by the end of its path.
    fn missing_source(&self, word: &str) -> Option<String> {
        let source = [".rs", ".py"].iter().any(|ending| word.ends_with(ending));
        let placeholder = word.chars().any(|c| c.is_ascii_uppercase())
            || word.contains(['*', ' ', '<'])
            || word.split('/').any(is_readers_own);
        (source && !placeholder && !self.has_ending(word)).then(|| format!("there is no {word}"))
    }
}

/// True when a file contains tests.
fn is_test(name: &str) -> bool {
    name.starts_with("tests/") || name.contains("/tests/") || name.ends_with("/tests.rs")
}

fn is_comment(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("//") || line.starts_with("# ")
}

/// The targets of Markdown links.
fn links(line: &str) -> impl Iterator<Item = &str> {
    line.match_indices("](").filter_map(move |(at, _)| {
        let rest = &line[at + 2..];
        rest.split_once(')').map(|(target, _)| target).filter(|target| !target.contains(' '))
    })
}

/// Texts between single backticks.
fn backticked(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// A header of the system's, not of ours.
const SYSTEM: &[&str] = &["bpf/libbpf.h", "bpf/bpf.h"];

/// Runs of characters that paths are made of; what begins elsewhere (an address, an absolute path) or has
/// a place to fill in (`NAME`, `*`, `{}`) is left out.
fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !(c.is_alphanumeric() || "_./-#*{}<>@:~$".contains(c))).filter(|word| {
        let filled_in = word.split('/').any(|part| {
            let stem = part.split('.').next().unwrap_or(part);
            let capitals = stem.len() > 1 && stem.chars().all(|c| c.is_ascii_uppercase());
            capitals && stem != "README" || is_readers_own(stem)
        });
        !filled_in
            && !SYSTEM.contains(word)
            && !word.ends_with(".proptest-regressions") // written when a test fails
            && !word.starts_with(['/', '.'])
            && !word.contains(['*', '{', '<', '@', ':', '~', '$'])
    })
}

/// `my_algorithm`: a file that the reader is to create.
fn is_readers_own(stem: &str) -> bool {
    stem.starts_with("my_")
}

/// Pages cited with a section: `NAME.md §2`.
fn sections(line: &str) -> impl Iterator<Item = (&str, &str)> {
    line.match_indices(".md §").map(move |(at, mark)| {
        let start = line[..at].rfind(|c: char| !(c.is_alphanumeric() || "_./-".contains(c)));
        let rest = &line[at + mark.len()..];
        let end = rest.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(rest.len());
        (&line[start.map_or(0, |at| at + 1)..at + 3], rest[..end].trim_end_matches('.'))
    })
}

/// A path without `.` and `..`; none if it leaves the tree.
fn plain(path: &Path) -> Option<PathBuf> {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => plain.push(name),
            Component::ParentDir => {
                if !plain.pop() {
                    return None;
                }
            }
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(plain)
}

/// A heading's name in links, as GitHub makes it.
fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    text.chars()
        .filter(|c| c.is_alphanumeric() || "-_ ".contains(*c))
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> Tree {
        Tree::new(
            ["README.md", "docs/a.md", "docs/deep/b.md", "crates/x/src/lib.rs"].map(PathBuf::from),
        )
    }

    fn read(_: &Path) -> Option<String> {
        Some("# A title, *here*\n## 2 Second\n".to_owned())
    }

    #[test]
    fn existing_paths_may_be_cited() {
        for (name, text) in [
            (
                "docs/a.md",
                "[b](deep/b.md) [top](../README.md#a-title-here) [web](https://e.org/x.md)",
            ),
            (
                "docs/a.md",
                "`src/lib.rs`, crates/x/src/lib.rs, crates/x/, `NAME.rs`, crates/NAME/src",
            ),
            ("docs/a.md", "```\n[not a link](nowhere) `gone.rs`\n```"),
            (
                "crates/x/src/lib.rs",
                "// a.md §2. docs/deep/b.md; /docs/gone, https://e.org/docs/x, docs/*.md",
            ),
        ] {
            assert_eq!(tree().complaints(name, text, read), Vec::<String>::new(), "{text}");
        }
    }

    #[test]
    fn missing_paths_are_reported_with_their_line() {
        for (name, text, complaint) in [
            ("docs/a.md", "\n[b](b.md#x)", "docs/a.md:2: the link b.md#x leads nowhere"),
            (
                "docs/a.md",
                "[b](deep/b.md#no)",
                "docs/a.md:1: the link deep/b.md#no names no heading",
            ),
            ("docs/a.md", "[out](../../README.md)", ""),
            ("docs/a.md", "see `gone.rs`", "docs/a.md:1: there is no gone.rs"),
            (
                "crates/x/src/lib.rs",
                "// crates/y",
                "crates/x/src/lib.rs:1: crates/y does not exist",
            ),
            (
                "crates/x/src/lib.rs",
                "// gone.md",
                "crates/x/src/lib.rs:1: there is no page gone.md",
            ),
            (
                "crates/x/src/lib.rs",
                "// a.md §16",
                "crates/x/src/lib.rs:1: docs/a.md has no section 16",
            ),
        ] {
            let complaints = tree().complaints(name, text, read);
            if !complaint.is_empty() {
                assert!(
                    complaints.iter().any(|actual| actual == complaint),
                    "{text}: {complaints:?}"
                );
            }
        }
    }
}
