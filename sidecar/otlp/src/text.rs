//! Text truncation.

/// Truncates a text to at most `bytes`, at a character boundary.
pub(crate) fn cut(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}
