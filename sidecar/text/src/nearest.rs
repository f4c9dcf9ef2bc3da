//! The known word that an unknown one is probably a misspelling of.

use strsim::osa_distance;

/// The known word nearest to `word`, if it differs by no more than a typing error.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > LONGEST {
        return None;
    }
    let meant = word.to_ascii_lowercase().replace(['-', '.', ' '], "_");
    known
        .into_iter()
        .map(|candidate| (osa_distance(&meant, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= 1 + candidate.len() / 5)
        .min()
        .map(|(_, candidate)| candidate)
}

/// Bytes of a word that may be a misspelling.
const LONGEST: usize = 100;

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn misspellings_are_recognised_and_other_words_are_not() {
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
        for (written, meant) in [
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
            assert_eq!(nearest(written, KNOWN), meant, "{written}");
        }
        assert_eq!(nearest(&"name".repeat(1000), KNOWN), None);
    }
}
