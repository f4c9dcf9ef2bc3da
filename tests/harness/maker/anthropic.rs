//! Anthropic: events with a `type`; the first has the prompt's count, the last but one the others.

use super::Maker;

const STOPS: [&str; 8] = [
    "end_turn",
    "max_tokens",
    "stop_sequence",
    "tool_use",
    "pause_turn",
    "refusal",
    "model_context_window_exceeded",
    "odd",
];

impl Maker<'_, '_> {
    pub(super) fn anthropic(&mut self, unstreamed: bool) {
        if unstreamed || self.dice.one_in(24) {
            return self.typed(
                "message",
                &[
                    ("content", |m| m.list(Self::block_of_message)),
                    ("model", |m| m.string()),
                    ("id", |m| m.string()),
                    ("stop_reason", |m| m.word(&STOPS)),
                    ("usage", |m| m.anthropic_usage()),
                ],
            );
        }
        let begins = self.frames == 0 && !self.dice.one_in(4);
        match self.dice.below(if begins { 1 } else { 9 }) {
            0 if begins || self.frames == 0 => self.typed("message_start", &[("message", |m| m.message())]),
            0 | 1 => self.typed(
                "message_delta",
                &[
                    ("delta", |m| m.object(&[("stop_reason", |m| m.word(&STOPS))])),
                    ("usage", |m| m.anthropic_usage()),
                ],
            ),
            2 => {
                let kind = *self.dice.of(&[
                    "message_stop",
                    "ping",
                    "content_block_stop",
                    "content_block_start",
                    "error",
                    "odd",
                ]);
                self.typed(
                    kind,
                    &[
                        ("index", |m| m.number()),
                        ("content_block", |m| m.block_of_message()),
                        ("usage", |m| m.anthropic_usage()),
                        ("error", |m| m.seldom()),
                    ],
                );
            }
            _ => self.typed(
                "content_block_delta",
                &[
                    ("index", |m| m.number()),
                    ("delta", |m| {
                        let (kind, name): (&str, &'static str) = *m.dice.of(&[
                            ("text_delta", "text"),
                            ("text_delta", "text"),
                            ("thinking_delta", "thinking"),
                            ("input_json_delta", "partial_json"),
                            ("signature_delta", "signature"),
                            ("citations_delta", "citation"),
                        ]);
                        m.typed(kind, &[(name, |m| m.string())]);
                    }),
                ],
            ),
        }
    }

    fn message(&mut self) {
        self.object(&[
            ("type", |m| m.word(&["message"])),
            ("id", |m| m.string()),
            ("content", |m| m.list(Self::block_of_message)),
            ("model", |m| m.string()),
            ("stop_reason", |m| m.put("null")),
            ("usage", |m| m.anthropic_usage()),
        ]);
    }

    fn block_of_message(&mut self) {
        self.object(&[
            ("type", |m| m.word(&["text", "thinking", "tool_use"])),
            ("text", |m| m.string()),
            ("thinking", |m| m.string()),
            ("name", |m| m.string()),
            ("input", |m| m.object(&[("usage", |m| m.number()), ("text", |m| m.string())])),
        ]);
    }

    fn anthropic_usage(&mut self) {
        self.object(&[
            ("input_tokens", |m| m.number()),
            ("output_tokens", |m| m.number()),
            ("cache_creation_input_tokens", |m| m.number()),
            ("cache_creation", |m| {
                m.object(&[
                    ("ephemeral_5m_input_tokens", |m| m.number()),
                    ("ephemeral_1h_input_tokens", |m| m.number()),
                ]);
            }),
            ("cache_read_input_tokens", |m| m.number()),
            ("output_tokens_details", |m| m.object(&[("thinking_tokens", |m| m.number())])),
            ("service_tier", |m| m.string()),
        ]);
    }
}
