//! Answers in the shape of another dialect than that of their path: what is peculiar to each shape, and its counts. Every
//! dialect reads these members beside its own, which win where a path is the same. [`crate::frame`] uses them where the
//! dialect's own members say less, so a usage counts whatever the path is.

use super::Dialect;
use crate::counts::Count;
use crate::field::{Field, Fields};
use crate::frame::{CACHE_WRITE_5M, FOREIGN_INPUT, THOUGHTS, TOOL_PROMPT};

/// The members that show the dialect of a frame.
const MARKS: &[(&str, Dialect)] = &[
    ("choices[].text", Dialect::OpenaiCompletions),
    ("choices[].delta", Dialect::OpenaiChat),
    ("choices[].message", Dialect::OpenaiChat),
    ("output[].content", Dialect::OpenaiResponses),
    ("stop", Dialect::LlamacppCompletion),
    ("token.text", Dialect::Tgi),
    ("generated_text", Dialect::Tgi),
    ("meta_info", Dialect::Sglang),
    ("response", Dialect::OllamaGenerate),
    ("done", Dialect::OllamaChat),
    ("text_output", Dialect::Triton),
    ("candidates", Dialect::Gemini),
    ("steps", Dialect::GeminiInteractions),
    ("usage.tokens", Dialect::Cohere),
    ("contentBlockIndex", Dialect::BedrockConverse),
    ("stopReason", Dialect::BedrockConverse),
    ("data[].embedding", Dialect::Embeddings),
    ("embeddings", Dialect::Embeddings),
    ("predictions[].embeddings", Dialect::Embeddings),
    ("results[].relevance_score", Dialect::Rerank),
];

/// The counts that nearly every server has in the same place. Rank 0 counts if nothing else does; ranks 1 and 2 are
/// parts of the prompt that Anthropic counts separately.
const USAGE: &[(&str, Field)] = &[
    ("usage", Field::Usage),
    ("usage.prompt_tokens", Field::Count(Count::Input)),
    ("usage.input_tokens", Field::Extra(FOREIGN_INPUT)),
    ("usage.completion_tokens", Field::Count(Count::Output)),
    ("usage.output_tokens", Field::Count(Count::Output)),
    ("usage.total_tokens", Field::Extra(0)),
    ("usage.cache_read_input_tokens", Field::Extra(1)),
    ("usage.cache_creation_input_tokens", Field::Extra(2)),
    ("usage.cache_creation.ephemeral_5m_input_tokens", Field::Extra(CACHE_WRITE_5M)),
    ("usage.cache_creation.ephemeral_1h_input_tokens", Field::Count(Count::InputCacheWrite1h)),
    ("usage.prompt_tokens_details.cached_tokens", Field::Count(Count::InputCached)),
    ("usage.input_tokens_details.cached_tokens", Field::Count(Count::InputCached)),
    ("response.usage", Field::Usage),
    ("response.usage.input_tokens", Field::Count(Count::Input)),
    ("response.usage.output_tokens", Field::Count(Count::Output)),
    ("response.usage.input_tokens_details.cached_tokens", Field::Count(Count::InputCached)),
    ("message.usage", Field::Usage),
    ("message.usage.input_tokens", Field::Extra(FOREIGN_INPUT)),
    ("message.usage.cache_read_input_tokens", Field::Extra(1)),
    ("message.usage.cache_creation_input_tokens", Field::Extra(2)),
    ("message.usage.cache_creation.ephemeral_5m_input_tokens", Field::Extra(CACHE_WRITE_5M)),
    ("message.usage.cache_creation.ephemeral_1h_input_tokens", Field::Count(Count::InputCacheWrite1h)),
    ("prompt_eval_count", Field::Count(Count::Input)),
    ("eval_count", Field::Count(Count::Output)),
];

