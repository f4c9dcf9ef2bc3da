//! The kind of content of a delta.

use crate::event::{Delta, Event};

crate::listed_enum! {
    /// The kind of content of a delta, in the order of the events.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum Kind {
        Reasoning,
        Text,
        Refusal,
        Tool,
        Audio,
    }
}

/// Characters of each kind.
pub(crate) type Chars = [u32; Kind::ALL.len()];

impl Kind {
    /// The event of a delta of this kind.
    pub(crate) fn event(self, delta: Delta) -> Event {
        match self {
            Self::Reasoning => Event::Reasoning(delta),
            Self::Text => Event::Text(delta),
            Self::Refusal => Event::Refusal(delta),
            Self::Tool => Event::Tool(delta),
            Self::Audio => Event::Audio(delta),
        }
    }

    /// Returns `chars` characters of this kind and none of the others.
    pub(crate) fn only(self, chars: u32) -> Chars {
        let mut all = Chars::default();
        all[self as usize] = chars;
        all
    }
}
