//! One body through one coding: step by step, within the budget, until it ends or is given up.

use crate::brotli::Brotli;
use crate::budget::{Budget, GaveUp};
use crate::coding::Coding;
use crate::deflate::Deflate;
use crate::gzip::Gzip;
use crate::limits::PIECE_BYTES;
use crate::zstd::Zstd;

/// Decodes a side copy of one body.
#[derive(Debug)]
pub struct Decoder {
    state: State,
    budget: Budget,
    /// Where a step writes; empty once given up.
    piece: Box<[u8]>,
}

#[derive(Debug)]
enum State {
    Gzip(Gzip),
    Deflate(Deflate),
    Brotli(Brotli),
    Zstd(Zstd),
    GaveUp(GaveUp),
}

impl Decoder {
    /// A decoder for one body in `coding`.
    pub fn new(coding: Coding) -> Self {
        let state = match coding {
            Coding::Gzip => State::Gzip(Gzip::new()),
            Coding::Deflate => State::Deflate(Deflate::new()),
            Coding::Brotli => State::Brotli(Brotli::new()),
            Coding::Zstd => Zstd::new().map_or(State::GaveUp(GaveUp::Size), State::Zstd),
        };
        Self { state, budget: Budget::default(), piece: vec![0; PIECE_BYTES].into_boxed_slice() }
    }

    /// Takes the body's next slice and hands on, in pieces of at most [`PIECE_BYTES`], all that can be
    /// decoded with it. Bytes after the body's own end are ignored, but for zstd, where only another
    /// frame may follow.
    ///
    /// # Errors
    ///
    /// Gave up, now or earlier. What was handed on before is good, and there will be no more; calling
    /// again costs nothing and says the same.
    pub fn feed(&mut self, mut bytes: &[u8], out: &mut dyn FnMut(&[u8])) -> Result<(), GaveUp> {
        self.budget.next_slice();
        while !bytes.is_empty() {
            let (read, room_left) = self.step(bytes, out)?;
            bytes = &bytes[read..];
            if bytes.is_empty() && !room_left {
                // The last step filled its piece, so the coding may hold more.
                while !self.step(&[], out)?.1 {}
            }
        }
        self.gave_up().map_or(Ok(()), Err)
    }

    /// The body is over.
    ///
    /// # Errors
    ///
    /// Gave up earlier, or the body is cut off before its end. An empty body is whole: it is what
    /// an answer without content has.
    pub fn end(&mut self) -> Result<(), GaveUp> {
        let whole = match &self.state {
            State::Gzip(gzip) => gzip.is_whole(),
            State::Deflate(deflate) => deflate.is_whole(),
            State::Brotli(brotli) => brotli.is_whole(),
            State::Zstd(zstd) => zstd.is_whole(),
            State::GaveUp(why) => return Err(*why),
        };
        if whole { Ok(()) } else { self.give_up(GaveUp::Broken) }
    }

    /// Why it gave up, if it did.
    pub fn gave_up(&self) -> Option<GaveUp> {
        match self.state {
            State::GaveUp(why) => Some(why),
            _ => None,
        }
    }

    /// One step: how much of `bytes` it took, and whether the piece had room left.
    fn step(&mut self, bytes: &[u8], out: &mut dyn FnMut(&[u8])) -> Result<(usize, bool), GaveUp> {
        let step = match &mut self.state {
            State::Gzip(gzip) => gzip.step(bytes, &mut self.piece),
            State::Deflate(deflate) => deflate.step(bytes, &mut self.piece),
            State::Brotli(brotli) => brotli.step(bytes, &mut self.piece),
            State::Zstd(zstd) => zstd.step(bytes, &mut self.piece),
            State::GaveUp(why) => return Err(*why),
        };
        if let Err(why) = self.budget.spend(step.read, step.written) {
            return self.give_up(why).map(|()| (0, true));
        }
        if step.written > 0 {
            out(&self.piece[..step.written]);
        }
        // A coding that neither takes nor gives would be asked for ever.
        let stuck = step.read == 0 && step.written == 0 && !bytes.is_empty();
        if step.broken || stuck {
            return self.give_up(GaveUp::Broken).map(|()| (0, true));
        }
        Ok((step.read, step.written < self.piece.len()))
    }

    /// Lets go of windows and piece.
    fn give_up(&mut self, why: GaveUp) -> Result<(), GaveUp> {
        self.state = State::GaveUp(why);
        self.piece = Box::default();
        Err(why)
    }
}
