//! The word somebody probably meant.

use strsim::osa_distance;

/// The known word nearest to `word`, if it is near enough to be a slip of the pen.
pub(crate) fn word<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
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

/// Bytes of a word that somebody may have meant as another.
const LONGEST: usize = 100;

#[cfg(test)]
mod tests {
    use super::word;

    #[test]
    fn slips_are_recognised_and_strangers_are_not() {
        const KNOWN: [&str; 5] = ["name", "image", "input", "cached_input", "batch"];
        for (written, meant) in [
            ("nmae", Some("name")),
            ("nam", Some("name")),
            ("imput", Some("input")),
            ("cached-input", Some("cached_input")),
            ("bacth", Some("batch")),
            ("name", Some("name")),
            ("colour", None),
            ("", None),
        ] {
            assert_eq!(word(written, KNOWN), meant, "{written}");
        }
        assert_eq!(word(&"name".repeat(1000), KNOWN), None);
    }
}
