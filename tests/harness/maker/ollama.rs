//! Ollama's own lines.

use scan::Dialect;

use super::Maker;

impl Maker<'_, '_> {
    pub(super) fn ollama(&mut self) {
        if self.dice.one_in(3) {
            return self.ollama_last();
        }
        match self.dialect {
            Dialect::OllamaChat => self.object(&[
                ("model", |m| m.string()),
                ("created_at", |m| m.string()),
                ("message", |m| m.ollama_message()),
                ("message", |m| m.ollama_message()),
                ("done", |m| m.put("false")),
                ("logprobs", |m| if m.dice.one_in(4) { m.ids() } else { m.put("null") }),
                ("error", |m| m.seldom()),
            ]),
            _ => self.object(&[
                ("model", |m| m.string()),
                ("created_at", |m| m.string()),
                ("response", |m| m.string()),
                ("response", |m| m.string()),
                ("thinking", |m| m.string()),
                ("done", |m| m.put("false")),
                ("logprobs", |m| if m.dice.one_in(4) { m.ids() } else { m.put("null") }),
                ("error", |m| m.seldom()),
            ]),
        }
    }

    fn ollama_last(&mut self) {
        self.object(&[
            ("model", |m| m.string()),
            ("message", |m| m.ollama_message()),
            ("response", |m| m.string()),
            ("done", |m| m.flag()),
            ("done_reason", |m| m.word(&["stop", "stop", "length", "load", "unload", "odd"])),
            ("context", |m| m.ids()),
            ("total_duration", |m| m.number()),
            ("load_duration", |m| m.number()),
            ("prompt_eval_count", |m| m.number()),
            ("prompt_eval_duration", |m| m.number()),
            ("eval_count", |m| m.number()),
            ("eval_duration", |m| m.number()),
            ("error", |m| m.seldom()),
        ]);
    }

    fn ollama_message(&mut self) {
        self.object(&[
            ("role", |m| m.word(&["assistant"])),
            ("content", |m| m.string()),
            ("content", |m| m.string()),
            ("thinking", |m| m.string()),
            ("tool_calls", |m| {
                m.list(|m| {
                    m.object(&[("function", |m| {
                        m.object(&[
                            ("index", |m| m.number()),
                            ("name", |m| m.string()),
                            ("arguments", |m| {
                                m.object(&[
                                    ("usage", |m| m.usage()),
                                    ("done", |m| m.flag()),
                                    ("eval_count", |m| m.number()),
                                ]);
                            }),
                        ]);
                    })]);
                });
            }),
        ]);
    }
}
