//! The text of an answer, kept for a local tokenizer where the server reports no count. Off by default and
//! bounded; a longer text is discarded, and its content is never logged.

use std::fmt;

use crate::field::Field;

/// The insides of a body's measured strings, joined, with their escapes.
pub(crate) struct TextBuffer {
    bytes: Vec<u8>,
    max_bytes: usize,
    complete: bool,
    /// Start of the current frame in it.
    frame: usize,
    /// The current frame had reasoning text.
    has_reasoning: bool,
    /// The current string repeats it under its other name.
    is_repetition: bool,
}

impl TextBuffer {
    /// A buffer of at most `max_bytes`.
    pub(crate) fn new(max_bytes: usize) -> Self {
        Self {
            bytes: Vec::new(),
            max_bytes,
            complete: true,
            frame: 0,
            has_reasoning: false,
            is_repetition: false,
        }
    }

    /// Starts a string of `field`. A server with both names of reasoning sends the same text twice.
    pub(crate) fn begin(&mut self, field: Field) {
        self.is_repetition = field == Field::Reasoning && std::mem::replace(&mut self.has_reasoning, true);
    }

    /// Adds a part of the string. Above the limit the complete text is discarded: the count of a part would be
    /// wrong.
    pub(crate) fn push(&mut self, piece: &[u8]) {
        if self.is_repetition {
            return;
        }
        self.complete &= self.bytes.len() + piece.len() <= self.max_bytes;
        if self.complete {
            self.bytes.extend_from_slice(piece);
        } else {
            self.bytes = Vec::new();
        }
    }

    /// Ends the current frame. A torn or unreadable frame is discarded.
    pub(crate) fn end_frame(&mut self, is_complete: bool) {
        if !is_complete {
            self.bytes.truncate(self.frame);
        }
        self.frame = self.bytes.len();
        self.has_reasoning = false;
    }

    /// The complete text; `None` if it was too long.
    pub(crate) fn into_bytes(self) -> Option<Vec<u8>> {
        self.complete.then_some(self.bytes)
    }
}

impl fmt::Debug for TextBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TextBuffer").field("bytes", &self.bytes.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(buffer: &mut TextBuffer, field: Field, text: &str) {
        buffer.begin(field);
        buffer.push(text.as_bytes());
    }

    #[test]
    fn text_is_kept_once_and_completely_or_discarded() {
        let mut buffer = TextBuffer::new(8);
        push(&mut buffer, Field::Reasoning, "ab");
        push(&mut buffer, Field::Reasoning, "ab");
        push(&mut buffer, Field::Content, "c");
        buffer.end_frame(true);
        push(&mut buffer, Field::Content, "torn");
        buffer.end_frame(false);
        push(&mut buffer, Field::Reasoning, "d");
        buffer.end_frame(true);
        assert!(!format!("{buffer:?}").contains("abc"));
        assert_eq!(buffer.into_bytes().as_deref(), Some(&b"abcd"[..]));

        let mut buffer = TextBuffer::new(3);
        push(&mut buffer, Field::Content, "abcd");
        push(&mut buffer, Field::Content, "e");
        buffer.end_frame(true);
        assert_eq!(buffer.into_bytes(), None);
    }
}
