//! The JSON shape of each endpoint. One file per dialect below: its definition, with the table of the fields it
//! reads. `frame.rs` defines the meaning of a frame with these fields.

mod anthropic;
mod bedrock_converse;
mod cohere;
mod definition;
mod embeddings;
mod foreign;
mod gemini;
mod gemini_interactions;
mod llamacpp_completion;
mod lmdeploy_generate;
mod ollama_chat;
mod ollama_generate;
mod openai;
mod openai_chat;
mod openai_completions;
mod openai_responses;
mod realtime;
mod rerank;
mod sglang_generate;
mod tgi;
mod transcription;
mod triton_generate;
mod unknown;
mod usage;
mod vllm_generate;

use crate::field::{Field, Fields};
use crate::request::{CountMember, Key};

use definition::Definition;
pub use definition::{EndMark, ErrorShape};
pub(crate) use definition::{Form, may_count_tokens};

crate::listed_enum! {
    /// The JSON shape of an endpoint, in the order of the documentation.
    ///
    /// The compiler does not name all functions that a new dialect may have to change, because some have a default:
    /// `of_object` and those from `generates` on in this file; the tables of `foreign`; `native_finish`, `native_scope`, `final_times` and
    /// `Type::read` in `frame`; `OutputLimits::is_one_token` in `request`; `sniff` (for NDJSON), `wants_text` and
    /// `may_hide_counts` in the relay.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Dialect {
        /// `POST …/chat/completions`.
        OpenaiChat,
        /// `POST …/v1/completions`.
        OpenaiCompletions,
        /// `POST …/responses`.
        OpenaiResponses,
        /// `POST …/messages`.
        Anthropic,
        /// llama.cpp's own `POST /completion`, `/completions` and `/infill`.
        LlamacppCompletion,
        /// TGI's own `POST /generate`, `/generate_stream` and `/`.
        Tgi,
        /// SGLang's own `POST /generate`: cumulative.
        Sglang,
        /// LMDeploy's own `POST /generate`: incremental.
        Lmdeploy,
        /// Ollama's own `POST /api/chat`.
        OllamaChat,
        /// Ollama's own `POST /api/generate`.
        OllamaGenerate,
        /// Triton's generate extension, `POST /v2/models/…/generate` and `generate_stream`.
        Triton,
        /// vLLM's token-in, token-out `POST /inference/v1/generate`.
        VllmGenerate,
        /// `POST …:generateContent` and `:streamGenerateContent`.
        Gemini,
        /// Gemini's `POST …/interactions`.
        GeminiInteractions,
        /// Cohere's `POST …/v2/chat`, as vLLM serves it.
        Cohere,
        /// Amazon Bedrock's `POST /model/…/converse` and `converse-stream`.
        BedrockConverse,
        /// Embeddings and pooling, of any server.
        Embeddings,
        /// Reranking, scoring and classifying, of any server.
        Rerank,
        /// `POST …/audio/transcriptions` and `translations`.
        Transcription,
        /// The events of a WebSocket at `…/realtime`: one answer of a session.
        Realtime,
        /// An unknown shape: frames are counted, and only a usage object is read.
        Unknown,
    }
}

/// Returns the count of [`Field::Foreign`].
pub(crate) fn foreign_count(at: u8) -> Field {
    foreign::count(at)
}

/// Returns the dialect of [`Field::Mark`].
pub(crate) fn foreign_mark(at: u8) -> Option<Dialect> {
    foreign::mark(at)
}

