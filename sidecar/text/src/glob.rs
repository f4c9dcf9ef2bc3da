//! Names with stars: which models and tenants something is for.

use std::sync::Arc;

/// A pattern: `*` is any text, `?` any one character, everything else is itself. The whole name
/// must match, and case counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Glob(Arc<str>);

impl Glob {
    /// A pattern as written; every text is one.
    pub fn new(pattern: &str) -> Self {
        Self(pattern.into())
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Whether a name is one of those meant. At most as many steps as the two lengths' product.
    pub fn matches(&self, name: &str) -> bool {
        let (mut pattern, mut rest) = (self.0.chars(), name.chars());
        // What to try again with one more character under the last star.
        let mut again = None;
        loop {
            match pattern.clone().next() {
                Some('*') => {
                    pattern.next();
                    again = Some((pattern.clone(), rest.clone()));
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
            let Some((after, start)) = &mut again else { return false };
            start.next();
            (pattern, rest) = (after.clone(), start.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Glob;

    /// Every way a star can be taken, one after the other.
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
    fn stars_and_marks() {
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

    proptest! {
        #![proptest_config(chance::cases(2000))]

        #[test]
        fn as_the_naive_one(pattern in "[ab?*ü]{0,7}", name in "[abü]{0,8}") {
            let chars = |text: &str| text.chars().collect::<Vec<_>>();
            prop_assert_eq!(Glob::new(&pattern).matches(&name), naive(&chars(&pattern), &chars(&name)));
        }
    }
}
