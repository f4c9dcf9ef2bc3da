//! Gemini's `:generateContent` and `:streamGenerateContent`. Candidates are the choices; a part of one is
//! text, a thought or a call. The usage grows from frame to frame and is final in a frame with an end. A
//! stream that was not requested as events is one JSON array with the frames as its elements. Code Assist has each frame
//! below `response`.

use std::sync::LazyLock;

use super::definition::{Definition, EndMark, ErrorShape, Form};
use crate::counts::Count;
use crate::field::{Field, Fields};
use crate::frame::{FOREIGN_INPUT, FOREIGN_OUTPUT};
use crate::name::Dimension;
use crate::request::CountMember;

/// The fields of a frame. Rank 0 counts the tool results in the prompt.
const FRAME: &[(&str, Field)] = &[
    ("responseId", Field::Id),
    ("modelVersion", Field::Model),
    ("error", Field::Error),
    ("promptFeedback.blockReason", Field::Blocked),
    ("candidates", Field::Choices),
    ("candidates[]", Field::Choice),
    ("candidates[].index", Field::Index),
    ("candidates[].finishReason", Field::Finish),
    ("candidates[].content", Field::Delta),
    ("candidates[].content.parts[]", Field::Part),
    ("candidates[].content.parts[].text", Field::PartText),
    ("candidates[].content.parts[].thought", Field::Hidden),
    ("candidates[].content.parts[].functionCall.name", Field::Tool),
    ("usageMetadata", Field::Usage),
    ("usageMetadata.serviceTier", Field::ServiceTier),
    ("usageMetadata.trafficType", Field::Dimension(Dimension::Traffic)),
    ("usageMetadata.promptTokenCount", Field::Count(Count::Input)),
    ("usageMetadata.toolUsePromptTokenCount", Field::Extra(0)),
    ("usageMetadata.promptTokensDetails[]", Field::Modality),
    ("usageMetadata.promptTokensDetails[].modality", Field::PartName),
    ("usageMetadata.promptTokensDetails[].tokenCount", Field::Extra(1)),
    ("usageMetadata.toolUsePromptTokensDetails[]", Field::ToolModality),
    ("usageMetadata.toolUsePromptTokensDetails[].modality", Field::PartName),
    ("usageMetadata.toolUsePromptTokensDetails[].tokenCount", Field::Extra(1)),
    ("usageMetadata.cachedContentTokenCount", Field::Count(Count::InputCached)),
    ("usageMetadata.cacheTokensDetails[]", Field::CachedModality),
    ("usageMetadata.cacheTokensDetails[].modality", Field::PartName),
    ("usageMetadata.cacheTokensDetails[].tokenCount", Field::Extra(1)),
    ("usageMetadata.candidatesTokenCount", Field::Count(Count::Output)),
    ("usageMetadata.candidatesTokensDetails[]", Field::OutputModality),
    ("usageMetadata.candidatesTokensDetails[].modality", Field::PartName),
    ("usageMetadata.candidatesTokensDetails[].tokenCount", Field::Extra(1)),
    ("usageMetadata.thoughtsTokenCount", Field::Count(Count::OutputReasoning)),
    ("usageMetadata.totalTokenCount", Field::Count(Count::Total)),
    // An answer in the shape of another path.
    ("usage.prompt_tokens", Field::Extra(FOREIGN_INPUT)),
    ("usage.completion_tokens", Field::Extra(FOREIGN_OUTPUT)),
    ("usage.input_tokens", Field::Extra(FOREIGN_INPUT)),
    ("usage.output_tokens", Field::Extra(FOREIGN_OUTPUT)),
];

/// The definition of this dialect.
pub(super) static DEFINITION: Definition = Definition {
    name: "gemini",
    operation: "generate_content",
    route: Some("/v1beta/models/{model}:generateContent"),
    paths: &[],
    error_shape: ErrorShape::Gemini,
    end_mark: EndMark::Finish,
    form: Form::List,
    fields: &FIELDS,
    prompt_lists: &[],
    answer_counts: &[CountMember::GenerationConfig],
};

/// The fields of this dialect.
static FIELDS: LazyLock<Fields> = LazyLock::new(|| {
    super::foreign::with(FRAME).with_unknown("usageMetadata").also_below("response", "").also_at(
        "[]",
        Field::Element,
        "",
    )
});