impl Dialect {
    fn definition(self) -> &'static Definition {
        match self {
            Self::OpenaiChat => &openai_chat::DEFINITION,
            Self::OpenaiCompletions => &openai_completions::DEFINITION,
            Self::OpenaiResponses => &openai_responses::DEFINITION,
            Self::Anthropic => &anthropic::DEFINITION,
            Self::LlamacppCompletion => &llamacpp_completion::DEFINITION,
            Self::Tgi => &tgi::DEFINITION,
            Self::Sglang => &sglang_generate::DEFINITION,
            Self::Lmdeploy => &lmdeploy_generate::DEFINITION,
            Self::OllamaChat => &ollama_chat::DEFINITION,
            Self::OllamaGenerate => &ollama_generate::DEFINITION,
            Self::Triton => &triton_generate::DEFINITION,
            Self::VllmGenerate => &vllm_generate::DEFINITION,
            Self::Gemini => &gemini::DEFINITION,
            Self::GeminiInteractions => &gemini_interactions::DEFINITION,
            Self::Cohere => &cohere::DEFINITION,
            Self::BedrockConverse => &bedrock_converse::DEFINITION,
            Self::Embeddings => &embeddings::DEFINITION,
            Self::Rerank => &rerank::DEFINITION,
            Self::Transcription => &transcription::DEFINITION,
            Self::Realtime => &realtime::DEFINITION,
            Self::Unknown => &unknown::DEFINITION,
        }
    }

    /// The name in labels, records and settings.
    pub fn name(self) -> &'static str {
        self.definition().name
    }

    /// `gen_ai.operation.name` of the semantic convention.
    pub fn operation(self) -> &'static str {
        self.definition().operation
    }

    /// The usual route; `None` if it has none.
    pub fn route(self) -> Option<&'static str> {
        self.definition().route
    }

    /// The ends of the paths of its own endpoints, each from a slash on.
    pub fn paths(self) -> &'static [&'static str] {
        self.definition().paths
    }

    /// The shape of its servers' errors; OpenAI's if it is unknown.
    pub fn error_shape(self) -> ErrorShape {
        self.definition().error_shape
    }

    /// The end of a complete stream.
    pub fn end_mark(self) -> EndMark {
        self.definition().end_mark
    }

    /// The dialect that an answer names in `object`.
    pub(crate) fn of_object(object: &[u8]) -> Option<Self> {
        Some(match object {
            b"chat.completion" | b"chat.completion.chunk" => Self::OpenaiChat,
            b"text_completion" => Self::OpenaiCompletions,
            b"response" => Self::OpenaiResponses,
            b"list" | b"embedding" => Self::Embeddings,
            _ => return None,
        })
    }

    /// Returns true if answers consist of tokens. Embeddings and rankings have only a prompt.
    pub fn generates(self) -> bool {
        !matches!(self, Self::Embeddings | Self::Rerank)
    }

    /// The fields to read in its frames.
    pub(crate) fn fields(self) -> &'static Fields {
        self.definition().fields
    }

    /// The members of its requests that may list prompts.
    pub(crate) fn prompt_lists(self) -> &'static [Key] {
        self.definition().prompt_lists
    }

    /// The members of its requests with the number of answers.
    pub(crate) fn answer_counts(self) -> &'static [CountMember] {
        self.definition().answer_counts
    }

    /// The structure of its frames.
    pub(crate) fn form(self) -> Form {
        self.definition().form
    }

    /// Returns true if the meaning of a frame does not depend on earlier ones.
    pub(crate) fn frames_are_independent(self) -> bool {
        !matches!(self, Self::Sglang)
    }

    /// Returns true if servers store its answers: a request may continue an earlier one or run in the background, and
    /// each answer has a status, inside the last frame and in an unstreamed answer.
    pub fn stores_answers(self) -> bool {
        matches!(self, Self::OpenaiResponses | Self::GeminiInteractions)
    }

    /// Returns true if a count is computed from more than one number of the frame.
    pub(crate) fn adds_counts(self) -> bool {
        matches!(self, Self::Gemini | Self::GeminiInteractions | Self::Tgi)
    }

    /// Returns true for the two OpenAI dialects, which most servers imitate.
    pub(crate) fn is_openai(self) -> bool {
        matches!(self, Self::OpenaiChat | Self::OpenaiCompletions)
    }

    /// Returns true for Ollama's own dialects.
    pub(crate) fn is_ollama(self) -> bool {
        matches!(self, Self::OllamaChat | Self::OllamaGenerate)
    }
}