/// The counts that [`USAGE`] lacks.
const COUNTS: &[(&str, Field)] = &[
    ("usage.completion_tokens_details.reasoning_tokens", Field::Count(Count::OutputReasoning)),
    ("usage.output_tokens_details.reasoning_tokens", Field::Count(Count::OutputReasoning)),
    ("usage.prompt_tokens_details.audio_tokens", Field::Count(Count::InputAudio)),
    ("usage.completion_tokens_details.audio_tokens", Field::Count(Count::OutputAudio)),
    ("usage.input_token_details.audio_tokens", Field::Count(Count::InputAudio)),
    ("response.usage.output_tokens_details.reasoning_tokens", Field::Count(Count::OutputReasoning)),
    ("tokens_evaluated", Field::Count(Count::Input)),
    ("tokens_predicted", Field::Count(Count::Output)),
    ("details.input_length", Field::Count(Count::Input)),
    ("details.generated_tokens", Field::Count(Count::Output)),
    ("meta_info.prompt_tokens", Field::Count(Count::Input)),
    ("meta_info.completion_tokens", Field::Count(Count::Output)),
    ("meta_info.cached_tokens", Field::Count(Count::InputCached)),
    ("meta_info.reasoning_tokens", Field::Count(Count::OutputReasoning)),
    ("usageMetadata.promptTokenCount", Field::Count(Count::Input)),
    ("usageMetadata.toolUsePromptTokenCount", Field::Extra(TOOL_PROMPT)),
    ("usageMetadata.cachedContentTokenCount", Field::Count(Count::InputCached)),
    ("usageMetadata.candidatesTokenCount", Field::Count(Count::Output)),
    ("usageMetadata.thoughtsTokenCount", Field::Extra(THOUGHTS)),
    ("usage.total_input_tokens", Field::Count(Count::Input)),
    ("usage.total_tool_use_tokens", Field::Extra(TOOL_PROMPT)),
    ("usage.total_cached_tokens", Field::Count(Count::InputCached)),
    ("usage.total_output_tokens", Field::Count(Count::Output)),
    ("usage.total_thought_tokens", Field::Extra(THOUGHTS)),
    ("interaction.usage.total_input_tokens", Field::Count(Count::Input)),
    ("interaction.usage.total_tool_use_tokens", Field::Extra(TOOL_PROMPT)),
    ("interaction.usage.total_cached_tokens", Field::Count(Count::InputCached)),
    ("interaction.usage.total_output_tokens", Field::Count(Count::Output)),
    ("interaction.usage.total_thought_tokens", Field::Extra(THOUGHTS)),
    ("usage.tokens.input_tokens", Field::Count(Count::Input)),
    ("usage.tokens.output_tokens", Field::Count(Count::Output)),
    ("delta.usage.tokens.input_tokens", Field::Count(Count::Input)),
    ("delta.usage.tokens.output_tokens", Field::Count(Count::Output)),
    ("usage.inputTokens", Field::Extra(FOREIGN_INPUT)),
    ("usage.outputTokens", Field::Count(Count::Output)),
    ("usage.totalTokens", Field::Extra(0)),
    ("usage.cacheReadInputTokens", Field::Extra(1)),
    ("usage.cacheWriteInputTokens", Field::Extra(2)),
];

/// The members in which providers name work whose result is fetched later.
const JOBS: [&str; 9] = [
    // xAI, DashScope
    "request_id",
    "output.task_id",
    "task_id",
    "taskId",
    "job_id",
    "jobId",
    "batch_id",
    // Vertex AI
    "name",
    // Bedrock
    "invocationArn",
];

/// The types of frames.
const TYPES: [(&str, Field); 2] = [("type", Field::MarkType), ("event_type", Field::MarkType)];

/// Returns the count of [`Field::Foreign`].
pub(super) fn count(at: u8) -> Field {
    USAGE.iter().chain(COUNTS).nth(usize::from(at)).map_or(Field::Intermediate, |(_, field)| *field)
}

/// Returns the dialect of [`Field::Mark`].
pub(super) fn mark(at: u8) -> Option<Dialect> {
    MARKS.get(usize::from(at)).map(|(_, dialect)| *dialect)
}

/// Builds the tree of a dialect's own paths and of those of other shapes.
pub(super) fn with(own: &[(&'static str, Field)]) -> Fields {
    let at = |at: usize| u8::try_from(at).expect("fewer than 256 of a kind");
    let marks = MARKS.iter().enumerate().map(|(n, (path, _))| (*path, Field::Mark(at(n))));
    let counts = USAGE.iter().chain(COUNTS).enumerate().filter(|(_, (_, field))| *field != Field::Usage);
    let counts = counts.map(|(n, (path, _))| (*path, Field::Foreign(at(n))));
    let jobs = JOBS.map(|path| (path, Field::JobId));
    let paths: Vec<_> =
        TYPES.into_iter().chain(jobs).chain(marks).chain(counts).chain(own.iter().copied()).collect();
    Fields::of(&paths)
}

impl Dialect {
    /// The dialect that has a typed frame with this word.
    pub(crate) fn of_type(word: &[u8]) -> Option<Self> {
        let begins = |prefix: &[u8]| word.starts_with(prefix);
        Some(match word {
            b"message" | b"message_start" | b"message_delta" | b"message_stop" => Self::Anthropic,
            _ if begins(b"content_block_") => Self::Anthropic,
            b"message-start" | b"message-end" => Self::Cohere,
            _ if begins(b"content-") || begins(b"tool-") => Self::Cohere,
            _ if begins(b"response.") => Self::OpenaiResponses,
            _ if begins(b"interaction.") || begins(b"step.") => Self::GeminiInteractions,
            b"transcription.text.delta" | b"transcription.done" => Self::Transcription,
            _ if begins(b"transcript.text.") => Self::Transcription,
            _ => return None,
        })
    }
}
