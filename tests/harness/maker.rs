//! Generates bodies similar to a server's from random bytes: plausible frames with implausible values, look-alike keys,
//! repeated keys, odd white space and escapes, other line ends, and streams whose frames differ in a few values only.
//! The same bytes give the same body, so property tests can shrink it and fuzzers can evolve it.

mod anthropic;
mod cohere;
mod converse;
mod gemini;
mod generate;
mod interactions;
mod native;
mod ollama;
mod openai;
mod prompts;
mod realtime;
mod responses;
mod transcription;
mod value;
mod words;

use scan::{Dialect, Framing};

use crate::dice::Dice;
use words::{NUMBERS, STRINGS, token_frames};

/// A generated body and the way to read it.
#[derive(Clone, Debug)]
pub struct Made {
    /// Its approximate dialect.
    pub dialect: Dialect,
    /// Its framing.
    pub framing: Framing,
    /// Its bytes.
    pub body: Vec<u8>,
}

/// Generates a body.
pub fn body(dice: &mut Dice<'_>) -> Made {
    let dialect = *dice.of(&Dialect::ALL);
    let (often, seldom) = match dialect {
        Dialect::OllamaChat | Dialect::OllamaGenerate => (Framing::Ndjson, Framing::Sse),
        Dialect::Embeddings | Dialect::Rerank => (Framing::Json, Framing::Sse),
        _ => (Framing::Sse, Framing::Ndjson),
    };
    let framing = *dice.of(&[often, often, often, Framing::Json, seldom]);
    body_of(dice, dialect, framing)
}

/// Generates a body of this dialect and framing.
pub fn body_of(dice: &mut Dice<'_>, dialect: Dialect, framing: Framing) -> Made {
    let mut maker = Maker { dice, dialect, text: String::new(), frames: 0 };
    match framing {
        Framing::Sse => maker.stream(),
        Framing::Ndjson => maker.lines(),
        Framing::Json => maker.frame(true),
        Framing::Messages | Framing::EventStream => maker.frame(false),
    }
    let mut body = maker.text.into_bytes();
    if dice.one_in(24) {
        let at = dice.below(body.len() + 1);
        body.truncate(at);
    }
    Made { dialect, framing, body }
}

struct Maker<'a, 'b> {
    dice: &'a mut Dice<'b>,
    dialect: Dialect,
    text: String,
    /// Frames generated so far.
    frames: usize,
}

impl Maker<'_, '_> {
    fn stream(&mut self) {
        if self.dice.one_in(16) {
            self.put("\u{FEFF}");
        }
        if self.dice.one_in(3) {
            return self.tokens();
        }
        let blocks = 1 + self.dice.below(8);
        for _ in 0..blocks {
            let end = *self.dice.of(&["\n", "\n", "\n", "\r\n", "\r"]);
            let from = self.text.len();
            self.block(end);
            let block = self.text[from..].to_owned();
            // An answer begins only once.
            let most: &[usize] = if block.contains("_start") { &[0] } else { &[0, 0, 1, 3] };
            for _ in 0..*self.dice.of(most) {
                let again = self.vary(&block);
                self.put(&again);
            }
        }
    }

    /// A typical stream: one frame repeated with other values.
    fn tokens(&mut self) {
        let frame = *self.dice.of(token_frames(self.dialect));
        let end = *self.dice.of(&["\n", "\n", "\r\n", "\r"]);
        let block = format!("data: {frame}{end}{end}");
        self.put(&block);
        self.put(&block);
        for _ in 0..1 + self.dice.below(12) {
            let again = self.vary(&block);
            self.put(&again);
        }
    }

    /// The same block with other values; sometimes with another difference.
    fn vary(&mut self, block: &str) -> String {
        let mut varied = String::new();
        let mut rest = block;
        let values = [
            "\"content\":\"",
            "\"text\":\"",
            "\"reasoning\":\"",
            "\"index\":",
            "tokens\":",
            "_predicted\":",
            "\"delta\":\"",
            "\"thinking\":\"",
            "\"partial_json\":\"",
            "\"response\":\"",
            "\"text_output\":\"",
            "\"arguments\":\"",
            "TokenCount\":",
            "_count\":",
            "BlockIndex\":",
            "sequence_number\":",
        ];
        while let Some((at, value)) = values.iter().filter_map(|v| Some((rest.find(v)?, *v))).min() {
            let (head, tail) = rest.split_at(at + value.len());
            varied.push_str(head);
            let string = value.ends_with('"');
            let old = match string {
                true => tail.find('"').unwrap_or(0),
                false => tail.bytes().take_while(u8::is_ascii_digit).count(),
            };
            let replace = old > 0 && !tail[..old].contains('\\') && !self.dice.one_in(3);
            let made = if string { *self.dice.of(&STRINGS) } else { *self.dice.of(&NUMBERS) };
            varied.push_str(if replace { made } else { &tail[..old] });
            rest = &tail[old..];
        }
        varied.push_str(rest);
        if self.dice.one_in(6) {
            let places: Vec<usize> = varied.char_indices().map(|(at, _)| at).collect();
            let at = *self.dice.of(&places);
            let extra = *self.dice.of(&[" ", "\n", "\r", "\"", "\\", "0", ",", "\n\n", "x", ":"]);
            varied.insert_str(at, extra);
        }
        varied
    }

