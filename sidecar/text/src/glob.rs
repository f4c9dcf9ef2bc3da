//! Wildcard patterns for names of models and tenants.

use std::sync::Arc;

/// A pattern: `*` is any text, `?` any one character, everything else is literal. It matches the whole name,
/// case-sensitively.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Glob {
    text: Arc<str>,
    /// True if `*` and `?` are literal, too.
    is_literal: bool,
}

impl Glob {
    /// Returns a pattern; every text is valid.
    pub fn new(pattern: &str) -> Self {
        Self { text: pattern.into(), is_literal: false }
    }

    /// Returns the pattern of one name.
    pub fn literal(name: &str) -> Self {
        Self { text: name.into(), is_literal: true }
    }

    /// Returns the pattern's text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns true if the pattern matches `name`. Takes at most as many steps as the product of both lengths.
    pub fn matches(&self, name: &str) -> bool {
        if self.is_literal {
            return *self.text == *name;
        }
        let (mut pattern, mut rest) = (self.text.chars(), name.chars());
        // The backtracking point: after the last `*`, which takes one character more at each retry.
        let mut backtrack = None;
        loop {
            match pattern.clone().next() {
                Some('*') => {
                    pattern.next();
                    backtrack = Some((pattern.clone(), rest.clone()));
                    continue;
                }
                Some(wanted) => {
                    let have = rest.next();
                    if have.is_some_and(|have| wanted == '?' || wanted == have) {
                        pattern.next();
                        continue;
                    }
                    if have.is_none() {
                        return false;
                    }
                }
                None if rest.as_str().is_empty() => return true,
                None => {}
            }
            let Some((after, start)) = &mut backtrack else { return false };
            start.next();
            (pattern, rest) = (after.clone(), start.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Glob;

    /// Matches by trying every length of each `*`.
    fn naive(pattern: &[char], name: &[char]) -> bool {
        match (pattern, name) {
            ([], []) => true,
            (['*', rest @ ..], _) => (0..=name.len()).any(|taken| naive(rest, &name[taken..])),
            (['?', pattern @ ..], [_, name @ ..]) => naive(pattern, name),
            ([one, pattern @ ..], [same, name @ ..]) => one == same && naive(pattern, name),
            _ => false,
        }
    }

    #[test]
    fn wildcards_match_as_documented() {
        for (pattern, name, matches) in [
            ("*", "", true),
            ("*", "qwen3-8b", true),
            ("qwen*", "qwen3-8b", true),
            ("qwen*", "my-qwen", false),
            ("*-8b", "qwen3-8b", true),
            ("q*-*b", "qwen3-8b", true),
            ("qwen?-8b", "qwen3-8b", true),
            ("qwen?-8b", "qwen-8b", false),
            ("qwen3-8b", "qwen3-8b-instruct", false),
            ("Qwen*", "qwen3", false),
            ("ü?", "üb", true),
            ("", "", true),
            ("", "a", false),
        ] {
            assert_eq!(Glob::new(pattern).matches(name), matches, "{pattern} {name}");
        }
    }

    #[test]
    fn literal_pattern_matches_its_name_only() {
        for name in ["*", "a?", "", "a*b"] {
            assert!(Glob::literal(name).matches(name), "{name}");
            assert!(!Glob::literal(name).matches("axb"), "{name}");
        }
    }

    proptest! {
        #![proptest_config(chance::cases(2000))]

        #[test]
        fn matches_agree_with_naive_twin(pattern in "[ab?*ü]{0,7}", name in "[abü]{0,8}") {
            let chars = |text: &str| text.chars().collect::<Vec<_>>();
            prop_assert_eq!(Glob::new(&pattern).matches(&name), naive(&chars(&pattern), &chars(&name)));
        }
    }
}
