//! "Did you mean ...": the known word most like an unknown one.

/// The candidate most like `word`, when it is like it at all: at most a third of the longer one's
/// letters differ (one for very short words).
#[must_use]
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .into_iter()
        .map(|known| (strsim::levenshtein(word, known), known))
        .min_by_key(|(distance, _)| *distance)
        .filter(|(distance, known)| {
            *distance <= (word.chars().count().max(known.chars().count()) / 3).max(1)
        })
        .map(|(_, known)| known)
}

/// `expected`, with the nearest of `candidates` in front when there is one.
pub fn suggest<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
    expected: &str,
) -> String {
    match nearest(word, candidates) {
        Some(known) => format!("{expected}; did you mean {known:?}?"),
        None => expected.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_slip_finds_its_word_and_nonsense_finds_none() {
        assert_eq!(nearest("dely_ns", ["delay_ns", "rate_bps"]), Some("delay_ns"));
        assert_eq!(nearest("zzzz", ["delay_ns", "rate_bps"]), None);
    }
}
