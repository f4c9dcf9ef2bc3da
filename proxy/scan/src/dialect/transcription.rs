//! `POST …/audio/transcriptions` and `translations`. vLLM streams the frames of its chat;
//! OpenAI and llama.cpp type theirs. Unstreamed, the text stands at the top, beside a usage that may
//! count seconds and no tokens.

use std::sync::LazyLock;

use crate::field::{Field, Fields};

/// Returns whether a transcript in `format` may hold a count of its tokens. Text and subtitles (`srt`, `vtt`) have no
/// place for one, and `verbose_json` counts seconds.
pub(crate) fn may_count_tokens(format: &[u8]) -> bool {
    matches!(format, b"json" | b"diarized_json")
}

/// What is looked for beside the chat's frame.
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

/// What is looked for.
pub(crate) static FIELDS: LazyLock<Fields> =
    LazyLock::new(|| Fields::of(&[super::openai::COMMON, FRAME].concat()));
