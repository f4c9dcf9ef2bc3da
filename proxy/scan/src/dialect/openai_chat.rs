//! `POST …/chat/completions`: the formats of vLLM, llama.cpp, SGLang, TGI, Ollama, TensorRT-LLM, LMDeploy,
//! mistral.rs and OpenAI. Streamed answers are in `delta`, unstreamed ones in `message`.

use std::sync::LazyLock;

use super::definition::{Definition, EndMark, ErrorShape, Form};
use crate::field::{Field, Fields};
use crate::request::TOP_COUNTS;

/// The definition of this dialect.
pub(super) static DEFINITION: Definition = Definition {
    name: "openai_chat",
    operation: "chat",
    route: Some("/v1/chat/completions"),
    paths: &["/chat/completions", "/chat/completions/batch"],
    error_shape: ErrorShape::Openai,
    end_mark: EndMark::Done,
    form: Form::List,
    fields: &FIELDS,
    prompt_lists: &[],
    answer_counts: TOP_COUNTS,
};

/// The fields of this dialect.
static FIELDS: LazyLock<Fields> = LazyLock::new(|| {
    let mut paths = super::openai::COMMON.to_vec();
    paths.extend([
        ("choices[].delta", Field::Delta),
        ("choices[].delta.role", Field::Role),
        ("choices[].delta.content", Field::Content),
        ("choices[].delta.content[].text", Field::ContentPart),
        ("choices[].delta.reasoning", Field::Reasoning),
        ("choices[].delta.reasoning_content", Field::Reasoning),
        ("choices[].delta.refusal", Field::Refusal),
        ("choices[].delta.audio.data", Field::Audio),
        ("choices[].delta.tool_calls[].function.name", Field::Tool),
        ("choices[].delta.tool_calls[].function.arguments", Field::Tool),
        ("choices[].delta.function_call.name", Field::Tool),
        ("choices[].delta.function_call.arguments", Field::Tool),
        ("choices[].message", Field::Delta),
        ("choices[].message.role", Field::Role),
        ("choices[].message.content", Field::Content),
        ("choices[].message.content[].text", Field::ContentPart),
        ("choices[].message.reasoning", Field::Reasoning),
        ("choices[].message.reasoning_content", Field::Reasoning),
        ("choices[].message.refusal", Field::Refusal),
        ("choices[].message.audio.data", Field::Audio),
        ("choices[].message.tool_calls[].function.name", Field::Tool),
        ("choices[].message.tool_calls[].function.arguments", Field::Tool),
        ("choices[].message.function_call.name", Field::Tool),
        ("choices[].message.function_call.arguments", Field::Tool),
    ]);
    Fields::of(&paths)
});
