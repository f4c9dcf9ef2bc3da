//! `deflate`: the name means zlib's wrapper (RFC 1950), but some servers send a bare stream (RFC 1951). The
//! first byte tells them apart: zlib's has 8 in its low half. A bare stream with that byte would begin with
//! a stored block whose padding is not zero, which no encoder writes.

use flate2::{Decompress, FlushDecompress, Status};

use crate::step::Step;

/// A `deflate` body.
#[derive(Debug)]
pub(crate) struct Deflate {
    state: State,
}

#[derive(Debug)]
enum State {
    Start,
    Inside(Decompress),
    /// Later bytes are ignored.
    End,
}

impl Deflate {
    pub(crate) fn new() -> Self {
        Self { state: State::Start }
    }

    pub(crate) fn step(&mut self, input: &[u8], output: &mut [u8]) -> Step {
        if let (State::Start, Some(first)) = (&self.state, input.first()) {
            let zlib = first & 0x0f == 8 && first >> 4 <= 7;
            self.state = State::Inside(Decompress::new(zlib));
        }
        match &mut self.state {
            State::Inside(inner) => {
                let (step, ended) = inflate(inner, input, output);
                if ended {
                    self.state = State::End;
                }
                step
            }
            State::Start | State::End => Step::took(input.len()),
        }
    }

    pub(crate) fn is_whole(&self) -> bool {
        !matches!(self.state, State::Inside(_))
    }
}

/// Runs one step of RFC 1951. Returns true with the last one.
pub(crate) fn inflate(inner: &mut Decompress, input: &[u8], output: &mut [u8]) -> (Step, bool) {
    let (read_before, written_before) = (inner.total_in(), inner.total_out());
    let status = inner.decompress(input, output, FlushDecompress::None);
    // An error carries no counts, but the totals include the bytes before it.
    let step = Step {
        read: (inner.total_in() - read_before) as usize,
        written: (inner.total_out() - written_before) as usize,
        broken: status.is_err(),
    };
    (step, matches!(status, Ok(Status::StreamEnd)))
}
