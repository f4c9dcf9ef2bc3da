//! Patterns of model names: `*` stands for any characters or none, `?` for exactly one, everything else
//! for itself. They are compared byte by byte in time proportional to the product of the lengths at
//! worst, so that no pattern can stall a thread.

/// Whether `pattern` fits the whole of `name`.
pub(crate) fn fits(pattern: &[char], name: &str) -> bool {
    let mut rest = name.chars();
    let mut at = 0;
    // The last `*`, and what was left of the name when it last grew.
    let mut star: Option<(usize, std::str::Chars<'_>)> = None;
    loop {
        let before = rest.clone();
        match (pattern.get(at), rest.next()) {
            (Some('*'), _) => {
                star = Some((at, before.clone()));
                at += 1;
                rest = before;
            }
            (Some('?'), Some(_)) => at += 1,
            (Some(want), Some(have)) if *want == have => at += 1,
            (None, None) => return true,
            _ => match &mut star {
                Some((position, grown)) => {
                    if grown.next().is_none() {
                        return false;
                    }
                    at = *position + 1;
                    rest = grown.clone();
                }
                None => return false,
            },
        }
    }
}

/// How many characters of it stand for themselves: the more, the more exactly it says what it means.
pub(crate) fn literal(pattern: &str) -> usize {
    pattern.chars().filter(|c| !matches!(c, '*' | '?')).count()
}

/// Whether some name fits both.
pub(crate) fn overlap(one: &str, other: &str) -> bool {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    // Row by row: whether the first `i` of one and the first `j` of the other can be made equal.
    let mut row = vec![false; other.len() + 1];
    for i in 0..=one.len() {
        let mut next = vec![false; other.len() + 1];
        for j in 0..=other.len() {
            let star = |of: &[char], at: usize| at > 0 && of[at - 1] == '*';
            next[j] = (i == 0 && j == 0)
                || (star(&one, i) && (row[j] || j > 0 && next[j - 1]))
                || (star(&other, j) && (next[j - 1] || i > 0 && row[j]))
                || (i > 0 && j > 0 && row[j - 1] && same(one[i - 1], other[j - 1]));
        }
        row = next;
    }
    row[other.len()]
}

fn same(one: char, other: char) -> bool {
    one != '*' && other != '*' && (one == other || one == '?' || other == '?')
}

#[cfg(test)]
mod tests {
    use super::{fits, literal, overlap};

    #[test]
    fn stars_stand_for_any_and_question_marks_for_one() {
        for (pattern, name, does) in [
            ("*", "", true),
            ("*", "anything/at:all", true),
            ("gpt-4o*", "gpt-4o", true),
            ("gpt-4o*", "gpt-4", false),
            ("*-mini", "gpt-4o-mini", true),
            ("*-mini", "gpt-4o-mini-2", false),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "acb", false),
            ("qwen?-8b", "qwen3-8b", true),
            ("qwen?-8b", "qwen-8b", false),
            ("ä?", "äö", true),
            ("", "", true),
            ("", "x", false),
            ("a*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false),
        ] {
            assert_eq!(fits(&pattern.chars().collect::<Vec<_>>(), name), does, "{pattern} {name}");
        }
        assert_eq!(literal("gpt-?o*"), 5);
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
