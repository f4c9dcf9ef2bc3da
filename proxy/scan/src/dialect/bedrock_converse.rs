//! Amazon Bedrock's `POST /model/…/converse` and `converse-stream`, whose path names the model. The events of a stream
//! have no type in their JSON; each has members of its own. The last but one has the end, and the last the counts.
//! `inputTokens` excludes the tokens read from a cache and those written to one, and the total has them.

use std::sync::LazyLock;

use super::definition::{Definition, EndMark, ErrorShape, Form};
use crate::counts::Count;
use crate::field::{Field, Fields};
use crate::name::Dimension;

/// The fields of an event, and of an unstreamed answer.
const FRAME: &[(&str, Field)] = &[
    ("", Field::Choice),
    ("error", Field::Error),
    ("role", Field::Role),
    ("contentBlockIndex", Field::Varying),
    ("start.toolUse.name", Field::Tool),
    ("delta", Field::Delta),
    ("delta.text", Field::Content),
    ("delta.reasoningContent.text", Field::Reasoning),
    ("delta.toolUse.input", Field::Tool),
    ("output.message.content[].text", Field::ContentPart),
    ("output.message.content[].reasoningContent.reasoningText.text", Field::ReasoningPart),
    ("output.message.content[].toolUse.name", Field::Tool),
    ("stopReason", Field::Finish),
    ("serviceTier.type", Field::ServiceTier),
    ("performanceConfig.latency", Field::Dimension(Dimension::Speed)),
    ("usage.inputTokens", Field::Count(Count::Input)),
    ("usage.outputTokens", Field::Count(Count::Output)),
    ("usage.totalTokens", Field::Count(Count::Total)),
    ("usage.cacheReadInputTokens", Field::Count(Count::InputCached)),
    ("usage.cacheWriteInputTokens", Field::Count(Count::InputCacheWrite)),
    ("usage.cacheDetails[]", Field::CacheLifetime),
    ("usage.cacheDetails[].ttl", Field::PartName),
    ("usage.cacheDetails[].inputTokens", Field::Extra(1)),
    // The same numbers by their older names.
    ("usage.cacheReadInputTokenCount", Field::Count(Count::InputCached)),
    ("usage.cacheWriteInputTokenCount", Field::Count(Count::InputCacheWrite)),
];

/// The definition of this dialect.
pub(super) static DEFINITION: Definition = Definition {
    name: "bedrock_converse",
    operation: "chat",
    route: Some("/model/{model}/converse"),
    paths: &[],
    error_shape: ErrorShape::Cohere,
    end_mark: EndMark::Finish,
    form: Form::Native,
    fields: &FIELDS,
    prompt_lists: &[],
    answer_counts: &[],
};

/// The fields of this dialect.
static FIELDS: LazyLock<Fields> = LazyLock::new(|| super::foreign::with(FRAME).with_unknown("usage"));
