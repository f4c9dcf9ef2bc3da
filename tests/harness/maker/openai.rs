//! Frames with a list `choices`: chat, completions, vLLM's token-in, token-out.

use scan::Dialect;

use super::Maker;
use super::value::Member;

impl Maker<'_, '_> {
    pub(super) fn openai(&mut self, unstreamed: bool) {
        let choices: fn(&mut Self) = match (self.dialect, unstreamed) {
            (Dialect::OpenaiChat, true) => |m| m.list(Self::whole_choice),
            (Dialect::OpenaiChat, false) => |m| m.list(Self::chat_choice),
            _ => |m| m.list(Self::text_choice),
        };
        self.object(&[
            ("choices", choices),
            ("choices", choices),
            ("usage", |m| m.usage()),
            ("model", |m| m.string()),
            ("id", |m| m.string()),
            ("object", |m| m.called("chat.completion.chunk")),
            ("error", |m| m.rare()),
            ("timings", |m| m.timings()),
            ("prompt_progress", |m| m.seldom()),
            ("metrics", |m| m.metrics()),
            ("service_tier", |m| m.tier()),
            ("x_provider", |m| m.own_usage()),
        ]);
    }

    /// A member of a provider, sometimes with the usage.
    fn own_usage(&mut self) {
        if self.dice.one_in(4) {
            self.object(&[("id", |m| m.string()), ("usage", |m| m.usage())]);
        } else {
            self.put("{}");
        }
    }

    fn usage_of_choice(&mut self) {
        if self.dice.one_in(4) { self.counts_with(&[]) } else { self.put("null") }
    }

    fn seldom_number(&mut self) {
        if self.dice.one_in(4) { self.number() } else { self.put("null") }
    }

    fn chat_choice(&mut self) {
        self.object(&[
            ("delta", |m| m.delta()),
            ("delta", |m| m.delta()),
            ("index", |m| m.number()),
            ("index", |m| m.number()),
            ("finish_reason", |m| m.finish()),
            ("token_ids", |m| m.ids()),
            ("logprobs", |m| m.logprobs()),
            ("usage", |m| m.usage_of_choice()),
            ("output_ids", |m| if m.dice.one_in(8) { m.ids() } else { m.put("null") }),
        ]);
    }

    fn whole_choice(&mut self) {
        self.object(&[
            ("message", |m| m.delta()),
            ("index", |m| m.number()),
            ("finish_reason", |m| m.finish()),
            ("logprobs", |m| m.logprobs()),
            ("token_ids", |m| m.ids()),
        ]);
    }

    pub(super) fn text_choice(&mut self) {
        self.object(&[
            ("text", |m| m.string()),
            ("index", |m| m.number()),
            ("logprobs", |m| m.logprobs()),
            ("finish_reason", |m| m.finish()),
            ("token_ids", |m| m.ids()),
        ]);
    }

    fn delta(&mut self) {
        if self.dice.one_in(2) {
            return self.object(&[
                ("role", |m| m.string()),
                ("content", |m| m.string()),
                ("reasoning", |m| if m.dice.one_in(3) { m.string() } else { m.put("null") }),
            ]);
        }
        self.object(&[
            ("content", |m| m.content()),
            ("content", |m| m.string()),
            ("role", |m| m.string()),
            ("reasoning", |m| m.string()),
            ("reasoning_content", |m| m.string()),
            ("refusal", |m| m.string()),
            ("audio", |m| m.object(&[("data", |m| m.string())])),
            ("tool_calls", |m| m.list(|m| m.call())),
            ("function_call", |m| m.function()),
        ]);
    }

    /// Text, or sometimes a list of its parts.
    fn content(&mut self) {
        if self.dice.one_in(4) {
            return self.list(|m| m.object(&[("text", |m| m.string())]));
        }
        self.string();
    }

    /// vLLM's times.
    pub(super) fn metrics(&mut self) {
        if self.dice.below(4) > 0 {
            return self.put("null");
        }
        self.object(&[
            ("time_to_first_token_ms", |m| m.time()),
            ("generation_time_ms", |m| m.time()),
            ("queue_time_ms", |m| m.time()),
        ]);
    }

    /// A time, or sometimes another number.
    pub(super) fn time(&mut self) {
        if self.dice.one_in(4) {
            return self.number();
        }
        let time = *self.dice.of(&["0.5", "12.25", "3", "0.0000004", "1e-3", "2721.123456789"]);
        self.put(time);
    }

    fn call(&mut self) {
        self.object(&[("function", |m| m.function()), ("index", |m| m.number())]);
    }

    fn function(&mut self) {
        self.object(&[("name", |m| m.string()), ("arguments", |m| m.string())]);
    }

    pub(super) fn usage(&mut self) {
        self.counts_with(&[("total_prompt_time_sec", |m| {
            if m.dice.one_in(8) { m.time() } else { m.put("null") }
        })]);
    }

    /// A usage with further members. That of a choice has no times: the oracle does not see a list of choices that a
    /// second one replaces.
    fn counts_with(&mut self, more: &[Member<Self>]) {
        let counts: &[Member<Self>] = &[
            ("prompt_tokens", |m| m.number()),
            ("completion_tokens", |m| m.number()),
            ("total_tokens", |m| m.number()),
            ("prompt_tokens_details", |m| {
                m.object(&[
                    ("cached_tokens", |m| m.number()),
                    ("cache_write_tokens", |m| m.number()),
                    ("cache_creation_token_details", |m| {
                        m.object(&[("ephemeral_1h_input_tokens", |m| m.number())]);
                    }),
                    ("created_cache_tokens", |m| m.number()),
                    ("audio_tokens", |m| m.number()),
                    ("image_tokens", |m| m.number()),
                    ("multimodal_tokens", |m| {
                        m.object(&[
                            ("audio", |m| m.number()),
                            ("image", |m| m.number()),
                            ("video", |m| m.number()),
                        ]);
                    }),
                ]);
            }),
            ("completion_tokens_details", |m| {
                m.object(&[
                    ("reasoning_tokens", |m| m.number()),
                    ("audio_tokens", |m| m.number()),
                    ("image_tokens", |m| m.number()),
                ]);
            }),
            ("reasoning_tokens", |m| m.number()),
            ("cached_tokens", |m| m.seldom_number()),
            ("prompt_cache_hit_tokens", |m| m.seldom_number()),
            ("input_tokens_details", |m| m.object(&[("image_tokens", |m| m.seldom_number())])),
        ];
        self.object(&[counts, more].concat());
    }

    pub(super) fn tier(&mut self) {
        self.word(&["auto", "default", "flex", "", "a-word-that-is-longer-than-any-tier-is"]);
    }

    pub(super) fn timings(&mut self) {
        self.object(&[
            ("predicted_n", |m| m.number()),
            ("prompt_n", |m| m.number()),
            ("cache_n", |m| m.number()),
            ("predicted_ms", |m| m.time()),
            ("prompt_ms", |m| m.time()),
        ]);
    }

    pub(super) fn logprobs(&mut self) {
        self.object(&[("content", |m| m.ids()), ("tokens", |m| m.ids())]);
    }

    pub(super) fn finish(&mut self) {
        if self.dice.one_in(2) { self.string() } else { self.put("null") }
    }
}
