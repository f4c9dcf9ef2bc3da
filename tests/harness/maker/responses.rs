//! Responses: events with a `type`; the last one repeats the whole response.

use super::Maker;

const DELTAS: [&str; 12] = [
    "response.output_text.delta",
    "response.output_text.delta",
    "response.output_text.delta",
    "response.refusal.delta",
    "response.reasoning_text.delta",
    "response.reasoning_summary_text.delta",
    "response.function_call_arguments.delta",
    "response.custom_tool_call_input.delta",
    "response.mcp_call_arguments.delta",
    "response.code_interpreter_call_code.delta",
    "response.audio.delta",
    "response.audio.transcript.delta",
];

const OTHERS: [&str; 10] = [
    "response.output_text.done",
    "response.output_item.added",
    "response.output_item.done",
    "response.content_part.added",
    "response.image_generation_call.partial_image",
    "response.output_text.delta.x",
    "Response.completed",
    "response.web_search_call.searching",
    "keepalive",
    "error",
];

impl Maker<'_, '_> {
    pub(super) fn responses(&mut self, unstreamed: bool) {
        if unstreamed && self.dice.one_in(4) {
            self.put("[");
            for place in 0..self.dice.below(4) {
                self.put(if place > 0 { "," } else { "" });
                self.response();
            }
            return self.put("]");
        }
        if unstreamed || self.dice.one_in(24) {
            return self.response();
        }
        match self.dice.below(8) {
            0 => {
                let kind = *self.dice.of(&["response.created", "response.queued", "response.in_progress"]);
                self.typed(kind, &[("response", |m| m.response()), ("sequence_number", |m| m.number())]);
            }
            1 => {
                let kind = *self.dice.of(&[
                    "response.completed",
                    "response.completed",
                    "response.incomplete",
                    "response.failed",
                    "response.cancelled",
                ]);
                self.typed(
                    kind,
                    &[
                        ("response", |m| m.response()),
                        ("sequence_number", |m| m.number()),
                        ("timings", |m| if m.dice.one_in(3) { m.timings() } else { m.put("null") }),
                    ],
                );
            }
            2 => {
                let kind = *self.dice.of(&OTHERS);
                self.typed(
                    kind,
                    &[
                        ("item", |m| m.item()),
                        ("text", |m| m.string()),
                        ("delta", |m| m.string()),
                        ("error", |m| m.seldom()),
                        ("usage", |m| m.responses_usage()),
                    ],
                );
            }
            _ => {
                let kind = *self.dice.of(&DELTAS);
                self.typed(
                    kind,
                    &[
                        ("delta", |m| m.string()),
                        ("logprobs", |m| m.ids()),
                        ("item_id", |m| m.string()),
                        ("sequence_number", |m| m.number()),
                        ("usage", |m| m.responses_usage()),
                    ],
                );
            }
        }
    }

    fn response(&mut self) {
        self.object(&[
            ("object", |m| m.called("response")),
            ("id", |m| m.string()),
            ("model", |m| m.string()),
            ("service_tier", |m| m.tier()),
            ("status", |m| {
                m.word(&["completed", "completed", "incomplete", "failed", "cancelled", "in_progress"]);
            }),
            ("incomplete_details", |m| {
                if m.dice.one_in(3) {
                    m.object(&[("reason", |m| m.word(&["max_output_tokens", "content_filter", "odd"]))]);
                } else {
                    m.put("null");
                }
            }),
            ("tools", |m| {
                m.put(
                    r#"[{"parameters":{"properties":{"usage":{"output_tokens":9},"status":"completed"}}}]"#,
                );
            }),
            ("output", |m| m.list(Self::item)),
            ("usage", |m| m.responses_usage()),
            ("error", |m| m.seldom()),
            ("metrics", |m| {
                m.object(&[("queue_time_ms", |m| m.number()), ("generation_time_ms", |m| m.number())]);
            }),
        ]);
    }

    fn item(&mut self) {
        self.object(&[
            ("type", |m| m.word(&["message", "message", "reasoning", "function_call"])),
            ("content", |m| m.list(|m| m.object(&[("text", |m| m.string()), ("refusal", |m| m.string())]))),
            ("summary", |m| m.list(|m| m.object(&[("text", |m| m.string())]))),
            ("arguments", |m| m.string()),
            ("input", |m| m.string()),
        ]);
    }

    fn responses_usage(&mut self) {
        self.object(&[
            ("input_tokens", |m| m.number()),
            ("input_tokens_details", |m| {
                m.object(&[
                    ("audio_tokens", |m| m.number()),
                    ("cached_tokens", |m| m.number()),
                    ("cache_write_tokens", |m| m.number()),
                ]);
            }),
            ("output_tokens", |m| m.number()),
            ("output_tokens_details", |m| m.object(&[("reasoning_tokens", |m| m.number())])),
            ("total_tokens", |m| m.number()),
        ]);
    }
}
