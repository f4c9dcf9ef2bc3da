//! Untrusted text for a terminal or a page: names of models, tenants and servers, and messages with them.
//!
//! Law: each character of a printable text moves the cursor one or two columns to the right and does nothing else.
//! Other characters are written as their escapes, so that different names stay different.

use unicode_width::UnicodeWidthChar;

/// Returns the text with every unprintable character escaped, as in `\u{202e}`.
pub fn printable(text: &str) -> String {
    let mut printed = String::with_capacity(text.len());
    for c in text.chars().take(MAX_CHARS) {
        match is_printable(c) {
            true => printed.push(c),
            false => printed.extend(c.escape_default()),
        }
    }
    printed
}

/// Returns true for a character that has columns of its own, in the order of the text.
fn is_printable(c: char) -> bool {
    // Controls have no width; combining characters, joiners and marks of direction have the width 0.
    let has_columns = c.width().is_some_and(|columns| columns > 0);
    has_columns && !MERGING.iter().chain(&RIGHT_TO_LEFT).any(|(first, last)| (*first..=*last).contains(&c))
}

/// Characters with a width that terminals join with the one before or after: Hangul jamo, flags, skin tones, and
/// private use, whose width only a font knows.
const MERGING: [(char, char); 8] = [
    ('\u{1100}', '\u{11ff}'),
    ('\u{a960}', '\u{a97f}'),
    ('\u{d7b0}', '\u{d7ff}'),
    ('\u{e000}', '\u{f8ff}'),
    ('\u{1f1e6}', '\u{1f1ff}'),
    ('\u{1f3fb}', '\u{1f3ff}'),
    ('\u{f0000}', '\u{ffffd}'),
    ('\u{100000}', '\u{10ffff}'),
];

/// Scripts from right to left: a terminal that orders them would also move the numbers beside a name.
const RIGHT_TO_LEFT: [(char, char); 5] = [
    ('\u{590}', '\u{8ff}'),
    ('\u{fb1d}', '\u{fdff}'),
    ('\u{fe70}', '\u{feff}'),
    ('\u{10800}', '\u{10fff}'),
    ('\u{1e800}', '\u{1efff}'),
];

/// The maximum number of characters that are read of a text: more fit on no screen.
const MAX_CHARS: usize = 1000;

#[cfg(test)]
mod tests {
    use super::printable;

    #[test]
    fn hostile_characters_are_escaped() {
        for (name, printed) in [
            ("qwen3-8b", "qwen3-8b"),
            ("größe 模型", "größe 模型"),
            ("\u{1b}[2J\u{1b}]0;x\u{7}", "\\u{1b}[2J\\u{1b}]0;x\\u{7}"),
            ("a\r\nb\tc", "a\\r\\nb\\tc"),
            ("\u{9b}31m", "\\u{9b}31m"),
            ("\u{202e}evil", "\\u{202e}evil"),
            ("a\u{301}\u{301}", "a\\u{301}\\u{301}"),
            ("שלום", "\\u{5e9}\\u{5dc}\\u{5d5}\\u{5dd}"),
            ("👩\u{200d}💻", "👩\\u{200d}💻"),
            ("🇩🇪👍🏽", "\\u{1f1e9}\\u{1f1ea}👍\\u{1f3fd}"),
            ("", ""),
        ] {
            assert_eq!(printable(name), printed, "{name:?}");
        }
    }
}
