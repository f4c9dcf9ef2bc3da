//! `POST …/audio/transcriptions` and `translations`. vLLM streams the frames of its chat; OpenAI and
//! llama.cpp send typed frames. Unstreamed, the text is at the top level, beside a usage that may count
//! seconds and no tokens.

use std::sync::LazyLock;

use super::definition::{Definition, EndMark, ErrorShape, Form};
use crate::field::{Field, Fields};

/// Returns true if a transcript in `format` may contain its token count. Text and subtitles (`srt`, `vtt`)
/// cannot, and `verbose_json` counts seconds.
pub(crate) fn may_count_tokens(format: &[u8]) -> bool {
    matches!(format, b"json" | b"diarized_json")
}

/// The fields besides those of the chat's frame.
const FRAME: &[(&str, Field)] = &[
    ("", Field::Root),
    ("type", Field::Type),
    ("delta", Field::DeltaText),
    ("text", Field::WholeText),
    ("choices[].delta", Field::Delta),
    ("choices[].delta.role", Field::Role),
    ("choices[].delta.content", Field::Content),
    ("usage.input_tokens", Field::InputTokens),
    ("usage.output_tokens", Field::OutputTokens),
    ("usage.input_token_details.audio_tokens", Field::InputAudioTokens),
];

/// The definition of this dialect.
pub(super) static DEFINITION: Definition = Definition {
    name: "transcription",
    operation: "transcription",
    route: Some("/v1/audio/transcriptions"),
    paths: &["/audio/transcriptions", "/audio/translations"],
    error_shape: ErrorShape::Openai,
    end_mark: EndMark::Done,
    form: Form::List,
    fields: &FIELDS,
    prompt_lists: &[],
    answer_counts: &[],
};

/// The fields of this dialect.
static FIELDS: LazyLock<Fields> = LazyLock::new(|| Fields::of(&[super::openai::COMMON, FRAME].concat()));
