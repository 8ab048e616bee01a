//! "Did you mean ...": the known word most like an unknown one.

/// The candidate most like `word`, in upper or lower case, when it is like it at all: at most a third of the longer
/// one's letters differ (one for very short words; two letters in the wrong order differ once), or one of the two
/// contains the other, as `bpf_vegas` contains `vegas` and `office Wi-Fi` contains `office`.
#[must_use]
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    const WHOLE_MIN: usize = 4;
    let candidates: Vec<&str> = candidates.into_iter().collect();
    let lower = word.to_lowercase();
    let alike = candidates
        .iter()
        .map(|known| (strsim::osa_distance(&lower, &known.to_lowercase()), *known))
        // Of those that are equally like it, another version of it: `bbr3` for `bbr2`.
        .min_by_key(|(distance, known)| (*distance, !is_version(word, known)))
        .filter(|(distance, known)| {
            *distance <= (word.chars().count().max(known.chars().count()) / 3).max(1)
        })
        .map(|(_, known)| known);
    let is_inside =
        |known: &&&str| known.len() >= WHOLE_MIN && lower.contains(&known.to_lowercase());
    let longer = |known: &&&str| lower.len() >= WHOLE_MIN && known.to_lowercase().contains(&lower);
    alike
        .or_else(|| candidates.iter().filter(is_inside).max_by_key(|known| known.len()).copied())
        .or_else(|| candidates.iter().filter(longer).min_by_key(|known| known.len()).copied())
}

/// True when both have the same name before different numbers.
fn is_version(word: &str, known: &str) -> bool {
    let stem = |text: &'_ str| text.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    let (own, other) = (stem(word), stem(known));
    own < word.len() && other < known.len() && word[..own] == known[..other]
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
        assert_eq!(nearest("bpf_vegas", ["reno", "vegas"]), Some("vegas"));
        assert_eq!(nearest("bbr2", ["bbr", "cubic", "bbr3"]), Some("bbr3"));
        assert_eq!(nearest("rat", ["rate", "rtt"]), Some("rate"));
        assert_eq!(nearest("rte", ["rate", "rtt"]), Some("rate"));
        assert_eq!(nearest("rttt", ["rate", "rtt"]), Some("rtt"));
        assert_eq!(nearest("BBR", ["reno", "cubic", "bbr"]), Some("bbr"));
        assert_eq!(nearest("office", ["home DSL", "office Wi-Fi"]), Some("office Wi-Fi"));
    }
}
