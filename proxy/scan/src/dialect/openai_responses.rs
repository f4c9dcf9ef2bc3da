//! `POST …/responses`: OpenAI, vLLM, llama.cpp, SGLang, Ollama, TensorRT-LLM, LMDeploy. Typed events; the
//! last has the answer with its usage and its status. vLLM's last event is always `response.completed`, so
//! there the inner status decides; otherwise the event does. The first events echo the request, including
//! its tools, and nothing in them is counted, nor are the repetitions in `*.done`. An unstreamed answer is
//! the same object alone, or an array of such objects (llama.cpp, several answers). llama.cpp streams
//! several answers in parallel, each with its own first and last event. Times are vLLM's `metrics` and
//! llama.cpp's `timings`, as on the other OpenAI routes; `timings` beside a piece (`timings_per_token`) are
//! a running count if the stream has one answer.

use std::sync::LazyLock;

use super::definition::{Definition, EndMark, ErrorShape, Form};
use super::usage;
use crate::field::{Field, Fields};
use crate::frame::Unit;

/// The fields of a typed frame.
const FRAME: &[(&str, Field)] = &[
    ("", Field::Root),
    ("type", Field::Type),
    ("object", Field::Object),
    ("error", Field::Error),
    ("model", Field::Model),
    ("service_tier", Field::ServiceTier),
    ("sequence_number", Field::Varying),
    // As messages of a WebSocket, where the client's events have the same table.
    ("stream_id", Field::StreamId),
    ("previous_response_id", Field::PreviousResponse),
    ("item.type", Field::ItemType),
    ("delta", Field::DeltaText),
    ("logprobs", Field::Logprobs),
    ("response", Field::Inner),
    ("response.id", Field::Id),
    ("response.model", Field::Model),
    ("response.service_tier", Field::ServiceTier),
    ("response.status", Field::InnerStatus),
    ("response.incomplete_details.reason", Field::InnerReason),
    ("response.tool_usage.web_search", Field::Intermediate),
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

/// The fields of an unstreamed answer.
const WHOLE: &[(&str, Field)] = &[
    ("id", Field::Id),
    ("status", Field::Status),
    ("incomplete_details.reason", Field::Reason),
    ("output", Field::Whole),
    ("output[]", Field::Part),
    ("output[].type", Field::ItemType),
    ("output[].content[].text", Field::PartText),
    ("output[].content[].refusal", Field::WholeRefusal),
    ("output[].summary[].text", Field::WholeReasoning),
    ("output[].arguments", Field::WholeTool),
    ("output[].input", Field::WholeTool),
    // The image tool's model has prices of its own: its tokens are reported as unknown.
    ("tool_usage.web_search", Field::Intermediate),
    ("metrics.queue_time_ms", Field::Queue(Unit::Milliseconds)),
    ("metrics.time_to_first_token_ms", Field::Prefill(Unit::Milliseconds)),
    ("metrics.generation_time_ms", Field::Decode(Unit::Milliseconds)),
    ("metrics.speculative_decoding.num_draft_tokens", Field::Drafted),
    ("metrics.speculative_decoding.num_accepted_draft_tokens", Field::DraftAccepted),
];

/// The definition of this dialect.
pub(super) static DEFINITION: Definition = Definition {
    name: "openai_responses",
    operation: "generate_content",
    route: Some("/v1/responses"),
    paths: &["/responses", "/v1/systemone"],
    error_shape: ErrorShape::Openai,
    end_mark: EndMark::Done,
    form: Form::Typed,
    fields: &FIELDS,
    prompt_lists: &[],
    answer_counts: &[],
};

/// The fields of this dialect.
static FIELDS: LazyLock<Fields> = LazyLock::new(|| {
    usage::fields(&[FRAME, WHOLE].concat(), &[("response.usage", Field::InnerUsage)])
        .with_unknown("tool_usage")
        .with_unknown("response.tool_usage")
        .or_in_list()
});