    fn block(&mut self, end: &str) {
        if self.dice.one_in(40) {
            // Gemini's error: JSON over several lines, without a field name before it.
            for line in ["{", "  \"error\": {", "    \"code\": 503", "  }", "}", ""] {
                self.put(line);
                self.put(end);
            }
            return;
        }
        if self.dice.one_in(8) {
            let line = *self.dice.of(&[
                ": ping",
                "event: message",
                "event: error",
                "id: 7",
                "retry: 1e3",
                "foo",
                "event:",
                "",
                "Data: {}",
                " data: {}",
            ]);
            self.put(line);
            self.put(end);
        }
        let space = *self.dice.of(&[" ", " ", "", "  "]);
        let from = self.text.len();
        match self.dice.below(16) {
            0 => self.put("[DONE]"),
            1 => {
                let odd =
                    *self.dice.of(&["", "null", "[DONE] ", "[DO", "5", "\"x\"", "[]", "[[1]]", "nul", "{"]);
                self.put(odd);
            }
            _ => self.frame(false),
        }
        let payload = self.text.split_off(from);
        self.put("data:");
        self.put(space);
        if self.dice.one_in(10) && !payload.contains(['\n', '\r']) {
            let places: Vec<usize> = payload.match_indices([',', '{', ':', 'O']).map(|(at, _)| at).collect();
            if !places.is_empty() {
                let at = *self.dice.of(&places) + 1;
                self.put(&payload[..at]);
                self.put(end);
                self.put("data: ");
                self.put(&payload[at..]);
            }
        } else {
            self.put(&payload);
        }
        self.put(end);
        if self.dice.one_in(12) {
            let line = *self.dice.of(&[": after", "event: error", "data", "data:"]);
            self.put(line);
            self.put(end);
        }
        self.put(end);
    }

    fn lines(&mut self) {
        for _ in 0..1 + self.dice.below(4) {
            let first = [Dialect::OpenaiChat, Dialect::OpenaiCompletions, Dialect::LlamacppCompletion];
            let unstreamed = first.contains(&self.dialect);
            self.frame(unstreamed);
            let end = *self.dice.of(&["\n", "\n", "\n", "\n", "\r\n", "\n\n", ""]);
            self.put(end);
        }
    }

    fn frame(&mut self, unstreamed: bool) {
        match self.dialect {
            Dialect::OpenaiChat | Dialect::OpenaiCompletions => self.openai(unstreamed),
            Dialect::VllmGenerate => self.vllm_tokens(),
            Dialect::LlamacppCompletion => self.native_frame(),
            Dialect::OpenaiResponses => self.responses(unstreamed),
            Dialect::Anthropic => self.anthropic(unstreamed),
            Dialect::Tgi => self.tgi(unstreamed),
            Dialect::Sglang | Dialect::Lmdeploy => self.generate(unstreamed),
            Dialect::OllamaChat | Dialect::OllamaGenerate => self.ollama(),
            Dialect::Triton => self.triton(),
            Dialect::Gemini => self.gemini(unstreamed),
            Dialect::GeminiInteractions => self.interactions(unstreamed),
            Dialect::Cohere => self.cohere(unstreamed),
            Dialect::BedrockConverse => self.converse(unstreamed),
            Dialect::Embeddings | Dialect::Rerank => self.prompts(),
            Dialect::Transcription => self.transcription(unstreamed),
            Dialect::Realtime => self.realtime(),
            Dialect::Unknown => self.anything(),
        }
        self.frames += 1;
    }

    fn put(&mut self, text: &str) {
        self.text.push_str(text);
    }

    fn gap(&mut self) {
        if self.dice.one_in(12) {
            let gap = *self.dice.of(&[" ", "  ", "\t"]);
            self.put(gap);
        }
    }
}
