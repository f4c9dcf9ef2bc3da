//! The decoding budget of one body, and the reasons to give up.
//!
//! There are two limits, so that a long stream is not taken for a bomb: a stream may decode to any total
//! while its ratio is that of text, and one slice may not yield so much that the worker's other streams
//! wait. Both limits are checked before a piece is passed on.

use crate::limits::{MAX_RATIO, RATIO_FREE_BYTES, SLICE_MAX_BYTES};

/// The reason a body is no longer decoded. Its bytes still reach the client; the meter sees no more of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum DecodeError {
    /// More than [`MAX_RATIO`] decoded bytes per encoded byte.
    #[error("the body decodes to more than a hundred times its size; it is not decoded further")]
    Ratio,
    /// More than [`SLICE_MAX_BYTES`] decoded bytes from one slice, or no memory for the decoder.
    #[error("one slice of the body decodes to more than 8 MiB; it is not decoded further")]
    Size,
    /// Not in the declared coding, damaged, or cut off before its end.
    #[error("the body is damaged, cut off, or not in the coding that Content-Encoding declares")]
    Broken,
}

impl DecodeError {
    /// The value of a metric label.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ratio => "ratio",
            Self::Size => "size",
            Self::Broken => "broken",
        }
    }
}

/// The decoding cost of a body so far, in bytes.
#[derive(Debug, Default)]
pub(crate) struct Budget {
    encoded: u64,
    decoded: u64,
    decoded_of_slice: u64,
}

impl Budget {
    /// Starts the count of a new slice.
    pub(crate) fn next_slice(&mut self) {
        self.decoded_of_slice = 0;
    }

    /// Counts a step. Returns an error if its output exceeds a limit and must not be passed on.
    pub(crate) fn spend(&mut self, read: usize, written: usize) -> Result<(), DecodeError> {
        self.encoded = self.encoded.saturating_add(read as u64);
        self.decoded = self.decoded.saturating_add(written as u64);
        self.decoded_of_slice = self.decoded_of_slice.saturating_add(written as u64);
        if self.decoded > RATIO_FREE_BYTES && self.decoded > self.encoded.saturating_mul(MAX_RATIO) {
            Err(DecodeError::Ratio)
        } else if self.decoded_of_slice > SLICE_MAX_BYTES {
            Err(DecodeError::Size)
        } else {
            Ok(())
        }
    }
}
