//! The events and answers of Bedrock's Converse.

use super::Maker;

impl Maker<'_, '_> {
    pub(super) fn converse(&mut self, unstreamed: bool) {
        if unstreamed {
            return self.object(&[
                ("output", |m| m.object(&[("message", |m| m.converse_message())])),
                ("stopReason", |m| m.converse_end()),
                ("usage", |m| m.converse_usage()),
                ("metrics", |m| m.object(&[("latencyMs", |m| m.number())])),
                ("serviceTier", |m| m.object(&[("type", |m| m.word(&["default", "priority", "flex"]))])),
                ("error", |m| m.seldom()),
            ]);
        }
        match self.dice.below(6) {
            0 => self.object(&[("role", |m| m.word(&["assistant"])), ("p", |m| m.string())]),
            1 => self.object(&[
                ("contentBlockIndex", |m| m.number()),
                ("start", |m| m.object(&[("toolUse", |m| m.object(&[("name", |m| m.string())]))])),
            ]),
            2 => self.object(&[("stopReason", |m| m.converse_end()), ("p", |m| m.string())]),
            3 => self.object(&[
                ("metrics", |m| m.object(&[("latencyMs", |m| m.number())])),
                ("usage", |m| m.converse_usage()),
                ("serviceTier", |m| m.object(&[("type", |m| m.word(&["default", "priority", "flex"]))])),
            ]),
            _ => self.object(&[
                ("contentBlockIndex", |m| m.number()),
                ("delta", |m| m.converse_delta()),
                ("error", |m| m.seldom()),
            ]),
        }
    }

    fn converse_delta(&mut self) {
        self.object(&[
            ("text", |m| m.string()),
            ("reasoningContent", |m| m.object(&[("text", |m| m.string())])),
            ("toolUse", |m| m.object(&[("input", |m| m.string())])),
        ]);
    }

    fn converse_message(&mut self) {
        self.object(&[
            ("role", |m| m.word(&["assistant"])),
            ("content", |m| {
                m.list(|m| {
                    m.object(&[
                        ("text", |m| m.string()),
                        ("reasoningContent", |m| {
                            m.object(&[("reasoningText", |m| m.object(&[("text", |m| m.string())]))]);
                        }),
                        ("toolUse", |m| m.object(&[("name", |m| m.string())])),
                    ]);
                });
            }),
        ]);
    }

    fn converse_end(&mut self) {
        self.word(&["end_turn", "end_turn", "tool_use", "max_tokens", "guardrail_intervened", "odd"]);
    }

    fn converse_usage(&mut self) {
        self.object(&[
            ("inputTokens", |m| m.number()),
            ("outputTokens", |m| m.number()),
            ("totalTokens", |m| m.number()),
            ("cacheReadInputTokens", |m| m.number()),
            ("cacheWriteInputTokens", |m| m.number()),
        ]);
    }
}
