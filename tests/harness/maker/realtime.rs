//! Realtime: one event a message, of OpenAI and of vLLM.

use super::Maker;

const DELTAS: [&str; 10] = [
    "response.output_text.delta",
    "response.text.delta",
    "response.output_audio_transcript.delta",
    "response.audio_transcript.delta",
    "response.output_audio.delta",
    "response.audio.delta",
    "response.function_call_arguments.delta",
    "response.mcp_call_arguments.delta",
    "transcription.delta",
    "conversation.item.input_audio_transcription.delta",
];

const OTHERS: [&str; 10] = [
    "session.created",
    "session.updated",
    "response.create",
    "response.created",
    "response.output_item.done",
    "response.output_audio.done",
    "input_audio_buffer.append",
    "input_audio_buffer.speech_stopped",
    "rate_limits.updated",
    "error",
];

const ENDS: [&str; 5] = [
    "response.done",
    "response.done",
    "transcription.done",
    "conversation.item.input_audio_transcription.completed",
    "conversation.item.input_audio_transcription.failed",
];

impl Maker<'_, '_> {
    pub(super) fn realtime(&mut self) {
        match self.dice.below(6) {
            0 => {
                let kind = *self.dice.of(&OTHERS);
                self.typed(
                    kind,
                    &[
                        ("event_id", |m| m.string()),
                        ("session", |m| m.object(&[("model", |m| m.string())])),
                        ("audio", |m| m.string()),
                        ("delta", |m| m.string()),
                        ("error", |m| m.seldom()),
                    ],
                );
            }
            1 => {
                let kind = *self.dice.of(&ENDS);
                self.typed(
                    kind,
                    &[
                        ("event_id", |m| m.string()),
                        ("response", |m| m.realtime_response()),
                        ("text", |m| m.string()),
                        ("usage", |m| if m.dice.one_in(2) { m.realtime_usage() } else { m.put("null") }),
                    ],
                );
            }
            _ => {
                let kind = *self.dice.of(&DELTAS);
                self.typed(
                    kind,
                    &[
                        ("event_id", |m| m.string()),
                        ("response_id", |m| m.string()),
                        ("item_id", |m| m.string()),
                        ("delta", |m| m.string()),
                        ("usage", |m| m.realtime_usage()),
                    ],
                );
            }
        }
    }

    fn realtime_response(&mut self) {
        self.object(&[
            ("object", |m| m.called("realtime.response")),
            ("id", |m| m.string()),
            ("status", |m| {
                m.word(&["completed", "completed", "incomplete", "failed", "cancelled", "in_progress"]);
            }),
            ("status_details", |m| {
                if m.dice.one_in(2) {
                    m.object(&[("reason", |m| {
                        m.word(&["max_output_tokens", "content_filter", "turn_detected"])
                    })]);
                } else {
                    m.put("null");
                }
            }),
            ("usage", |m| if m.dice.one_in(4) { m.put("null") } else { m.realtime_usage() }),
        ]);
    }

    fn realtime_usage(&mut self) {
        if self.dice.one_in(4) {
            return self.object(&[("prompt_tokens", |m| m.number()), ("completion_tokens", |m| m.number())]);
        }
        self.object(&[
            ("input_tokens", |m| m.number()),
            ("output_tokens", |m| m.number()),
            ("input_token_details", |m| {
                m.object(&[
                    ("cached_tokens", |m| m.number()),
                    ("audio_tokens", |m| m.number()),
                    ("cached_tokens_details", |m| {
                        m.object(&[("audio_tokens", |m| m.number()), ("image_tokens", |m| m.number())])
                    }),
                ]);
            }),
            ("output_token_details", |m| m.object(&[("audio_tokens", |m| m.number())])),
        ]);
    }
}
