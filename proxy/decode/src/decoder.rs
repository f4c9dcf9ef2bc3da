//! The decoder of one body in one coding: step by step, within its budget, until the body ends or is given
//! up.

use crate::brotli::Brotli;
use crate::budget::{Budget, DecodeError};
use crate::coding::Coding;
use crate::deflate::Deflate;
use crate::gzip::Gzip;
use crate::limits::PIECE_MAX_BYTES;
use crate::zstd::Zstd;

/// Decodes a copy of one body.
#[derive(Debug)]
pub struct Decoder {
    state: State,
    budget: Budget,
    /// The output buffer of a step; empty once given up.
    piece: Box<[u8]>,
}

#[derive(Debug)]
enum State {
    Gzip(Gzip),
    Deflate(Deflate),
    Brotli(Brotli),
    Zstd(Zstd),
    Failed(DecodeError),
}

impl Decoder {
    /// A decoder for one body in `coding`.
    pub fn new(coding: Coding) -> Self {
        let state = match coding {
            Coding::Gzip => State::Gzip(Gzip::new()),
            Coding::Deflate => State::Deflate(Deflate::new()),
            Coding::Brotli => State::Brotli(Brotli::new()),
            Coding::Zstd => Zstd::new().map_or(State::Failed(DecodeError::Size), State::Zstd),
        };
        Self { state, budget: Budget::default(), piece: vec![0; PIECE_MAX_BYTES].into_boxed_slice() }
    }

    /// Decodes the next slice of the body and passes on everything that is complete with it, in pieces of at
    /// most [`PIECE_MAX_BYTES`]. Bytes after the end of the body are ignored, except for zstd, where only
    /// another frame may follow.
    ///
    /// # Errors
    ///
    /// Returns an error if decoding was given up, now or earlier. The output before that is valid and there
    /// is no more of it; further calls return the same error.
    pub fn feed(&mut self, mut bytes: &[u8], out: &mut dyn FnMut(&[u8])) -> Result<(), DecodeError> {
        self.budget.next_slice();
        while !bytes.is_empty() {
            let (read, space_left) = self.step(bytes, out)?;
            bytes = &bytes[read..];
            if bytes.is_empty() && !space_left {
                // The last step filled its piece, so the coding may hold more.
                while !self.step(&[], out)?.1 {}
            }
        }
        self.gave_up().map_or(Ok(()), Err)
    }

    /// Ends the body.
    ///
    /// # Errors
    ///
    /// Returns an error if decoding was given up earlier, or if the body is cut off before its end. An empty
    /// body is complete: a response without content has one.
    pub fn end(&mut self) -> Result<(), DecodeError> {
        let whole = match &self.state {
            State::Gzip(gzip) => gzip.is_whole(),
            State::Deflate(deflate) => deflate.is_whole(),
            State::Brotli(brotli) => brotli.is_whole(),
            State::Zstd(zstd) => zstd.is_whole(),
            State::Failed(why) => return Err(*why),
        };
        if whole { Ok(()) } else { self.give_up(DecodeError::Broken) }
    }

    /// The reason decoding was given up, if it was.
    pub fn gave_up(&self) -> Option<DecodeError> {
        match self.state {
            State::Failed(why) => Some(why),
            _ => None,
        }
    }

    /// Runs one step. Returns the number of bytes read from `bytes`, and true if the piece had space left.
    fn step(&mut self, bytes: &[u8], out: &mut dyn FnMut(&[u8])) -> Result<(usize, bool), DecodeError> {
        let step = match &mut self.state {
            State::Gzip(gzip) => gzip.step(bytes, &mut self.piece),
            State::Deflate(deflate) => deflate.step(bytes, &mut self.piece),
            State::Brotli(brotli) => brotli.step(bytes, &mut self.piece),
            State::Zstd(zstd) => zstd.step(bytes, &mut self.piece),
            State::Failed(why) => return Err(*why),
        };
        if let Err(why) = self.budget.spend(step.read, step.written) {
            return self.give_up(why).map(|()| (0, true));
        }
        if step.written > 0 {
            out(&self.piece[..step.written]);
        }
        // A step that neither reads nor writes would repeat forever.
        let stuck = step.read == 0 && step.written == 0 && !bytes.is_empty();
        if step.broken || stuck {
            return self.give_up(DecodeError::Broken).map(|()| (0, true));
        }
        Ok((step.read, step.written < self.piece.len()))
    }

    /// Frees the window and the piece.
    fn give_up(&mut self, why: DecodeError) -> Result<(), DecodeError> {
        self.state = State::Failed(why);
        self.piece = Box::default();
        Err(why)
    }
}
