//! `POST …/responses`: OpenAI, vLLM, llama.cpp, SGLang, Ollama, TensorRT-LLM, LMDeploy. Typed
//! events; the last one holds the answer with its usage and how it stands: vLLM's is always
//! `response.completed`, so there the status inside decides, and in the others their own word. The
//! first ones echo the
//! request, tools and all, and nothing in them counts; nor does what `*.done` repeats. An unstreamed
//! answer is that same object alone, or an array of such objects (llama.cpp, asked for several answers).
//! llama.cpp streams several answers side by side, each with a first and a last event of its own. Times are vLLM's
//! `metrics` and llama.cpp's `timings`, as beside the other OpenAI routes; `timings` beside a piece
//! (`timings_per_token`) are a running count, if the stream has one answer.

use std::sync::LazyLock;

use crate::field::{Field, Fields};
use crate::frame::Unit;

/// What is looked for in a typed frame.
const FRAME: &[(&str, Field)] = &[
    ("", Field::Root),
    ("type", Field::Type),
    ("object", Field::Object),
    ("error", Field::Error),
    ("model", Field::Model),
    ("service_tier", Field::ServiceTier),
    ("sequence_number", Field::Varying),
    ("delta", Field::DeltaText),
    ("logprobs", Field::Logprobs),
    ("response", Field::Inner),
    ("response.id", Field::Id),
    ("response.model", Field::Model),
    ("response.service_tier", Field::ServiceTier),
    ("response.status", Field::InnerStatus),
    ("response.incomplete_details.reason", Field::InnerReason),
    ("response.usage", Field::InnerUsage),
    ("response.usage.input_tokens", Field::InputTokens),
    ("response.usage.output_tokens", Field::OutputTokens),
    ("response.usage.prompt_tokens", Field::InputTokens),
    ("response.usage.completion_tokens", Field::OutputTokens),
    ("response.usage.prompt_tokens_details.cached_tokens", Field::CachedTokens),
    ("response.usage.completion_tokens_details.reasoning_tokens", Field::ReasoningTokens),
    ("response.usage.input_tokens_details.cached_tokens", Field::CachedTokens),
    ("response.usage.input_tokens_details.cache_write_tokens", Field::CacheWriteTokens),
    ("response.usage.input_tokens_details.audio_tokens", Field::InputAudioTokens),
    ("response.usage.input_tokens_details.image_tokens", Field::InputImageTokens),
    ("response.usage.output_tokens_details.image_tokens", Field::OutputImageTokens),
    ("response.usage.output_tokens_details.reasoning_tokens", Field::ReasoningTokens),
    ("response.metrics.queue_time_ms", Field::Queue(Unit::Milliseconds)),
    ("response.metrics.time_to_first_token_ms", Field::Prefill(Unit::Milliseconds)),
    ("response.metrics.generation_time_ms", Field::Decode(Unit::Milliseconds)),
    ("response.metrics.speculative_decoding.num_draft_tokens", Field::Drafted),
    ("response.metrics.speculative_decoding.num_accepted_draft_tokens", Field::DraftAccepted),
    ("timings", Field::Timings),
    ("timings.prompt_n", Field::TimingsPrompt),
    ("timings.cache_n", Field::TimingsCached),
    ("timings.predicted_n", Field::TimingsPredicted),
    ("timings.prompt_ms", Field::Prefill(Unit::Milliseconds)),
    ("timings.predicted_ms", Field::Decode(Unit::Milliseconds)),
    ("timings.draft_n", Field::Drafted),
    ("timings.draft_n_accepted", Field::DraftAccepted),
];

/// What is looked for in a whole answer.
const WHOLE: &[(&str, Field)] = &[
    ("id", Field::Id),
    ("status", Field::Status),
    ("incomplete_details.reason", Field::Reason),
    ("output", Field::Whole),
    ("output[]", Field::Part),
    ("output[].type", Field::Hidden),
    ("output[].content[].text", Field::PartText),
    ("output[].content[].refusal", Field::WholeRefusal),
    ("output[].summary[].text", Field::WholeReasoning),
    ("output[].arguments", Field::WholeTool),
    ("output[].input", Field::WholeTool),
    ("usage", Field::Usage),
    // Of an answer in the shape of another path: the chat's names.
    ("usage.prompt_tokens", Field::InputTokens),
    ("usage.completion_tokens", Field::OutputTokens),
    ("usage.prompt_tokens_details.cached_tokens", Field::CachedTokens),
    ("usage.completion_tokens_details.reasoning_tokens", Field::ReasoningTokens),
    ("usage.input_tokens", Field::InputTokens),
    ("usage.output_tokens", Field::OutputTokens),
    ("usage.input_tokens_details.cached_tokens", Field::CachedTokens),
    ("usage.input_tokens_details.cache_write_tokens", Field::CacheWriteTokens),
    ("usage.input_tokens_details.audio_tokens", Field::InputAudioTokens),
    ("usage.input_tokens_details.image_tokens", Field::InputImageTokens),
    ("usage.output_tokens_details.image_tokens", Field::OutputImageTokens),
    ("usage.output_tokens_details.reasoning_tokens", Field::ReasoningTokens),
    ("metrics.queue_time_ms", Field::Queue(Unit::Milliseconds)),
    ("metrics.time_to_first_token_ms", Field::Prefill(Unit::Milliseconds)),
    ("metrics.generation_time_ms", Field::Decode(Unit::Milliseconds)),
    ("metrics.speculative_decoding.num_draft_tokens", Field::Drafted),
    ("metrics.speculative_decoding.num_accepted_draft_tokens", Field::DraftAccepted),
];

/// What is looked for.
pub(crate) static FIELDS: LazyLock<Fields> =
    LazyLock::new(|| Fields::of(&[FRAME, WHOLE].concat()).or_in_list());
