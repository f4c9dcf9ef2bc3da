//! The definition of a dialect: everything about it that is a constant. Its file has the one value.

use std::sync::LazyLock;

use crate::field::Fields;
use crate::request::{CountMember, Key};

/// The constants of a dialect.
#[derive(Debug)]
pub(crate) struct Definition {
    /// The name in labels, records and settings.
    pub(crate) name: &'static str,
    /// `gen_ai.operation.name` of the semantic convention, which lacks `rerank` and `transcription`.
    pub(crate) operation: &'static str,
    /// The usual route, for spans.
    pub(crate) route: Option<&'static str>,
    /// The ends of the paths of its endpoints, each from a slash on. An endpoint that several dialects share, or
    /// whose path names the model, is in the relay's routes.
    pub(crate) paths: &'static [&'static str],
    /// The shape of its servers' errors.
    pub(crate) error_shape: ErrorShape,
    /// The end of a complete stream.
    pub(crate) end_mark: EndMark,
    /// The structure of its frames.
    pub(crate) form: Form,
    /// The fields to read in its frames. Every dialect reads `error`, even if its servers report errors elsewhere.
    pub(crate) fields: &'static LazyLock<Fields>,
    /// The members of a request that may list prompts.
    pub(crate) prompt_lists: &'static [Key],
    /// The members of a request with the number of answers to each prompt; the largest counts.
    pub(crate) answer_counts: &'static [CountMember],
}

/// The shape of a dialect's errors. The members are those of the servers' own answers. The relay's `error_body.rs`
/// writes the proxy's own errors in this shape.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ErrorShape {
    /// `{"error":{"message","type","param","code"}}`: OpenAI, and all servers that imitate it.
    #[default]
    Openai,
    /// `{"type":"error","error":{"type","message"}}`.
    Anthropic,
    /// `{"error":"text"}`: Ollama, Triton.
    Text,
    /// `{"error":"text","error_type"}`.
    Tgi,
    /// `{"error":{"code","message","type"}}`, the code a number: llama.cpp's own endpoints.
    LlamaCpp,
    /// `{"error":{"code","message","status"}}`.
    Gemini,
    /// `{"message"}`.
    Cohere,
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

/// Returns true if a transcript in `format` may contain its token count. Text and subtitles (`srt`, `vtt`)
/// cannot, and `verbose_json` counts seconds.
pub(crate) fn may_count_tokens(format: &[u8]) -> bool {
    matches!(format, b"json" | b"diarized_json")
}
