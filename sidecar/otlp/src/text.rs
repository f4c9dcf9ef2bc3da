//! Bounded text.

/// The text up to so many bytes, cut where a character ends.
pub(crate) fn cut(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}
