//! Gemini's interactions: events with an `event_type`; the last one has the counts.

use super::Maker;

impl Maker<'_, '_> {
    pub(super) fn interactions(&mut self, unstreamed: bool) {
        if unstreamed {
            return self.interaction();
        }
        match self.dice.below(8) {
            0 => {
                let kind = *self.dice.of(&["interaction.created", "interaction.start"]);
                self.event(kind, &[("interaction", |m| m.interaction()), ("event_id", |m| m.string())]);
            }
            1 => {
                let kind = *self.dice.of(&["interaction.completed", "interaction.complete"]);
                self.event(kind, &[("interaction", |m| m.interaction()), ("error", |m| m.seldom())]);
            }
            2 => {
                let kinds =
                    ["interaction.status_update", "step.start", "step.stop", "content.start", "error"];
                let kind = *self.dice.of(&kinds);
                self.event(
                    kind,
                    &[
                        ("index", |m| m.number()),
                        ("step", |m| m.step()),
                        ("usage", |m| m.interaction_usage()),
                        ("error", |m| m.seldom()),
                    ],
                );
            }
            _ => {
                let kind = *self.dice.of(&["step.delta", "step.delta", "content.delta"]);
                self.event(
                    kind,
                    &[
                        ("index", |m| m.number()),
                        ("delta", |m| m.interaction_delta()),
                        ("metadata", |m| m.object(&[("total_usage", |m| m.interaction_usage())])),
                    ],
                );
            }
        }
    }

    fn event(&mut self, kind: &str, members: &[super::value::Member<Self>]) {
        self.typed_by("event_type", kind, members);
    }

    fn interaction_delta(&mut self) {
        match self.dice.below(4) {
            0 => self.object(&[("content", |m| m.object(&[("text", |m| m.string())]))]),
            1 => self.object(&[("arguments", |m| m.string()), ("name", |m| m.string())]),
            2 => self.object(&[("type", |m| m.word(&["audio"])), ("data", |m| m.string())]),
            _ => self.object(&[("type", |m| m.word(&["text"])), ("text", |m| m.string())]),
        }
    }

    fn interaction(&mut self) {
        let content = *self.dice.of(&["steps", "steps", "outputs"]);
        self.object(&[
            ("id", |m| m.string()),
            ("model", |m| m.string()),
            ("service_tier", |m| m.tier()),
            ("status", |m| {
                m.word(&[
                    "completed",
                    "completed",
                    "incomplete",
                    "requires_action",
                    "failed",
                    "cancelled",
                    "in_progress",
                    "odd",
                ]);
            }),
            (content, |m| m.list(Self::step)),
            ("usage", |m| m.interaction_usage()),
        ]);
    }

    fn step(&mut self) {
        self.object(&[
            ("type", |m| m.word(&["model_output", "thought", "function_call"])),
            ("text", |m| m.string()),
            ("content", |m| m.list(|m| m.object(&[("text", |m| m.string())]))),
            ("summary", |m| m.list(|m| m.object(&[("text", |m| m.string())]))),
            ("name", |m| m.string()),
        ]);
    }

    fn interaction_usage(&mut self) {
        self.object(&[
            ("total_input_tokens", |m| m.number()),
            ("total_tool_use_tokens", |m| m.number()),
            ("total_cached_tokens", |m| m.number()),
            ("total_output_tokens", |m| m.number()),
            ("total_thought_tokens", |m| m.number()),
            ("total_tokens", |m| m.number()),
            ("input_tokens_by_modality", |m| m.list(Self::modality)),
            ("cached_tokens_by_modality", |m| m.list(Self::modality)),
            ("output_tokens_by_modality", |m| m.list(Self::modality)),
        ]);
    }

    fn modality(&mut self) {
        self.object(&[
            ("modality", |m| m.word(&["text", "audio", "image", "video"])),
            ("tokens", |m| m.number()),
        ]);
    }
}
