//! Comparison of model name patterns: how specific one is, and whether two overlap.

/// Returns the number of literal characters: the more, the more specific the pattern.
pub(crate) fn literal_chars(pattern: &str) -> usize {
    pattern.chars().filter(|c| !matches!(c, '*' | '?')).count()
}

/// Returns whether some name matches both.
pub(crate) fn overlap(one: &str, other: &str) -> bool {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    // Row by row: whether the first `i` characters of one and the first `j` of the other can match one text.
    let mut row = vec![false; other.len() + 1];
    for i in 0..=one.len() {
        let mut next = vec![false; other.len() + 1];
        for j in 0..=other.len() {
            let star = |of: &[char], at: usize| at > 0 && of[at - 1] == '*';
            next[j] = (i == 0 && j == 0)
                || (star(&one, i) && (row[j] || j > 0 && next[j - 1]))
                || (star(&other, j) && (next[j - 1] || i > 0 && row[j]))
                || (i > 0 && j > 0 && row[j - 1] && is_same_char(one[i - 1], other[j - 1]));
        }
        row = next;
    }
    row[other.len()]
}

fn is_same_char(one: char, other: char) -> bool {
    one != '*' && other != '*' && (one == other || one == '?' || other == '?')
}

#[cfg(test)]
mod tests {
    use super::{literal_chars, overlap};

    #[test]
    fn stars_and_question_marks_are_not_literal() {
        assert_eq!(literal_chars("gpt-?o*"), 5);
    }

    #[test]
    fn patterns_overlap_if_some_name_fits_both() {
        for (one, other, do_they) in [
            ("gpt-*", "*-mini", true),
            ("gpt-*", "claude-*", false),
            ("a?c", "ab*", true),
            ("a?c", "ab", false),
            ("*", "", true),
            ("?", "", false),
            ("gpt-4o*", "gpt-4-*", false),
        ] {
            assert_eq!(overlap(one, other), do_they, "{one} {other}");
            assert_eq!(overlap(other, one), do_they, "{other} {one}");
        }
    }
}
