//! The JSON shape of each endpoint. One file per dialect below: the table of the fields it reads.
//! `frame.rs` defines the meaning of a frame with these fields.

mod anthropic;
mod cohere;
mod embeddings;
mod gemini;
mod llamacpp_completion;
mod lmdeploy_generate;
mod ollama_chat;
mod ollama_generate;
mod openai;
mod openai_chat;
mod openai_completions;
mod openai_responses;
mod rerank;
mod sglang_generate;
mod tgi;
pub(crate) mod transcription;
mod triton_generate;
mod unknown;
mod vllm_generate;

use crate::field::Fields;

/// The JSON shape of an endpoint.
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
    /// Cohere's `POST …/v2/chat`, as vLLM serves it.
    Cohere,
    /// Embeddings and pooling, of any server.
    Embeddings,
    /// Reranking, scoring and classifying, of any server.
    Rerank,
    /// `POST …/audio/transcriptions` and `translations`.
    Transcription,
    /// An unknown shape: frames are counted, and only a usage object is read.
    Unknown,
}

/// The end of a complete stream of a dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndMark {
    /// An explicit frame (`[DONE]`, `message_stop`).
    Done,
    /// Every answer is finished.
    Finish,
    /// The clean end of the body only.
    Eof,
}

impl Dialect {
    /// Every dialect, in the order of the documentation.
    pub const ALL: [Self; 18] = [
        Self::OpenaiChat,
        Self::OpenaiCompletions,
        Self::OpenaiResponses,
        Self::Anthropic,
        Self::LlamacppCompletion,
        Self::Tgi,
        Self::Sglang,
        Self::Lmdeploy,
        Self::OllamaChat,
        Self::OllamaGenerate,
        Self::Triton,
        Self::VllmGenerate,
        Self::Gemini,
        Self::Cohere,
        Self::Embeddings,
        Self::Rerank,
        Self::Transcription,
        Self::Unknown,
    ];

    /// The name in labels, records and settings.
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenaiChat => "openai_chat",
            Self::OpenaiCompletions => "openai_completions",
            Self::OpenaiResponses => "openai_responses",
            Self::Anthropic => "anthropic",
            Self::LlamacppCompletion => "llamacpp_completion",
            Self::Tgi => "tgi",
            Self::Sglang => "sglang_generate",
            Self::Lmdeploy => "lmdeploy_generate",
            Self::OllamaChat => "ollama_chat",
            Self::OllamaGenerate => "ollama_generate",
            Self::Triton => "triton_generate",
            Self::VllmGenerate => "vllm_generate",
            Self::Gemini => "gemini",
            Self::Cohere => "cohere",
            Self::Embeddings => "embeddings",
            Self::Rerank => "rerank",
            Self::Transcription => "transcription",
            Self::Unknown => "unknown",
        }
    }

    /// `gen_ai.operation.name` of the semantic convention. The convention lacks `rerank` and
    /// `transcription`.
    pub fn operation(self) -> &'static str {
        match self {
            Self::OpenaiChat | Self::Anthropic | Self::OllamaChat | Self::Cohere => "chat",
            Self::OpenaiCompletions
            | Self::LlamacppCompletion
            | Self::Tgi
            | Self::Sglang
            | Self::Lmdeploy
            | Self::OllamaGenerate
            | Self::Triton
            | Self::VllmGenerate
            | Self::Unknown => "text_completion",
            Self::OpenaiResponses | Self::Gemini => "generate_content",
            Self::Embeddings => "embeddings",
            Self::Rerank => "rerank",
            Self::Transcription => "transcription",
        }
    }

    /// The end of a complete stream.
    pub fn end_mark(self) -> EndMark {
        match self {
            Self::OpenaiChat
            | Self::OpenaiCompletions
            | Self::OpenaiResponses
            | Self::Anthropic
            | Self::Sglang
            | Self::Lmdeploy
            | Self::VllmGenerate
            | Self::Cohere
            | Self::Transcription => EndMark::Done,
            Self::LlamacppCompletion | Self::Tgi | Self::OllamaChat | Self::OllamaGenerate | Self::Gemini => {
                EndMark::Finish
            }
            Self::Triton | Self::Embeddings | Self::Rerank | Self::Unknown => EndMark::Eof,
        }
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
        match self {
            Self::OpenaiChat => &openai_chat::FIELDS,
            Self::OpenaiCompletions => &openai_completions::FIELDS,
            Self::OpenaiResponses => &openai_responses::FIELDS,
            Self::Anthropic => &anthropic::FIELDS,
            Self::LlamacppCompletion => &llamacpp_completion::FIELDS,
            Self::Tgi => &tgi::FIELDS,
            Self::Sglang => &sglang_generate::FIELDS,
            Self::Lmdeploy => &lmdeploy_generate::FIELDS,
            Self::OllamaChat => &ollama_chat::FIELDS,
            Self::OllamaGenerate => &ollama_generate::FIELDS,
            Self::Triton => &triton_generate::FIELDS,
            Self::VllmGenerate => &vllm_generate::FIELDS,
            Self::Gemini => &gemini::FIELDS,
            Self::Cohere => &cohere::FIELDS,
            Self::Embeddings => &embeddings::FIELDS,
            Self::Rerank => &rerank::FIELDS,
            Self::Transcription => &transcription::FIELDS,
            Self::Unknown => &unknown::FIELDS,
        }
    }

    /// The structure of its frames.
    pub(crate) fn form(self) -> Form {
        match self {
            Self::OpenaiChat
            | Self::OpenaiCompletions
            | Self::VllmGenerate
            | Self::Gemini
            | Self::Transcription => Form::List,
            Self::LlamacppCompletion
            | Self::Tgi
            | Self::Sglang
            | Self::Lmdeploy
            | Self::OllamaChat
            | Self::OllamaGenerate
            | Self::Triton => Form::Native,
            Self::OpenaiResponses | Self::Anthropic | Self::Cohere => Form::Typed,
            Self::Embeddings | Self::Rerank => Form::Prompt,
            Self::Unknown => Form::Opaque,
        }
    }

    /// Returns true if the meaning of a frame does not depend on earlier ones.
    pub(crate) fn frames_are_independent(self) -> bool {
        !matches!(self, Self::Sglang)
    }

    /// Returns true if a count is computed from more than one number of the frame.
    pub(crate) fn adds_counts(self) -> bool {
        matches!(self, Self::Gemini | Self::Tgi)
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

/// The structure of a dialect's frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// A list of answers.
    List,
    /// The frame is the answer, or each element of an array is one.
    Native,
    /// A type member determines the meaning of the frame.
    Typed,
    /// Only a prompt is counted.
    Prompt,
    /// The content is unknown.
    Opaque,
}
