//! Lists of words that a request may have in any letter case.

/// Returns true if this word, without the blanks around it, is one of a list.
pub(crate) fn has(list: &[&str], word: &[u8]) -> bool {
    let word = word.trim_ascii();
    list.iter().any(|known| known.as_bytes().eq_ignore_ascii_case(word))
}
