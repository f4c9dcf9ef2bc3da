//! Which JSON shape an endpoint speaks. One file each below, of the same shape: the table of the
//! fields it looks at. What a frame with those fields means is said once, in [`crate::frame`].

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
    /// An answer of no known shape: frames are counted, and nothing is read in it but a usage object.
    Unknown,
}

/// What ends a complete stream of a dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndMark {
    /// A frame that says so (`[DONE]`, `message_stop`).
    Done,
    /// Every answer is finished.
    Finish,
    /// Nothing but the clean end of the body.
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

    /// The name used in labels, records and settings.
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

    /// `gen_ai.operation.name` of the semantic convention; `rerank` and `transcription`, which it
    /// does not know, are ours.
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

    /// What ends a complete stream.
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

    /// The dialect of an answer that calls itself so by `object`.
    pub(crate) fn of_object(object: &[u8]) -> Option<Self> {
        Some(match object {
            b"chat.completion" | b"chat.completion.chunk" => Self::OpenaiChat,
            b"text_completion" => Self::OpenaiCompletions,
            b"response" => Self::OpenaiResponses,
            b"list" | b"embedding" => Self::Embeddings,
            _ => return None,
        })
    }

    /// Whether there is an answer made of tokens. Embeddings and rankings have only a prompt.
    pub fn generates(self) -> bool {
        !matches!(self, Self::Embeddings | Self::Rerank)
    }

    /// What is looked for in its frames.
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

    /// How its frames are built.
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

    /// Whether a frame means the same wherever it stands.
    pub(crate) fn frames_stand_alone(self) -> bool {
        !matches!(self, Self::Sglang)
    }

    /// Whether a count is more than one of the frame's numbers.
    pub(crate) fn adds_counts(self) -> bool {
        matches!(self, Self::Gemini | Self::Tgi)
    }

    /// Whether it is one of OpenAI's two, which most servers imitate.
    pub(crate) fn is_openai(self) -> bool {
        matches!(self, Self::OpenaiChat | Self::OpenaiCompletions)
    }

    /// Whether it is one of Ollama's own.
    pub(crate) fn is_ollama(self) -> bool {
        matches!(self, Self::OllamaChat | Self::OllamaGenerate)
    }
}

/// How the frames of a dialect are built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// A list of answers.
    List,
    /// The frame itself is the answer, or each element of an array is one.
    Native,
    /// A word says what the frame means.
    Typed,
    /// There is only a prompt to count.
    Prompt,
    /// Nothing in it is known.
    Opaque,
}
