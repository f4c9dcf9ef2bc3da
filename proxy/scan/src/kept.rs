//! The answer's text, kept for somebody who can count it where its server does not. Off unless it is
//! asked for, and then bounded; more than that is kept of nobody (law 11).

/// The insides of the measured strings of a body, one after the other, escapes as they stand.
#[derive(Debug)]
pub(crate) struct Kept {
    bytes: Vec<u8>,
    most: usize,
    whole: bool,
}

impl Kept {
    /// Keeps at most so many bytes.
    pub(crate) fn new(most: usize) -> Self {
        Self { bytes: Vec::new(), most, whole: true }
    }

    /// Adds a piece. What has no room empties it for good: a part of a text counts for nothing.
    pub(crate) fn push(&mut self, piece: &[u8]) {
        self.whole &= self.bytes.len() + piece.len() <= self.most;
        if self.whole {
            self.bytes.extend_from_slice(piece);
        } else {
            self.bytes = Vec::new();
        }
    }

    /// All of it; `None` if there was too much.
    pub(crate) fn into_bytes(self) -> Option<Vec<u8>> {
        self.whole.then_some(self.bytes)
    }
}
