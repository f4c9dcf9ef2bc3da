//! The answer's text, kept for somebody who can count it where its server does not. Off unless it is
//! asked for, and then bounded; more than that is kept of nobody, and it is never shown (law 11).

use std::fmt;

use crate::field::Field;

/// The insides of the measured strings of a body, one after the other, escapes as they stand.
pub(crate) struct Kept {
    bytes: Vec<u8>,
    most: usize,
    whole: bool,
    /// Where the frame at hand begins in it.
    frame: usize,
    /// The frame at hand has said what the model thinks.
    reasoned: bool,
    /// The string at hand says it again under its other name.
    again: bool,
}

impl Kept {
    /// Keeps at most so many bytes.
    pub(crate) fn new(most: usize) -> Self {
        Self { bytes: Vec::new(), most, whole: true, frame: 0, reasoned: false, again: false }
    }

    /// A string begins, of this kind. A server that knows both names of reasoning sends the same
    /// text twice.
    pub(crate) fn begin(&mut self, field: Field) {
        self.again = field == Field::Reasoning && std::mem::replace(&mut self.reasoned, true);
    }

    /// Adds a piece of it. What has no room empties all for good: a part of a text counts for
    /// nothing.
    pub(crate) fn push(&mut self, piece: &[u8]) {
        if self.again {
            return;
        }
        self.whole &= self.bytes.len() + piece.len() <= self.most;
        if self.whole {
            self.bytes.extend_from_slice(piece);
        } else {
            self.bytes = Vec::new();
        }
    }

    /// The frame at hand is over. One that is torn or cannot be read said nothing.
    pub(crate) fn end_frame(&mut self, read: bool) {
        if !read {
            self.bytes.truncate(self.frame);
        }
        self.frame = self.bytes.len();
        self.reasoned = false;
    }

    /// All of it; `None` if there was too much.
    pub(crate) fn into_bytes(self) -> Option<Vec<u8>> {
        self.whole.then_some(self.bytes)
    }
}

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kept").field("bytes", &self.bytes.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn say(kept: &mut Kept, field: Field, text: &str) {
        kept.begin(field);
        kept.push(text.as_bytes());
    }

    #[test]
    fn a_text_is_kept_once_and_whole_or_not_at_all() {
        let mut kept = Kept::new(8);
        say(&mut kept, Field::Reasoning, "ab");
        say(&mut kept, Field::Reasoning, "ab");
        say(&mut kept, Field::Content, "c");
        kept.end_frame(true);
        say(&mut kept, Field::Content, "torn");
        kept.end_frame(false);
        say(&mut kept, Field::Reasoning, "d");
        kept.end_frame(true);
        assert!(!format!("{kept:?}").contains("abc"));
        assert_eq!(kept.into_bytes().as_deref(), Some(&b"abcd"[..]));

        let mut kept = Kept::new(3);
        say(&mut kept, Field::Content, "abcd");
        say(&mut kept, Field::Content, "e");
        kept.end_frame(true);
        assert_eq!(kept.into_bytes(), None);
    }
}
