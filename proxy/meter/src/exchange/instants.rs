//! The ticks at which parts of the answer arrived first.

use crate::Tick;

/// The ticks of the first of each kind.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FirstTicks {
    /// A byte of the body.
    pub(super) byte: Option<Tick>,
    /// A token of any kind.
    pub(super) token: Option<Tick>,
    /// A part of a tool call.
    pub(super) tool: Option<Tick>,
}

/// The visible text.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct VisibleText {
    pub(super) chars: u64,
    span: Option<VisibleSpan>,
}

/// The time in which visible text came.
#[derive(Clone, Copy, Debug)]
struct VisibleSpan {
    first: Tick,
    last: Tick,
    /// Characters of the first delta, which were generated before it arrived.
    first_chars: u64,
}

impl VisibleText {
    pub(super) fn add(&mut self, chars: u64, at: Tick) {
        self.chars += chars;
        self.span.get_or_insert(VisibleSpan { first: at, last: at, first_chars: chars }).last = at;
    }

    /// The tick of the first delta.
    pub(super) fn first(&self) -> Option<Tick> {
        self.span.map(|span| span.first)
    }

    /// The characters after the first delta, and the nanoseconds in which they came.
    pub(super) fn paced(&self) -> (u64, u64) {
        match self.span {
            Some(span) => (self.chars - span.first_chars, span.last.since(span.first)),
            None => (0, 0),
        }
    }
}
