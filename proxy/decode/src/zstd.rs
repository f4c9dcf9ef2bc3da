//! `zstd` (RFC 8878): frames one after the other, skippable ones among them.
//!
//! The library is the C one: the pure Rust decoders of today hold a window's worth of output back until
//! their frame ends, which would take the timing from a stream.

use std::fmt;

use zstd_safe::{DCtx, DParameter, InBuffer, OutBuffer};

use crate::limits::ZSTD_WINDOW_LOG;
use crate::step::Step;

/// A `zstd` body.
pub(crate) struct Zstd {
    context: DCtx<'static>,
    /// Bytes the library wants next, which end with a block; 0 between two frames. It is shown no
    /// more than that at once, because an error would swallow the good blocks before it.
    wants: usize,
}

impl Zstd {
    /// `None` if there is no memory for it.
    pub(crate) fn new() -> Option<Self> {
        let mut context = DCtx::try_create()?;
        context.set_parameter(DParameter::WindowLogMax(ZSTD_WINDOW_LOG)).ok()?;
        Some(Self { context, wants: 0 })
    }

    pub(crate) fn step(&mut self, input: &[u8], output: &mut [u8]) -> Step {
        if input.is_empty() && self.wants == 0 {
            // Nothing is held; asked now, the library would begin to want another frame.
            return Step::default();
        }
        let shown = input.len().min(self.wants.max(1));
        let mut input = InBuffer::around(&input[..shown]);
        let mut output = OutBuffer::around(output);
        let result = self.context.decompress_stream(&mut output, &mut input);
        if let Ok(wants) = result {
            self.wants = wants;
        }
        Step { read: input.pos(), written: output.pos(), broken: result.is_err() }
    }

    pub(crate) fn is_whole(&self) -> bool {
        self.wants == 0
    }
}

impl fmt::Debug for Zstd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Zstd").field("wants", &self.wants).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_window_is_what_memory_is_bounded_by() {
        // Frame headers without content size; the window's logarithm is 10 + the descriptor's upper
        // five bits. 64 decoded bytes of a raw block follow.
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
