//! Embeddings and rankings: long lists of numbers, and a count somewhere.

use super::Maker;

impl Maker<'_, '_> {
    pub(super) fn prompts(&mut self) {
        self.object(&[
            ("object", |m| m.called("list")),
            ("model", |m| m.string()),
            ("id", |m| m.string()),
            ("data", |m| {
                m.list(|m| m.object(&[("embedding", |m| m.ids()), ("usage", |m| m.usage())]));
            }),
            ("usage", |m| {
                m.object(&[
                    ("prompt_tokens", |m| m.number()),
                    ("total_tokens", |m| m.number()),
                    ("completion_tokens", |m| m.number()),
                ]);
            }),
            ("prompt_eval_count", |m| if m.dice.one_in(6) { m.number() } else { m.put("null") }),
            ("usageMetadata", |m| {
                if m.dice.one_in(6) {
                    m.object(&[("promptTokenCount", |m| m.number())]);
                } else {
                    m.put("{}");
                }
            }),
            ("meta", |m| {
                if m.dice.one_in(6) {
                    m.object(&[("tokens", |m| m.object(&[("input_tokens", |m| m.number())]))]);
                } else {
                    m.put("{}");
                }
            }),
            ("error", |m| m.seldom()),
        ]);
    }
}
