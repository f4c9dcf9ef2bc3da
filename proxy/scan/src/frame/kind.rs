//! The kind of a piece of content.

use crate::event::{Event, Piece};

/// The kind of a piece of content, in the order of the events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Reasoning,
    Text,
    Refusal,
    Tool,
    Audio,
}

/// Characters of each kind.
pub(crate) type Chars = [u32; Kind::ALL.len()];

impl Kind {
    pub(crate) const ALL: [Self; 5] = [Self::Reasoning, Self::Text, Self::Refusal, Self::Tool, Self::Audio];

    /// The event of a piece of this kind.
    pub(crate) fn event(self, piece: Piece) -> Event {
        match self {
            Self::Reasoning => Event::Reasoning(piece),
            Self::Text => Event::Text(piece),
            Self::Refusal => Event::Refusal(piece),
            Self::Tool => Event::Tool(piece),
            Self::Audio => Event::Audio(piece),
        }
    }

    /// Returns `chars` characters of this kind and none of the others.
    pub(crate) fn only(self, chars: u32) -> Chars {
        let mut all = Chars::default();
        all[self as usize] = chars;
        all
    }
}
