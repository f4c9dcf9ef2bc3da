//! Which JSON shape an endpoint speaks. One file each below, of the same shape: the table of the
//! fields it looks at. What a frame with those fields means is said once, in [`crate::frame`].

mod llamacpp_completion;
mod openai;
mod openai_chat;
mod openai_completions;

use crate::field::Fields;

/// The JSON shape of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// `POST …/chat/completions`.
    OpenaiChat,
    /// `POST …/v1/completions`.
    OpenaiCompletions,
    /// llama.cpp's own `POST /completion`, `/completions` and `/infill`.
    LlamacppCompletion,
}

impl Dialect {
    /// Every dialect, in the order of the documentation.
    pub const ALL: [Self; 3] = [Self::OpenaiChat, Self::OpenaiCompletions, Self::LlamacppCompletion];

    /// The name used in labels, records and settings.
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenaiChat => "openai_chat",
            Self::OpenaiCompletions => "openai_completions",
            Self::LlamacppCompletion => "llamacpp_completion",
        }
    }

    /// `gen_ai.operation.name` of the semantic convention.
    pub fn operation(self) -> &'static str {
        match self {
            Self::OpenaiChat => "chat",
            Self::OpenaiCompletions | Self::LlamacppCompletion => "text_completion",
        }
    }

    /// Whether a complete stream ends with a frame that says so (`[DONE]`). If not, it is complete
    /// when every answer is finished.
    pub fn has_end_mark(self) -> bool {
        match self {
            Self::OpenaiChat | Self::OpenaiCompletions => true,
            Self::LlamacppCompletion => false,
        }
    }

    /// What is looked for in its frames.
    pub(crate) fn fields(self) -> &'static Fields {
        match self {
            Self::OpenaiChat => &openai_chat::FIELDS,
            Self::OpenaiCompletions => &openai_completions::FIELDS,
            Self::LlamacppCompletion => &llamacpp_completion::FIELDS,
        }
    }

    /// Whether the frame itself is the answer, without a list of choices around it.
    pub(crate) fn frame_is_choice(self) -> bool {
        matches!(self, Self::LlamacppCompletion)
    }
}
