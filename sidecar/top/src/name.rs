//! Untrusted text for a terminal: names of models, tenants and servers, and messages with them.
//!
//! Law: each character of a printable text moves the cursor one or two columns to the right and does nothing else.
//! Other characters are written as their escapes, so that different names stay different.

use unicode_width::UnicodeWidthChar;

/// Returns the text with every unprintable character escaped, as in `\u{202e}`.
pub(crate) fn printable(text: &str) -> String {
    let mut printed = String::with_capacity(text.len());
    for c in text.chars().take(MAX_CHARS) {
        match is_printable(c) {
            true => printed.push(c),
            false => printed.extend(c.escape_default()),
        }
    }
    printed
}

/// Returns the columns of a printable text.
pub(crate) fn columns(printed: &str) -> usize {
    printed.chars().map(columns_of).sum()
}

/// Returns a printable text cut to at most `most` columns, with `…` in place of its end.
pub(crate) fn shorten(printed: &str, most: usize) -> String {
    if columns(printed) <= most {
        return printed.to_owned();
    }
    let mut left = most.saturating_sub(1);
    let fits = |c: &char| match left.checked_sub(columns_of(*c)) {
        Some(rest) => {
            left = rest;
            true
        }
        None => false,
    };
    let mut text: String = printed.chars().take_while(fits).collect();
    if most > 0 {
        text.push('…');
    }
    text
}

fn columns_of(c: char) -> usize {
    c.width().unwrap_or(0)
}

/// Returns true for a character that has columns of its own, in the order of the text.
fn is_printable(c: char) -> bool {
    // Controls have no width; combining characters, joiners and marks of direction have the width 0.
    let has_columns = columns_of(c) > 0;
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
#[path = "name_tests.rs"]
mod tests;
