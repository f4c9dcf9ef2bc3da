//! The text of a cell. Names are text of clients, and a terminal or a spreadsheet that shows the file would execute a
//! control character, or write what follows a mark of direction backwards.

use std::borrow::Cow;

/// Escapes the control characters and the marks of direction (`\u{1b}`).
pub(crate) fn plain(text: &str) -> Cow<'_, str> {
    if !text.contains(is_invisible) {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    for character in text.chars() {
        match is_invisible(character) {
            true => plain.extend(character.escape_unicode()),
            false => plain.push(character),
        }
    }
    Cow::Owned(plain)
}

/// Returns true for a control character, a separator of lines, and a mark of direction (Unicode's UAX #9).
fn is_invisible(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn invisible_characters_are_escaped() {
        assert_eq!(plain("a\0b\u{1b}[31m\u{202e}c\u{9b}\n"), "a\\u{0}b\\u{1b}[31m\\u{202e}c\\u{9b}\\u{a}");
        for name in
            ["", "gpt-4o", "Qwen/Qwen3", "größe", "模型", "cafe\u{301}", "👩\u{200d}💻", "\"quoted\" \\"]
        {
            assert_eq!(plain(name), name);
        }
    }
}
