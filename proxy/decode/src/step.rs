//! What one step of a coding came to. Each coding's `step` takes some of the input, fills some of the
//! output, and must do one of both as long as there is input and room.

/// One step's account.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Step {
    /// Bytes of the input that need not be shown again.
    pub(crate) read: usize,
    /// Bytes of the output that are good.
    pub(crate) written: usize,
    /// Nothing after them can be decoded.
    pub(crate) broken: bool,
}

impl Step {
    /// Input was taken, and nothing else happened.
    pub(crate) fn took(read: usize) -> Self {
        Self { read, ..Self::default() }
    }

    /// The input is not what it should be.
    pub(crate) const BROKEN: Self = Self { read: 0, written: 0, broken: true };
}
