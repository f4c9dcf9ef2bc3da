//! A short word collected over slices, in place. A longer one is marked as cut.

/// At most `N` bytes of a word.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Short<const N: usize> {
    bytes: [u8; N],
    len: usize,
    /// The word was longer.
    pub(crate) cut: bool,
}

impl<const N: usize> Short<N> {
    /// Returns the beginning of `word`.
    pub(crate) fn of(word: &[u8]) -> Self {
        let mut short = Self::default();
        short.push(word);
        short
    }

    pub(crate) fn clear(&mut self) {
        self.len = 0;
        self.cut = false;
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let take = bytes.len().min(N - self.len);
        self.bytes[self.len..self.len + take].copy_from_slice(&bytes[..take]);
        self.len += take;
        self.cut |= take < bytes.len();
    }

    /// The collected bytes.
    pub(crate) fn word(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Returns true if the word equals `word` and is not cut.
    pub(crate) fn is(&self, word: &[u8]) -> bool {
        !self.cut && self.word() == word
    }
}

impl<const N: usize> Default for Short<N> {
    fn default() -> Self {
        Self { bytes: [0; N], len: 0, cut: false }
    }
}
