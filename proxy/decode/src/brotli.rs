//! `br` (RFC 7932). The library discards the output of a slice that contains damage.

use std::fmt;

use brotli_decompressor::{BrotliDecompressStream, BrotliResult, BrotliState, StandardAlloc};

use crate::step::Step;

type State = BrotliState<StandardAlloc, StandardAlloc, StandardAlloc>;

/// A `br` body.
pub(crate) struct Brotli {
    /// `None` after the end of the body; later bytes are ignored. Boxed for its size, 2.5 KiB.
    state: Option<Box<State>>,
    began: bool,
}

impl Brotli {
    pub(crate) fn new() -> Self {
        let alloc = StandardAlloc::default();
        // Strict: no large windows. HTTP's `br` does not have them.
        Self { state: Some(Box::new(State::new_strict(alloc, alloc, alloc))), began: false }
    }

    pub(crate) fn step(&mut self, input: &[u8], output: &mut [u8]) -> Step {
        let Some(state) = &mut self.state else { return Step::took(input.len()) };
        self.began |= !input.is_empty();
        let (mut input_left, mut read) = (input.len(), 0);
        let (mut output_left, mut written) = (output.len(), 0);
        let result = BrotliDecompressStream(
            &mut input_left,
            &mut read,
            input,
            &mut output_left,
            &mut written,
            output,
            &mut 0,
            state,
        );
        if matches!(result, BrotliResult::ResultSuccess) {
            self.state = None;
        }
        Step { read, written, broken: matches!(result, BrotliResult::ResultFailure) }
    }

    pub(crate) fn is_whole(&self) -> bool {
        self.state.is_none() || !self.began
    }
}

impl fmt::Debug for Brotli {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Brotli").field("ended", &self.state.is_none()).finish_non_exhaustive()
    }
}
