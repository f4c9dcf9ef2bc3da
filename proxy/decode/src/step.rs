//! The result of one step of a coding. Each coding's `step` reads some input, writes some output, and does
//! at least one of them while there is input and output space.

/// The result of one step.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Step {
    /// Bytes of the input that were consumed.
    pub(crate) read: usize,
    /// Bytes of the output that are valid.
    pub(crate) written: usize,
    /// The bytes after these cannot be decoded.
    pub(crate) broken: bool,
}

impl Step {
    /// A step that only consumed input.
    pub(crate) fn took(read: usize) -> Self {
        Self { read, ..Self::default() }
    }

    /// A step that found invalid input.
    pub(crate) const BROKEN: Self = Self { read: 0, written: 0, broken: true };
}
