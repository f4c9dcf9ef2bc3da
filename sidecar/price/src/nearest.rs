//! The word somebody probably meant.

/// The known word nearest to `word`, if it is near enough to be a slip of the pen.
pub(crate) fn word<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > LONGEST {
        return None;
    }
    let meant = word.to_ascii_lowercase().replace(['-', '.', ' '], "_");
    known
        .into_iter()
        .map(|candidate| (distance(&meant, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= 1 + candidate.len() / 5)
        .min()
        .map(|(_, candidate)| candidate)
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
