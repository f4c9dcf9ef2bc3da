//! The widths of printable texts in a terminal.

use unicode_width::UnicodeWidthChar;

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

#[cfg(test)]
#[path = "width_tests.rs"]
mod tests;
