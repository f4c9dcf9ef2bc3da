//! Suggestions for misspelt words.

use strsim::osa_distance;

/// Returns the known word nearest to `word`, if the distance is that of a typing error.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > MAX_WORD_BYTES {
        return None;
    }
    let normalized = word.to_ascii_lowercase().replace(['-', '.', ' '], "_");
    known
        .into_iter()
        .map(|candidate| (osa_distance(&normalized, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= 1 + candidate.len() / 5)
        .min()
        .map(|(_, candidate)| candidate)
}

/// Suggests the known word nearest to `word`, or else lists the known words.
pub fn suggestion<'a>(word: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    match nearest(word, known.clone()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("known are {}", known.collect::<Vec<_>>().join(", ")),
    }
}

/// The maximum length in bytes of a word with a suggestion.
const MAX_WORD_BYTES: usize = 100;

#[cfg(test)]
mod tests {
    use super::{nearest, suggestion};

    #[test]
    fn suggestion_is_a_near_word_or_all() {
        let known = ["tenant", "strip"].into_iter();
        assert_eq!(suggestion("tennant", known.clone()), "did you mean `tenant`?");
        assert_eq!(suggestion("peer", known), "known are tenant, strip");
    }

    #[test]
    fn misspellings_get_suggestions_and_other_words_none() {
        const KNOWN: [&str; 9] = [
            "name",
            "image",
            "input",
            "cached_input",
            "batch",
            "listen",
            "stall_ms",
            "upstreams",
            "llama_cpp",
        ];
        for (written, normalized) in [
            ("nmae", Some("name")),
            ("nam", Some("name")),
            ("imput", Some("input")),
            ("cached-input", Some("cached_input")),
            ("bacth", Some("batch")),
            ("name", Some("name")),
            ("Listen", Some("listen")),
            ("stall-ms", Some("stall_ms")),
            ("upstream", Some("upstreams")),
            ("llama.cpp", Some("llama_cpp")),
            ("llamacpp", Some("llama_cpp")),
            ("colour", None),
            ("timeout", None),
            ("", None),
        ] {
            assert_eq!(nearest(written, KNOWN), normalized, "{written}");
        }
        assert_eq!(nearest(&"name".repeat(1000), KNOWN), None);
    }
}
