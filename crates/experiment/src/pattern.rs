//! Patterns of hosts' names: `*` any text, `?` any character, `[a-c]` one of these, `[!a-c]` none of them.

/// True when the whole name matches, case-sensitive.
#[must_use]
pub fn matches(name: &str, pattern: &str) -> bool {
    let (name, pattern): (Vec<char>, Vec<char>) =
        (name.chars().collect(), pattern.chars().collect());
    let (mut at, mut part) = (0, 0);
    // The last star, and up to where of the name it reaches.
    let mut star: Option<(usize, usize)> = None;
    while at < name.len() {
        if pattern.get(part) == Some(&'*') {
            star = Some((part, at));
            part += 1;
        } else if let Some(length) = element_length(name[at], &pattern[part..]) {
            at += 1;
            part += length;
        } else if let Some((before, reach)) = star {
            star = Some((before, reach + 1));
            (part, at) = (before + 1, reach + 1);
        } else {
            return false;
        }
    }
    pattern[part..].iter().all(|rest| *rest == '*')
}

/// Length of the pattern's first element if it matches this character; none if it does not match.
fn element_length(character: char, pattern: &[char]) -> Option<usize> {
    match *pattern.first()? {
        '?' => Some(1),
        '[' => match set(pattern) {
            Some((members, negated, length)) => {
                (contains(members, character) != negated).then_some(length)
            }
            // Never closed: an ordinary character.
            None => (character == '[').then_some(1),
        },
        plain => (character == plain).then_some(1),
    }
}

/// The members of the set at the pattern's start, whether it is negated, and its length.
fn set(pattern: &[char]) -> Option<(&[char], bool, usize)> {
    let negated = pattern.get(1) == Some(&'!');
    let first = if negated { 2 } else { 1 };
    // A bracket at the start is a member.
    let end = (first + 1..pattern.len()).find(|&at| pattern[at] == ']')?;
    Some((&pattern[first..end], negated, end + 1))
}

fn contains(members: &[char], character: char) -> bool {
    let mut at = 0;
    while at < members.len() {
        if members.get(at + 1) == Some(&'-') && at + 2 < members.len() {
            if (members[at]..=members[at + 2]).contains(&character) {
                return true;
            }
            at += 3;
        } else if members[at] == character {
            return true;
        } else {
            at += 1;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn stars_marks_and_sets() {
        for (name, pattern) in [
            ("s1", "*"),
            ("s1", "s?"),
            ("s12", "s*"),
            ("s1", "s[1-3]"),
            ("s9", "s[!1-3]"),
            ("", "*"),
            ("abcbd", "a*b?"),
            ("a]", "a[]]"),
            ("[x", "[x"),
            ("a-", "a[b-]"),
            ("aXbXc", "a*X*c"),
            ("ab", "a**b"),
        ] {
            assert!(matches(name, pattern), "{name} {pattern}");
        }
        for (name, pattern) in [
            ("s12", "s?"),
            ("S1", "s*"),
            ("s4", "s[1-3]"),
            ("s", "s?"),
            ("ab", "a"),
            ("", "?"),
            ("abd", "a*c"),
        ] {
            assert!(!matches(name, pattern), "{name} {pattern}");
        }
    }
}
