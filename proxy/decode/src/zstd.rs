//! `zstd` (RFC 8878): a sequence of frames, skippable ones among them.
//!
//! The library is the C one: the current pure Rust decoders hold back up to a window of output until the
//! frame ends, which would lose the timing of a stream.

use std::fmt;

use zstd_safe::{DCtx, DParameter, InBuffer, OutBuffer};

use crate::limits::ZSTD_MAX_WINDOW_LOG;
use crate::step::Step;

/// A `zstd` body.
pub(crate) struct Zstd {
    context: DCtx<'static>,
    /// Bytes that the library requests next, which end with a block; 0 between two frames. It is given no
    /// more than that at once, because an error discards the valid blocks before it.
    next_input_bytes: usize,
}

impl Zstd {
    /// Returns `None` if there is no memory for the context.
    pub(crate) fn new() -> Option<Self> {
        let mut context = DCtx::try_create()?;
        context.set_parameter(DParameter::WindowLogMax(ZSTD_MAX_WINDOW_LOG)).ok()?;
        Some(Self { context, next_input_bytes: 0 })
    }

    pub(crate) fn step(&mut self, input: &[u8], output: &mut [u8]) -> Step {
        if input.is_empty() && self.next_input_bytes == 0 {
            // The library holds no output; a call now would make it request another frame.
            return Step::default();
        }
        let given = input.len().min(self.next_input_bytes.max(1));
        let mut input = InBuffer::around(&input[..given]);
        let mut output = OutBuffer::around(output);
        let result = self.context.decompress_stream(&mut output, &mut input);
        if let Ok(bytes) = result {
            self.next_input_bytes = bytes;
        }
        Step { read: input.pos(), written: output.pos(), broken: result.is_err() }
    }

    pub(crate) fn is_whole(&self) -> bool {
        self.next_input_bytes == 0
    }
}

impl fmt::Debug for Zstd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Zstd").field("next_input_bytes", &self.next_input_bytes).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_bounded_by_the_largest_window() {
        // Frame headers without content size; the window's logarithm is 10 + the descriptor's upper five
        // bits. 64 decoded bytes of a raw block follow.
        let feed = |window_log: u8| {
            let mut zstd = Zstd::new().expect("memory");
            let block =
                [[0x28, 0xb5, 0x2f, 0xfd, 0, (window_log - 10) << 3, 0, 2, 0].as_slice(), &[b'x'; 64]]
                    .concat();
            let (mut output, mut at, mut written) = ([0; 100], 0, 0);
            loop {
                let step = zstd.step(&block[at..], &mut output);
                (at, written) = (at + step.read, written + step.written);
                if step.broken || at == block.len() {
                    return (written, step.broken, zstd.context.sizeof());
                }
            }
        };
        let (written, broken, size) = feed(23);
        assert_eq!((written, broken), (64, false));
        assert!((8 << 20..9 << 20).contains(&size), "{size} bytes");
        let (written, broken, size) = feed(24);
        assert_eq!((written, broken), (0, true));
        assert!(size < 1 << 20, "{size} bytes");
    }
}
