//! The events of a frame that wait for its end: one that the end of the body cuts short keeps its
//! content to itself. A frame with more than [`FRAME_EVENTS`] lets them go early.

use crate::event::{Event, Finish, Piece, Sink, Usage};
use crate::frame::{Chars, Kind};
use crate::limits::FRAME_EVENTS;

/// The events of the frame at hand, in order.
#[derive(Debug)]
pub(crate) struct Queue {
    list: [Held; FRAME_EVENTS],
    len: usize,
    /// The usage [`Held::Usage`] stands for.
    usage: Option<Usage>,
}

/// An event that waits for its frame's end.
#[derive(Clone, Copy, Debug)]
enum Held {
    Role(u32),
    Piece(Kind, Piece),
    Empty(Piece),
    Finish(u32, Finish),
    /// The usage that is ready: a native frame carries one per choice.
    Usage,
}

/// What one answer's part of a frame says.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Said {
    pub(crate) choice: u32,
    pub(crate) chars: Chars,
    pub(crate) tokens: Option<u32>,
    pub(crate) role: bool,
    pub(crate) finish: Option<Finish>,
}

impl Queue {
    pub(crate) fn new() -> Self {
        Self { list: [Held::Role(0); FRAME_EVENTS], len: 0, usage: None }
    }

    /// Forgets what waits.
    pub(crate) fn clear(&mut self) {
        self.len = 0;
        self.usage = None;
    }

    /// The one piece that waits, and the usage that waits with it, if that is all.
    pub(crate) fn single_piece(&self) -> Option<(Kind, Piece, Option<Usage>)> {
        match self.list[..self.len] {
            [Held::Piece(kind, piece)] => Some((kind, piece, None)),
            [Held::Piece(kind, piece), Held::Usage] => Some((kind, piece, self.usage)),
            _ => None,
        }
    }

    /// Whether no content and no sign of a token waits.
    pub(crate) fn is_void(&self) -> bool {
        self.list[..self.len].iter().all(|held| match held {
            Held::Role(_) => true,
            Held::Empty(piece) => piece.tokens.unwrap_or(0) == 0,
            Held::Piece(..) | Held::Finish(..) | Held::Usage => false,
        })
    }

    /// Takes in what one answer says. A frame of no content is a role, an end or an empty delta.
    pub(crate) fn say(&mut self, said: Said, sink: &mut impl Sink) {
        let Said { choice, chars, mut tokens, role, finish } = said;
        let mut content = false;
        for kind in Kind::ALL {
            let chars = chars[kind as usize];
            if chars > 0 {
                self.push(Held::Piece(kind, Piece { choice, chars, tokens }), sink);
                tokens = tokens.map(|_| 0);
                content = true;
            }
        }
        let unsent = tokens.is_some_and(|n| n > 0);
        if !content && role {
            self.push(Held::Role(choice), sink);
        }
        if !content && (unsent || !role && finish.is_none()) {
            self.push(Held::Empty(Piece { choice, chars: 0, tokens }), sink);
        }
        if let Some(reason) = finish {
            self.push(Held::Finish(choice, reason), sink);
        }
    }

    /// Takes in the usage of one answer; one that waits already lets all go.
    pub(crate) fn count(&mut self, usage: Usage, sink: &mut impl Sink) {
        if self.usage.is_some() {
            self.release(true, sink);
        }
        self.usage = Some(usage);
        self.push(Held::Usage, sink);
    }

    fn push(&mut self, held: Held, sink: &mut impl Sink) {
        if self.len == FRAME_EVENTS {
            self.release(true, sink);
        }
        self.list[self.len] = held;
        self.len += 1;
    }

    /// Lets them go; of a frame that is not `whole`, only the counts and the ends.
    pub(crate) fn release(&mut self, whole: bool, sink: &mut impl Sink) {
        for held in &self.list[..self.len] {
            let event = match *held {
                Held::Role(choice) => Event::Role { choice },
                Held::Piece(kind, piece) => kind.event(piece),
                Held::Empty(piece) => Event::Empty(piece),
                Held::Finish(choice, reason) => Event::Finish { choice, reason },
                Held::Usage => match self.usage.take() {
                    Some(usage) => Event::Usage(usage),
                    None => continue,
                },
            };
            if whole || matches!(held, Held::Finish(..) | Held::Usage) {
                sink.event(event);
            }
        }
        self.len = 0;
    }
}
