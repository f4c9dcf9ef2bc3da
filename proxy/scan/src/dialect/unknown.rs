//! An answer of unknown shape, from an unknown endpoint or to an unreadable request. The frames of a stream
//! are counted and not read, except for members that nearly every server has in the same place: the model's
//! name, an error, and a usage object with the names of OpenAI's two APIs, Anthropic's or Ollama's. Counts
//! in a stream are running ones: no mark shows which is the last.

use std::sync::LazyLock;

use super::definition::{Definition, EndMark, ErrorShape, Form};
use super::usage;
use crate::counts::Count;
use crate::field::{Field, Fields};
use crate::frame::FOREIGN_INPUT;
use crate::name::Dimension;
use crate::request::{ALL_COUNTS, ALL_LISTS};

/// The members of a usage object that other places count elsewhere. Rank 0 counts if nothing else does; ranks 1 and 2
/// are parts of the prompt that Anthropic, and Bedrock's Converse, count separately.
const USAGE: &[(&str, Field)] = &[
    ("usage.input_tokens", Field::Extra(FOREIGN_INPUT)),
    ("usage.total_tokens", Field::Extra(0)),
    // Of the first frame of a message: an estimate.
    ("message.usage.output_tokens", Field::Intermediate),
    ("usage.cache_read_input_tokens", Field::Extra(1)),
    ("usage.cache_creation_input_tokens", Field::Extra(2)),
    ("usage.inputTokens", Field::InputOrParts),
    ("usage.outputTokens", Field::OutputOrParts),
    ("usage.totalTokens", Field::Extra(0)),
    ("usage.cacheReadInputTokens", Field::Extra(1)),
    ("usage.cacheWriteInputTokens", Field::Extra(2)),
    ("usage.cacheReadInputTokenCount", Field::Extra(1)),
    ("usage.cacheWriteInputTokenCount", Field::Extra(2)),
    // Vercel's AI SDK, whose prompt includes the cache
    ("usage.inputTokens.total", Field::Count(Count::Input)),
    ("usage.inputTokens.noCache", Field::Intermediate),
    ("usage.inputTokens.cacheRead", Field::Count(Count::InputCached)),
    ("usage.inputTokens.cacheWrite", Field::Count(Count::InputCacheWrite)),
    ("usage.outputTokens.total", Field::Count(Count::Output)),
    ("usage.outputTokens.text", Field::Intermediate),
    ("usage.outputTokens.reasoning", Field::Count(Count::OutputReasoning)),
    // YandexGPT
    ("usage.inputTextTokens", Field::Count(Count::Input)),
    ("prompt_eval_count", Field::Count(Count::Input)),
    ("prompt_eval_cached_count", Field::Count(Count::InputCached)),
    ("eval_count", Field::Count(Count::Output)),
    // The last frame of a stream of Bedrock's `invoke-with-response-stream`.
    ("amazon-bedrock-invocationMetrics.inputTokenCount", Field::Extra(FOREIGN_INPUT)),
    ("amazon-bedrock-invocationMetrics.outputTokenCount", Field::Count(Count::Output)),
    ("amazon-bedrock-invocationMetrics.cacheReadInputTokenCount", Field::Extra(1)),
    ("amazon-bedrock-invocationMetrics.cacheWriteInputTokenCount", Field::Extra(2)),
    // watsonx
    ("results[].input_token_count", Field::Count(Count::Input)),
    ("results[].generated_token_count", Field::Count(Count::Output)),
    // Bedrock's models: Llama, Titan
    ("prompt_token_count", Field::Count(Count::Input)),
    ("generation_token_count", Field::Count(Count::Output)),
    ("inputTextTokenCount", Field::Count(Count::Input)),
    ("results[].tokenCount", Field::Count(Count::Output)),
    // LM Studio
    ("stats.input_tokens", Field::Count(Count::Input)),
    ("stats.total_output_tokens", Field::Count(Count::Output)),
    ("stats.reasoning_output_tokens", Field::Count(Count::OutputReasoning)),
    // Cohere's first version, which has a stream of lines
    ("meta.billed_units.input_tokens", Field::Count(Count::Input)),
    ("meta.billed_units.output_tokens", Field::Count(Count::Output)),
    ("meta.tokens.input_tokens", Field::Count(Count::InputUsed)),
    ("meta.tokens.output_tokens", Field::Count(Count::OutputUsed)),
    // Replicate, DeepInfra, Aleph Alpha
    ("metrics.input_token_count", Field::Count(Count::Input)),
    ("metrics.output_token_count", Field::Count(Count::Output)),
    ("inference_status.tokens_input", Field::Count(Count::Input)),
    ("inference_status.tokens_generated", Field::Count(Count::Output)),
    ("num_tokens_prompt_total", Field::Count(Count::Input)),
    ("num_tokens_generated", Field::Count(Count::Output)),
    // Vertex AI's embeddings, one for each text
    ("predictions[].embeddings.statistics.token_count", Field::Addend),
];

/// The other fields.
const FRAME: &[(&str, Field)] = &[
    ("id", Field::Id),
    ("model", Field::Model),
    ("object", Field::Object),
    ("error", Field::Error),
    ("service_tier", Field::ServiceTier),
    ("usage.service_tier", Field::ServiceTier),
    ("usage.speed", Field::Dimension(Dimension::Speed)),
    ("usage.inference_geo", Field::Dimension(Dimension::Geography)),
    ("response.service_tier", Field::ServiceTier),
    ("message.usage.service_tier", Field::ServiceTier),
    ("message.usage.speed", Field::Dimension(Dimension::Speed)),
    ("message.usage.inference_geo", Field::Dimension(Dimension::Geography)),
    ("usageMetadata.serviceTier", Field::ServiceTier),
    ("usageMetadata.trafficType", Field::Dimension(Dimension::Traffic)),
];

/// The definition of this dialect.
pub(super) static DEFINITION: Definition = Definition {
    name: "unknown",
    operation: "text_completion",
    route: None,
    paths: &[],
    error_shape: ErrorShape::Openai,
    end_mark: EndMark::Eof,
    form: Form::Opaque,
    fields: &FIELDS,
    prompt_lists: ALL_LISTS,
    answer_counts: ALL_COUNTS,
};

/// The fields of this dialect.
static FIELDS: LazyLock<Fields> = LazyLock::new(|| {
    let places = ["response.usage", "result.usage", "message.usage", "Usage", "Response.Usage"];
    let places = places.map(|place| (place, Field::Usage));
    // That of another member counts if there is no other: the client may have sent it (`metadata`).
    usage::fields(&[FRAME, USAGE].concat(), &[&places[..], &[("*.usage", Field::InnerUsage)]].concat())
        .also_below("result.stats", "stats")
        .also_below("response.meta", "meta")
});
