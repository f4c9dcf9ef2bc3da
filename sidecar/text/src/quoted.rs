//! Untrusted text within a message.

/// Returns `text` cut and escaped, for a message.
pub fn quoted(text: &str) -> String {
    let mut quoted: String = text.chars().take(MAX_QUOTED_CHARS).collect();
    if quoted.len() < text.len() {
        quoted.push('…');
    }
    quoted.escape_debug().to_string()
}

/// Maximum characters that a message repeats.
const MAX_QUOTED_CHARS: usize = 80;
