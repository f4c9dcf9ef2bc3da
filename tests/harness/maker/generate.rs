//! The servers' own `generate` endpoints: TGI, SGLang, LMDeploy, Triton, vLLM's tokens; and frames of unknown shape.

use scan::Dialect;

use super::Maker;

/// The final text of a cumulative answer.
const ANSWER: &str = "A réd ox 😀 runs, and runs, and is not weary.";

impl Maker<'_, '_> {
    pub(super) fn tgi(&mut self, unstreamed: bool) {
        match (unstreamed, self.dice.one_in(4)) {
            (true, true) => self.list(Self::tgi_answer),
            (true, false) => self.tgi_answer(),
            _ => self.object(&[
                ("index", |m| m.number()),
                ("token", |m| {
                    m.object(&[
                        ("id", |m| m.number()),
                        ("text", |m| m.string()),
                        ("special", |m| m.flag()),
                        ("logprob", |m| m.put("-0.2")),
                    ]);
                }),
                ("top_tokens", |m| m.list(|m| m.object(&[("text", |m| m.string())]))),
                ("generated_text", |m| if m.dice.one_in(4) { m.string() } else { m.put("null") }),
                ("details", |m| if m.dice.one_in(3) { m.tgi_details() } else { m.put("null") }),
                ("error", |m| m.seldom()),
            ]),
        }
    }

    fn tgi_answer(&mut self) {
        self.object(&[
            ("generated_text", |m| m.string()),
            ("generated_text", |m| m.string()),
            ("details", |m| m.tgi_details()),
            ("error", |m| m.seldom()),
        ]);
    }

    fn tgi_details(&mut self) {
        self.object(&[
            ("finish_reason", |m| m.word(&["length", "eos_token", "stop_sequence", "odd"])),
            ("generated_tokens", |m| m.number()),
            ("seed", |m| m.number()),
            ("input_length", |m| m.number()),
            ("prefill", |m| m.list(|m| m.object(&[("text", |m| m.string())]))),
            ("tokens", |m| m.list(|m| m.object(&[("text", |m| m.string())]))),
            ("best_of_sequences", |m| m.list(|m| m.object(&[("generated_tokens", |m| m.number())]))),
        ]);
    }

    pub(super) fn generate(&mut self, unstreamed: bool) {
        if unstreamed && self.dice.one_in(3) {
            return self.list(Self::generated);
        }
        self.generated();
    }

    fn generated(&mut self) {
        self.object(&[
            ("text", |m| m.grown()),
            ("output_ids", |m| m.grown_ids()),
            ("meta_info", |m| {
                m.object(&[
                    ("id", |m| m.string()),
                    ("finish_reason", |m| m.matched()),
                    ("prompt_tokens", |m| m.number()),
                    ("completion_tokens", |m| m.grown_count()),
                    ("cached_tokens", |m| m.number()),
                    ("reasoning_tokens", |m| m.number()),
                    ("e2e_latency", |m| m.put("0.25")),
                ]);
            }),
            ("index", |m| {
                let index = *m.dice.of(&["0", "0", "0", "1", "7", "9"]);
                m.put(index);
            }),
            ("object", |m| m.called("text")),
            ("error", |m| m.seldom()),
        ]);
    }

    /// The answer so far, or any text.
    fn grown(&mut self) {
        if self.dialect != Dialect::Sglang || self.dice.one_in(6) {
            return self.string();
        }
        let text: String = ANSWER.chars().take(3 * self.frames).collect();
        self.quote(&text);
    }

    fn grown_ids(&mut self) {
        if self.dialect != Dialect::Sglang || self.dice.one_in(6) {
            return self.ids();
        }
        let ids = vec!["7"; self.frames].join(",");
        self.put(&format!("[{ids}]"));
    }

    fn grown_count(&mut self) {
        if self.dice.one_in(6) {
            return self.number();
        }
        let count = self.frames.to_string();
        self.put(&count);
    }

    fn matched(&mut self) {
        match self.dice.below(4) {
            0 => self.object(&[
                ("type", |m| m.word(&["stop", "length", "abort", "odd"])),
                ("matched", |m| m.number()),
                ("length", |m| m.number()),
            ]),
            1 if self.dialect == Dialect::Lmdeploy => self.word(&["stop", "length", "parse_error"]),
            _ => self.put("null"),
        }
    }

    pub(super) fn triton(&mut self) {
        self.object(&[
            ("model_name", |m| m.string()),
            ("model_version", |m| m.string()),
            ("text_output", |m| m.string()),
            ("text_output", |m| if m.dice.one_in(4) { m.list(Self::string) } else { m.string() }),
            ("sequence_length", |m| m.number()),
            ("error", |m| m.seldom()),
        ]);
    }

    pub(super) fn vllm_tokens(&mut self) {
        self.object(&[
            ("request_id", |m| m.string()),
            ("usage", |m| m.usage()),
            ("choices", |m| {
                m.list(|m| {
                    m.object(&[
                        ("index", |m| m.number()),
                        ("token_ids", |m| m.ids()),
                        ("finish_reason", |m| m.finish()),
                        ("logprobs", |m| m.put("null")),
                    ]);
                });
            }),
            ("output_mode", |m| m.string()),
            ("error", |m| m.seldom()),
        ]);
    }

    /// A frame of unknown shape.
    pub(super) fn anything(&mut self) {
        match self.dice.below(4) {
            0 => {
                let text = *self.dice.of(&["a b c", "12", "true", "[1,2]", "\"x\"", "<x/>", "{\"a\":1}"]);
                self.put(text);
            }
            _ => self.object(&[
                ("usage", |m| m.usage()),
                ("choices", |m| m.list(Self::text_choice)),
                ("model", |m| m.string()),
                ("error", |m| m.rare()),
            ]),
        }
    }
}
