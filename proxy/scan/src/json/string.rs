//! Strings: their use and their end. Most keys and values are too short for a call of a vectorised search to pay, so
//! the first bytes are compared eight at a time.

use memchr::memchr2;

use super::{Expects, Json, Value, Visit, is_unknown};
use crate::field::{Field, Fields, NOWHERE, UNKNOWN_TOKENS};
use crate::limits::CARRY_BYTES;
use crate::text::{Escape, Text, chars};

/// The use of a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Key,
    Capture,
    Measure,
    Presence,
    Skip,
    /// Like [`Role::Skip`], below [`MAX_DEPTH`](crate::limits::MAX_DEPTH).
    Deeper,
}

impl Role {
    /// Returns the use of a string value of this field.
    #[inline]
    pub(super) fn of(field: Field) -> Self {
        match field {
            Field::Intermediate => Self::Skip,
            field if field.is_measured() => Self::Measure,
            field if field.is_presence_only() => Self::Presence,
            _ => Self::Capture,
        }
    }
}

impl Json {
    pub(super) fn begin_string(&mut self, role: Role) {
        self.text = Text::default();
        self.carry.clear();
        (self.expects, self.role) = (Expects::String, role);
    }

    /// Begins a string whose bytes were searched for its first quote or backslash. Returns the offset at which reading
    /// continues, so that each byte is searched once.
    pub(super) fn begin_searched(
        &mut self,
        role: Role,
        bytes: &[u8],
        began: usize,
        stop: Option<usize>,
    ) -> usize {
        self.begin_string(role);
        let end = stop.map_or(bytes.len(), |stop| began + stop);
        if role == Role::Measure && began < end {
            self.text.plain(&bytes[began..end]);
        }
        if stop.is_none() {
            // Stores the part that the next slice continues.
            self.read_string(bytes, end, began);
        }
        end
    }

    /// Reads a string value that is whole in its slice and has no escape. `at` is its offset in the caller's buffer.
    #[inline]
    pub(super) fn whole_string(&mut self, field: Field, text: &[u8], at: usize, visit: &mut impl Visit) {
        let role = Role::of(field);
        if role != Role::Skip {
            let value = match role {
                Role::Measure => {
                    self.keep(role, text);
                    Value::Text { chars: chars(text) }
                }
                // A string of which only the presence matters has no character count.
                Role::Presence => Value::Text { chars: 0 },
                _ => Value::Word(&text[..text.len().min(CARRY_BYTES)]),
            };
            visit.value(field, value, Some((at, at + text.len())));
        }
        self.after_value();
    }

    /// Reads on inside a string. Returns the offset of its closing quote, if it is in this slice; otherwise
    /// buffers the part that is needed.
    pub(super) fn read_string(&mut self, bytes: &[u8], mut at: usize, began: usize) -> Option<usize> {
        let role = self.role;
        while at < bytes.len() {
            if self.text.escape == Escape::No {
                let stop = stop(&bytes[at..]).map_or(bytes.len(), |n| at + n);
                if role == Role::Measure && stop > at {
                    self.text.plain(&bytes[at..stop]);
                }
                match bytes.get(stop) {
                    Some(b'"') => return Some(stop),
                    Some(_) => {
                        self.text.escape = Escape::Begun;
                        self.text.escaped = true;
                        at = stop + 1;
                    }
                    None => break,
                }
            } else if self.text.escape_byte(bytes[at]) {
                at += 1;
            }
        }
        if matches!(role, Role::Key | Role::Capture) {
            self.carry.push(&bytes[began..]);
        }
        self.keep(role, &bytes[began..]);
        self.text.torn = true;
        None
    }

    fn keep(&mut self, role: Role, piece: &[u8]) {
        if role == Role::Measure
            && let Some(buffer) = &mut self.text_buffer
        {
            buffer.push(piece);
        }
    }

    /// Ends a string. `tail` is its part in this slice; the rest is in the carry buffer.
    pub(super) fn end_string(
        &mut self,
        fields: &Fields,
        tail: &[u8],
        tail_at: usize,
        visit: &mut impl Visit,
    ) {
        let span = (!self.text.torn).then_some((tail_at, tail_at + tail.len()));
        let role = self.role;
        match role {
            Role::Skip => self.after_value(),
            Role::Deeper => self.expects = Expects::Deeper,
            // A string of which only the presence matters has no character count.
            Role::Measure | Role::Presence => {
                self.keep(role, tail);
                let chars = self.text.chars;
                visit.value(fields.field(self.node), Value::Text { chars }, span);
                self.after_value();
            }
            Role::Key | Role::Capture => {
                let word = if self.text.torn || self.text.escaped {
                    self.carry.push(tail);
                    self.carry.unescape();
                    self.carry.word()
                } else {
                    &tail[..tail.len().min(CARRY_BYTES)]
                };
                if role == Role::Capture {
                    let field = fields.field(self.node);
                    let value = match self.carry.cut && field.is_exact() {
                        true => Value::Null,
                        false => Value::Word(word),
                    };
                    visit.value(field, value, span);
                    self.after_value();
                } else {
                    let node = if self.carry.cut { NOWHERE } else { self.member(fields, word) };
                    if is_unknown(node) {
                        visit.unknown(word, self.is_in_unknown(), node == UNKNOWN_TOKENS);
                    }
                    self.node = node;
                    self.expects = Expects::Colon;
                }
            }
        }
    }
}

/// Words that are compared before the vectorised search.
const WORDS: usize = 4;
const BYTES: usize = size_of::<u64>();

/// Returns the offset of the first quote or backslash.
#[inline]
pub(super) fn stop(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    for word in bytes.chunks_exact(BYTES).take(WORDS) {
        let word = u64::from_le_bytes(word.try_into().expect("a chunk has eight bytes"));
        let found = zeros(word ^ repeated(b'"')) | zeros(word ^ repeated(b'\\'));
        if found != 0 {
            return Some(at + found.trailing_zeros() as usize / 8);
        }
        at += BYTES;
    }
    memchr2(b'"', b'\\', &bytes[at..]).map(|offset| at + offset)
}

const fn repeated(byte: u8) -> u64 {
    u64::from_ne_bytes([byte; BYTES])
}

/// Sets the highest bit of the lowest zero byte. Bytes above it may be marked without being zero, none below it.
const fn zeros(word: u64) -> u64 {
    word.wrapping_sub(repeated(1)) & !word & repeated(0x80)
}

#[cfg(test)]
mod tests {
    use super::stop;

    #[test]
    fn stop_is_the_first_quote_or_backslash() {
        // Bytes that differ from both by one bit or by one, and those with the highest bit.
        let others = [b'!', b'#', b'[', b']', b' ', 0, 1, 0x7f, 0x80, 0xa2, 0xdc, 0xff];
        for len in 0..80 {
            for seed in 0..12 {
                let mut bytes: Vec<u8> = (0..len).map(|at| others[(at * 7 + seed) % others.len()]).collect();
                assert_eq!(stop(&bytes), None);
                for at in (0..len).rev() {
                    let (mark, other) = if at % 2 == 0 { (b'"', b'\\') } else { (b'\\', b'"') };
                    bytes[at] = mark;
                    assert_eq!(stop(&bytes), Some(at));
                    bytes[at] = other;
                }
            }
        }
    }
}
