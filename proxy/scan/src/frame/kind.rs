//! What a piece of content is.

use crate::event::{Event, Piece};

/// What a piece of content is; the order is that of the events.
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

    /// So many characters of this kind and none of another.
    pub(crate) fn only(self, chars: u32) -> Chars {
        let mut all = Chars::default();
        all[self as usize] = chars;
        all
    }
}
