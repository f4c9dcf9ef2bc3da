//! The server that a request is for, at a path that several servers share. Each has its own member:
//!
//! | path | member | dialect |
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
//! The first matching row of a path decides. A member that is `null` is absent.

use super::Request;
use crate::dialect::Dialect;

/// A top-level member that identifies servers.
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

/// The members of a request that identify servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    keys: u16,
}

impl Shape {
    pub(crate) fn set(&mut self, key: Key, is_there: bool) {
        let bit = 1 << key as u16;
        self.keys = if is_there { self.keys | bit } else { self.keys & !bit };
    }

    /// The union of both.
    pub(crate) fn or(self, other: Self) -> Self {
        Self { keys: self.keys | other.keys }
    }

    fn has(self, key: Key) -> bool {
        self.keys & 1 << key as u16 != 0
    }

    /// True if `messages` is present: a chat.
    pub fn has_messages(self) -> bool {
        self.has(Key::Messages)
    }

    /// True if `prompt` is present: OpenAI completions, llama.cpp, LMDeploy, Ollama.
    pub fn has_prompt(self) -> bool {
        self.has(Key::Prompt)
    }

    /// True if `input` is present: the Responses API, embeddings.
    pub fn has_input(self) -> bool {
        self.has(Key::Input)
    }

    /// True if `inputs` is present: TGI.
    pub fn has_inputs(self) -> bool {
        self.has(Key::Inputs)
    }

    /// True if `text` is present: SGLang's prompt. (In the Responses API `text` is a format.)
    pub fn has_text(self) -> bool {
        self.has(Key::Text)
    }

    /// True if `input_ids` is present: a prompt of token ids, SGLang's or LMDeploy's.
    pub fn has_input_ids(self) -> bool {
        self.has(Key::InputIds)
    }

    /// True if `contents` is present: Gemini.
    pub fn has_contents(self) -> bool {
        self.has(Key::Contents)
    }

    /// True if `parameters` is present: TGI and Triton.
    pub fn has_parameters(self) -> bool {
        self.has(Key::Parameters)
    }

    /// True if `sampling_params` is present: SGLang and vLLM's tokens in, tokens out.
    pub fn has_sampling_params(self) -> bool {
        self.has(Key::SamplingParams)
    }

    /// True if a member that may hold a prompt is present.
    fn has_any_prompt(self) -> bool {
        self.keys & !(1 << Key::Parameters as u16 | 1 << Key::SamplingParams as u16) != 0
    }

    /// True for a ranking: `query` with `documents`, or the texts of a score, by any of their names.
    fn has_ranking(self) -> bool {
        let asks = self.has(Key::Query) || self.has(Key::Queries);
        let offers = self.has(Key::Documents) || self.has(Key::Items);
        asks && offers || self.has(Key::TextPair) || self.has(Key::DataPair)
    }
}

impl Request {
    /// Returns true if this request may run a model: it has a prompt under a known name, or could not be read.
    pub fn runs_model(&self) -> bool {
        !self.whole || self.shape.has_any_prompt()
    }

    /// The dialect of this request at `/generate`; `None` without a known prompt member.
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

    /// The dialect of this request at an unknown path; `None` if several endpoints have its members. Then
    /// the answer decides.
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

    /// The dialect of this request at `/invocations`, SageMaker's path for all endpoints; `None` without a
    /// known prompt member.
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
