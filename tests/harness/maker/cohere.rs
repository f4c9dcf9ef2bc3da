//! Cohere's chat: events with a `type`, counts as floats.

use super::Maker;

const ENDS: [&str; 6] = ["COMPLETE", "STOP_SEQUENCE", "MAX_TOKENS", "TOOL_CALL", "ERROR", "odd"];

impl Maker<'_, '_> {
    pub(super) fn cohere(&mut self, unstreamed: bool) {
        if unstreamed {
            return self.object(&[
                ("id", |m| m.string()),
                ("message", |m| {
                    m.object(&[
                        ("role", |m| m.string()),
                        ("content", |m| m.list(|m| m.object(&[("text", |m| m.string())]))),
                    ]);
                }),
                ("finish_reason", |m| m.word(&ENDS)),
                ("usage", |m| m.cohere_usage()),
            ]);
        }
        match self.dice.below(8) {
            0 => self.typed(
                "message-end",
                &[("delta", |m| {
                    m.object(&[("finish_reason", |m| m.word(&ENDS)), ("usage", |m| m.cohere_usage())]);
                })],
            ),
            1 => {
                let kind = *self.dice.of(&["message-start", "content-start", "content-end", "odd"]);
                self.typed(kind, &[("index", |m| m.number()), ("error", |m| m.seldom())]);
            }
            2 => {
                let kind = *self.dice.of(&["tool-call-start", "tool-call-delta"]);
                self.cohere_delta(kind, |m| {
                    m.object(&[("tool_calls", |m| {
                        m.object(&[("function", |m| {
                            m.object(&[("name", |m| m.string()), ("arguments", |m| m.string())]);
                        })]);
                    })]);
                });
            }
            3 => self.cohere_delta("tool-plan-delta", |m| m.object(&[("tool_plan", |m| m.string())])),
            _ => self.cohere_delta("content-delta", |m| {
                m.object(&[("content", |m| {
                    m.object(&[("text", |m| m.string()), ("thinking", |m| m.string())]);
                })]);
            }),
        }
    }

    fn cohere_delta(&mut self, kind: &str, message: fn(&mut Self)) {
        self.put("{\"type\":");
        self.quote(kind);
        self.put(",\"index\":0,\"delta\":{\"message\":");
        message(self);
        self.put("}}");
    }

    fn cohere_usage(&mut self) {
        self.object(&[
            ("billed_units", |m| m.object(&[("input_tokens", |m| m.number())])),
            ("tokens", |m| m.object(&[("input_tokens", |m| m.number()), ("output_tokens", |m| m.number())])),
            ("cached_tokens", |m| m.number()),
        ]);
    }
}
