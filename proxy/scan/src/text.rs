//! Measures a JSON string in place: its characters, with each escape counted as its character.

/// Progress inside a string.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Text {
    pub(crate) chars: u32,
    pub(crate) escape: Escape,
    /// The last character was a high surrogate.
    pub(crate) high: bool,
    pub(crate) escaped: bool,
    /// A part of the string was in an earlier slice.
    pub(crate) torn: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Escape {
    #[default]
    No,
    /// After a backslash.
    Begun,
    /// Inside `\uXXXX`: digits left, value so far.
    Unicode(u8, u16),
}

impl Text {
    /// Counts the characters of bytes without escapes.
    pub(crate) fn plain(&mut self, bytes: &[u8]) {
        self.chars = self.chars.saturating_add(chars(bytes));
        self.high = false;
    }

    /// Reads one byte of an escape; returns false if the byte is not part of it and must be read again.
    pub(crate) fn escape_byte(&mut self, byte: u8) -> bool {
        match self.escape {
            Escape::No => return false,
            Escape::Begun if byte == b'u' => self.escape = Escape::Unicode(4, 0),
            Escape::Begun => {
                self.escape = Escape::No;
                self.character(false);
            }
            Escape::Unicode(left, value) => {
                let Some(digit) = char::from(byte).to_digit(16) else {
                    // An invalid escape counts as one character; the byte is ordinary text.
                    self.escape = Escape::No;
                    self.character(false);
                    return false;
                };
                let value = value << 4 | digit as u16;
                if left > 1 {
                    self.escape = Escape::Unicode(left - 1, value);
                } else {
                    self.escape = Escape::No;
                    match value {
                        0xDC00..=0xDFFF if self.high => self.high = false,
                        _ => self.character(matches!(value, 0xD800..=0xDBFF)),
                    }
                }
            }
        }
        true
    }

    pub(crate) fn character(&mut self, high: bool) {
        self.chars = self.chars.saturating_add(1);
        self.high = high;
    }
}

/// Counts the Unicode characters of UTF-8 bytes: those that are not continuation bytes.
pub(crate) fn chars(bytes: &[u8]) -> u32 {
    let mut count = 0;
    let mut blocks = bytes.chunks_exact(BLOCK_BYTES);
    for block in &mut blocks {
        let sum = block.iter().fold(0_u8, |sum, byte| sum.wrapping_add(u8::from(is_first(*byte))));
        count += usize::from(sum);
    }
    count += blocks.remainder().iter().filter(|byte| is_first(**byte)).count();
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Bytes of a block: their number fits in one byte, so that the compiler adds vectors of bytes. One wide sum, with its
/// overflow check, takes thirty times as long.
const BLOCK_BYTES: usize = 128;

/// Returns true if the byte begins a character.
fn is_first(byte: u8) -> bool {
    byte & 0xC0 != 0x80
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_counted_at_any_length() {
        let text = "aé€😀".repeat(BLOCK_BYTES);
        for len in (0..3 * BLOCK_BYTES).chain([text.len()]) {
            let bytes = &text.as_bytes()[..len];
            let expected = text.char_indices().filter(|(at, _)| *at < len).count();
            assert_eq!(chars(bytes) as usize, expected, "{len}");
        }
    }
}
