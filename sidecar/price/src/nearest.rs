//! The word somebody probably meant.

/// The known word nearest to `word`, if it is near enough to be a slip of the pen.
pub(crate) fn word<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > LONGEST {
        return None;
    }
    let meant = word.to_ascii_lowercase().replace(['-', '.', ' '], "_");
    known
        .into_iter()
        .map(|candidate| {
            (if is_swapped(&meant, candidate) { 1 } else { distance(&meant, candidate) }, candidate)
        })
        .filter(|(distance, candidate)| *distance <= 1 + candidate.len() / 5)
        .min()
        .map(|(_, candidate)| candidate)
}

/// Whether it is the same letters in another order: `nmae` is no `image`.
fn is_swapped(word: &str, candidate: &str) -> bool {
    let sorted = |text: &str| {
        let mut letters: Vec<char> = text.chars().collect();
        letters.sort_unstable();
        letters
    };
    word != candidate && sorted(word) == sorted(candidate)
}

/// Characters to add, remove or replace to make one word of the other (Levenshtein).
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (index, have) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = index + 1;
        for (column, want) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(have != *want);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
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
