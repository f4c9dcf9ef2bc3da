//! Which server a request means at an address that several share. Each has a member of its own:
//!
//! | address | member | dialect |
//! |---|---|---|
//! | `/generate` | `inputs` | TGI |
//! | | `text` | SGLang |
//! | | `prompt` | LMDeploy |
//! | | `input_ids`, with `sampling_params` | SGLang |
//! | | `input_ids`, without | LMDeploy |
//! | `/invocations` | `messages` | OpenAI chat |
//! | | `prompt` | OpenAI completions |
//! | | `input` | embeddings |
//! | | `inputs` | TGI |
//! | | `query` or `queries`, with `documents` or `items` | ranking |
//! | | `text_1` or `data_1` | scoring, as ranking |
//!
//! The first row of an address that holds decides. A member that is `null` is not there.

use super::Request;
use crate::dialect::Dialect;

/// A top-level member of a request that tells servers apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    Messages,
    Prompt,
    Input,
    Inputs,
    Text,
    InputIds,
    Contents,
    Parameters,
    SamplingParams,
    Query,
    Queries,
    Documents,
    Items,
    TextPair,
    DataPair,
}

/// Which of the members that tell servers apart a request has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    keys: u16,
}

impl Shape {
    pub(crate) fn set(&mut self, key: Key, is_there: bool) {
        let bit = 1 << key as u16;
        self.keys = if is_there { self.keys | bit } else { self.keys & !bit };
    }

    /// The members that either has.
    pub(crate) fn or(self, other: Self) -> Self {
        Self { keys: self.keys | other.keys }
    }

    fn has(self, key: Key) -> bool {
        self.keys & 1 << key as u16 != 0
    }

    /// `messages`: a chat.
    pub fn has_messages(self) -> bool {
        self.has(Key::Messages)
    }

    /// `prompt`: OpenAI completions, llama.cpp, LMDeploy, Ollama.
    pub fn has_prompt(self) -> bool {
        self.has(Key::Prompt)
    }

    /// `input`: the Responses API, embeddings.
    pub fn has_input(self) -> bool {
        self.has(Key::Input)
    }

    /// `inputs`: TGI.
    pub fn has_inputs(self) -> bool {
        self.has(Key::Inputs)
    }

    /// `text`: SGLang's prompt. (The Responses API has a `text`, too: a format.)
    pub fn has_text(self) -> bool {
        self.has(Key::Text)
    }

    /// `input_ids`: a prompt of token ids, SGLang's or LMDeploy's.
    pub fn has_input_ids(self) -> bool {
        self.has(Key::InputIds)
    }

    /// `contents`: Gemini.
    pub fn has_contents(self) -> bool {
        self.has(Key::Contents)
    }

    /// `parameters`: TGI and Triton.
    pub fn has_parameters(self) -> bool {
        self.has(Key::Parameters)
    }

    /// `sampling_params`: SGLang and vLLM's tokens in, tokens out.
    pub fn has_sampling_params(self) -> bool {
        self.has(Key::SamplingParams)
    }

    /// `query` with `documents`, or the texts of a score, by any of their names: a ranking.
    fn has_ranking(self) -> bool {
        let asks = self.has(Key::Query) || self.has(Key::Queries);
        let offers = self.has(Key::Documents) || self.has(Key::Items);
        asks && offers || self.has(Key::TextPair) || self.has(Key::DataPair)
    }
}

impl Request {
    /// Whose `/generate` this request is for; `None` if it has no prompt that we know.
    pub fn dialect_at_generate(&self) -> Option<Dialect> {
        let shape = self.shape;
        if shape.has_inputs() {
            Some(Dialect::Tgi)
        } else if shape.has_text() {
            Some(Dialect::Sglang)
        } else if shape.has_prompt() {
            Some(Dialect::Lmdeploy)
        } else if shape.has_input_ids() {
            Some(if shape.has_sampling_params() { Dialect::Sglang } else { Dialect::Lmdeploy })
        } else {
            None
        }
    }

    /// Returns the dialect at an unknown path; `None` where the members are those of several endpoints, and the
    /// answer says more.
    pub fn dialect_by_shape(&self) -> Option<Dialect> {
        let shape = self.shape;
        if shape.has_messages() {
            Some(Dialect::OpenaiChat)
        } else if shape.has_prompt() {
            Some(Dialect::OpenaiCompletions)
        } else {
            None
        }
    }

    /// What this request is at `/invocations` (SageMaker's one address for everything); `None` if it
    /// has no prompt that we know.
    pub fn dialect_at_invocations(&self) -> Option<Dialect> {
        let shape = self.shape;
        if shape.has_messages() {
            Some(Dialect::OpenaiChat)
        } else if shape.has_prompt() {
            Some(Dialect::OpenaiCompletions)
        } else if shape.has_input() {
            Some(Dialect::Embeddings)
        } else if shape.has_inputs() {
            Some(Dialect::Tgi)
        } else if shape.has_ranking() {
            Some(Dialect::Rerank)
        } else {
            None
        }
    }
}
