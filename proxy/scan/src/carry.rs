//! The buffer for a key, a number or a captured string that is split between two slices or has escapes.

use crate::limits::CARRY_BYTES;

/// A split key, number or captured string; `cut` if it is longer than the buffer.
#[derive(Debug)]
pub(crate) struct Carry {
    bytes: [u8; CARRY_BYTES],
    pub(crate) len: usize,
    pub(crate) cut: bool,
}

impl Carry {
    pub(crate) fn new() -> Self {
        Self { bytes: [0; CARRY_BYTES], len: 0, cut: false }
    }

    pub(crate) fn clear(&mut self) {
        self.len = 0;
        self.cut = false;
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let room = CARRY_BYTES - self.len;
        let take = bytes.len().min(room);
        self.bytes[self.len..self.len + take].copy_from_slice(&bytes[..take]);
        self.len += take;
        self.cut |= take < bytes.len();
    }

    pub(crate) fn word(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Replaces the escapes by their characters, in place: no complete escape is shorter than its text. An
    /// escape that the buffer's end cut short is left out if its text does not fit.
    pub(crate) fn unescape(&mut self) {
        let (mut from, mut to) = (0, 0);
        while from < self.len {
            if self.bytes[from] != b'\\' || from + 1 == self.len {
                self.bytes[to] = self.bytes[from];
                (from, to) = (from + 1, to + 1);
                continue;
            }
            let plain = match self.bytes[from + 1] {
                b'n' => '\n',
                b't' => '\t',
                b'r' => '\r',
                b'b' => '\u{8}',
                b'f' => '\u{c}',
                b'u' => {
                    let (character, used) = unicode(&self.bytes[from..self.len]);
                    from += used - 2;
                    character
                }
                other => char::from(other),
            };
            from += 2;
            if to + plain.len_utf8() > CARRY_BYTES {
                break;
            }
            to += plain.encode_utf8(&mut self.bytes[to..]).len();
        }
        self.len = to;
    }
}

/// Reads `\uXXXX` or a surrogate pair; a lone surrogate becomes the replacement character.
fn unicode(bytes: &[u8]) -> (char, usize) {
    let unit = |at: usize| {
        let digits = bytes.get(at..at + 6).filter(|d| d.starts_with(b"\\u"))?;
        u16::from_str_radix(std::str::from_utf8(&digits[2..]).ok()?, 16).ok()
    };
    let Some(first) = unit(0) else { return (char::REPLACEMENT_CHARACTER, bytes.len().clamp(2, 6)) };
    let pair = [first, unit(6).unwrap_or(0)];
    match char::decode_utf16(pair).next() {
        Some(Ok(character)) if character.len_utf16() == 2 => (character, 12),
        Some(Ok(character)) => (character, 6),
        _ => (char::REPLACEMENT_CHARACTER, 6),
    }
}
