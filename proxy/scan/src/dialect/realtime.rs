//! A WebSocket at `…/realtime`: OpenAI's Realtime API, servers that imitate it, and vLLM's transcription. Each message is
//! one typed event. A session has many answers, and each is metered alone: `response.created` begins it, and
//! `response.done` ends it with its status and its usage. vLLM's `transcription.delta` and `transcription.done` are the
//! answer themselves. The table covers both directions, because a client's events use the same members. The names
//! before OpenAI's general availability (`response.text.delta`, `response.audio.delta`) mean the same.

use std::sync::LazyLock;

use super::definition::{Definition, EndMark, ErrorShape, Form};
use super::usage;
use crate::field::{Field, Fields};

const EVENT: &[(&str, Field)] = &[
    ("", Field::Root),
    ("type", Field::Type),
    ("event_id", Field::EventId),
    ("error", Field::Error),
    ("error.event_id", Field::ErrorEvent),
    ("code", Field::ErrorCode),
    ("delta", Field::DeltaText),
    ("response_id", Field::ResponseId),
    ("item_id", Field::ItemId),
    ("response", Field::Inner),
    ("response.id", Field::Id),
    ("response.conversation_id", Field::Conversation),
    ("response.status", Field::InnerStatus),
    ("response.status_details.reason", Field::InnerReason),
    // The session's settings: vLLM's model is at the top level.
    ("model", Field::Model),
    ("session.model", Field::Model),
    ("session.input_audio_transcription.model", Field::TranscriptionModel),
    ("session.audio.input.transcription.model", Field::TranscriptionModel),
];

/// The definition of this dialect. Its path is in the relay's routes, because it is not a path of a `POST`.
pub(super) static DEFINITION: Definition = Definition {
    name: "realtime",
    operation: "chat",
    route: Some("/v1/realtime"),
    paths: &[],
    error_shape: ErrorShape::Openai,
    end_mark: EndMark::Done,
    form: Form::Typed,
    fields: &FIELDS,
    prompt_lists: &[],
    answer_counts: &[],
};

/// The fields of this dialect.
static FIELDS: LazyLock<Fields> =
    LazyLock::new(|| usage::fields(EVENT, &[("response.usage", Field::InnerUsage)]));
