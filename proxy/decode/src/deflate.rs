//! `deflate`: the name means zlib's wrapper (RFC 1950), but some servers send the bare stream of
//! RFC 1951. The first byte tells: zlib's has 8 in its low half, and a bare stream would need a
//! stored block whose padding is not zero, which no encoder writes.

use flate2::{Decompress, FlushDecompress, Status};

use crate::step::Step;

/// A `deflate` body.
#[derive(Debug)]
pub(crate) struct Deflate {
    at: At,
}

#[derive(Debug)]
enum At {
    Start,
    Inside(Decompress),
    /// Anything that follows is ignored.
    End,
}

impl Deflate {
    pub(crate) fn new() -> Self {
        Self { at: At::Start }
    }

    pub(crate) fn step(&mut self, input: &[u8], output: &mut [u8]) -> Step {
        if let (At::Start, Some(first)) = (&self.at, input.first()) {
            let zlib = first & 0x0f == 8 && first >> 4 <= 7;
            self.at = At::Inside(Decompress::new(zlib));
        }
        match &mut self.at {
            At::Inside(inner) => {
                let (step, ended) = inflate(inner, input, output);
                if ended {
                    self.at = At::End;
                }
                step
            }
            At::Start | At::End => Step::took(input.len()),
        }
    }

    pub(crate) fn is_whole(&self) -> bool {
        !matches!(self.at, At::Inside(_))
    }
}

/// One step of RFC 1951, and whether it was the last.
pub(crate) fn inflate(inner: &mut Decompress, input: &[u8], output: &mut [u8]) -> (Step, bool) {
    let (read_before, written_before) = (inner.total_in(), inner.total_out());
    let status = inner.decompress(input, output, FlushDecompress::None);
    // An error tells no counts of its own, but the totals include what came before it.
    let step = Step {
        read: (inner.total_in() - read_before) as usize,
        written: (inner.total_out() - written_before) as usize,
        broken: status.is_err(),
    };
    (step, matches!(status, Ok(Status::StreamEnd)))
}
