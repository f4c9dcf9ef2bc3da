//! How much decoding a body may cost, and the reasons to stop.
//!
//! Two limits, because a bomb and a long stream must not be taken for each other: a stream may decode
//! to any total as long as its ratio is one of text, and a slice may not yield so much that a
//! worker's other streams wait for it. Both are spent before a piece is handed on.

use std::fmt;

use crate::limits::{RATIO, RATIO_FREE_BYTES, SLICE_BYTES};

/// Why a body is no longer decoded. Its bytes pass on as before; the meter sees no more of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GaveUp {
    /// More than [`RATIO`] decoded bytes per encoded byte.
    Ratio,
    /// More than [`SLICE_BYTES`] decoded bytes out of one slice; or there was no memory to begin with.
    Size,
    /// Not what its coding says, damaged, or cut off before its end.
    Broken,
}

impl GaveUp {
    /// One closed word, for a metric's label.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ratio => "ratio",
            Self::Size => "size",
            Self::Broken => "broken",
        }
    }
}

impl fmt::Display for GaveUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ratio => {
                "the body decodes to more than a hundred times its size; it is not decoded further"
            }
            Self::Size => "one slice of the body decodes to more than 8 MiB; it is not decoded further",
            Self::Broken => "the body is damaged, cut off, or not in the coding the server says it is in",
        })
    }
}

impl std::error::Error for GaveUp {}

/// What a body has cost so far.
#[derive(Debug, Default)]
pub(crate) struct Budget {
    encoded: u64,
    decoded: u64,
    decoded_of_slice: u64,
}

impl Budget {
    /// Another slice begins.
    pub(crate) fn next_slice(&mut self) {
        self.decoded_of_slice = 0;
    }

    /// Counts a step, and says whether its output may still be handed on.
    pub(crate) fn spend(&mut self, read: usize, written: usize) -> Result<(), GaveUp> {
        self.encoded = self.encoded.saturating_add(read as u64);
        self.decoded = self.decoded.saturating_add(written as u64);
        self.decoded_of_slice = self.decoded_of_slice.saturating_add(written as u64);
        if self.decoded > RATIO_FREE_BYTES && self.decoded > self.encoded.saturating_mul(RATIO) {
            Err(GaveUp::Ratio)
        } else if self.decoded_of_slice > SLICE_BYTES {
            Err(GaveUp::Size)
        } else {
            Ok(())
        }
    }
}
