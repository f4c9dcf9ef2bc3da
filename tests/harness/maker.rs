//! Makes bodies that look like a server's out of random bytes: plausible frames with implausible
//! values, look-alike keys, doubled keys, odd white space and escapes, other line ends, and streams
//! whose frames differ in a few values only. The same bytes make the same body, so that property
//! tests can shrink it and fuzzers can learn it.

mod words;

use scan::{Dialect, Framing};

use crate::dice::Dice;
use words::{CHAT_FRAMES, LOOK_ALIKES, NATIVE_FRAMES, NUMBERS, OTHERS, STRINGS, TEXT_FRAMES};

/// A made body and how it is to be read.
#[derive(Clone, Debug)]
pub struct Made {
    /// The JSON shape it has, more or less.
    pub dialect: Dialect,
    /// Its framing.
    pub framing: Framing,
    /// Its bytes.
    pub body: Vec<u8>,
}

/// The dialects whose bodies are made.
pub const MADE: [Dialect; 3] = [Dialect::OpenaiChat, Dialect::OpenaiCompletions, Dialect::LlamacppCompletion];

/// Makes a body.
pub fn body(dice: &mut Dice<'_>) -> Made {
    let dialect = *dice.of(&MADE);
    let framing = *dice.of(&[Framing::Sse, Framing::Sse, Framing::Sse, Framing::Json, Framing::Ndjson]);
    let mut maker = Maker { dice, dialect, text: String::new() };
    match framing {
        Framing::Sse => maker.stream(),
        Framing::Ndjson => maker.lines(),
        Framing::Json => maker.frame(true),
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
}

/// A member's name and what makes its value.
type Member<Maker> = (&'static str, fn(&mut Maker));

impl Maker<'_, '_> {
    fn put(&mut self, text: &str) {
        self.text.push_str(text);
    }

    fn gap(&mut self) {
        if self.dice.one_in(12) {
            let gap = *self.dice.of(&[" ", "  ", "\t"]);
            self.put(gap);
        }
    }

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
            for _ in 0..*self.dice.of(&[0, 0, 1, 3]) {
                let again = self.vary(&block);
                self.put(&again);
            }
        }
    }

    /// What servers really send: one frame again and again, with other values.
    fn tokens(&mut self) {
        let frame = *self.dice.of(match self.dialect {
            Dialect::OpenaiChat => &CHAT_FRAMES[..],
            Dialect::OpenaiCompletions => &TEXT_FRAMES[..],
            _ => &NATIVE_FRAMES[..],
        });
        let end = *self.dice.of(&["\n", "\n", "\r\n", "\r"]);
        let block = format!("data: {frame}{end}{end}");
        self.put(&block);
        self.put(&block);
        for _ in 0..1 + self.dice.below(12) {
            let again = self.vary(&block);
            self.put(&again);
        }
    }

    /// The same block with other values; now and then with one more difference.
    fn vary(&mut self, block: &str) -> String {
        let mut varied = String::new();
        let mut rest = block;
        let values =
            ["\"content\":\"", "\"text\":\"", "\"reasoning\":\"", "\"index\":", "tokens\":", "_predicted\":"];
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
            self.frame(true);
            let end = *self.dice.of(&["\n", "\n", "\r\n", "\n\n", ""]);
            self.put(end);
        }
    }

    fn frame(&mut self, unstreamed: bool) {
        match self.dialect {
            Dialect::LlamacppCompletion if self.dice.one_in(8) => {
                self.list(|maker| maker.native());
            }
            Dialect::LlamacppCompletion => self.native(),
            _ => self.openai(unstreamed),
        }
    }

    fn openai(&mut self, unstreamed: bool) {
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
            ("object", |m| m.string()),
            ("error", |m| m.rare()),
            ("timings", |m| m.timings()),
            ("prompt_progress", |m| m.rare()),
        ]);
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

    fn text_choice(&mut self) {
        self.object(&[
            ("text", |m| m.string()),
            ("index", |m| m.number()),
            ("logprobs", |m| m.logprobs()),
            ("finish_reason", |m| m.finish()),
            ("token_ids", |m| m.ids()),
        ]);
    }

    fn delta(&mut self) {
        self.object(&[
            ("content", |m| m.string()),
            ("content", |m| m.string()),
            ("content", |m| m.string()),
            ("role", |m| m.string()),
            ("content", |m| m.list(|m| m.object(&[("text", |m| m.string())]))),
            ("reasoning", |m| m.string()),
            ("reasoning_content", |m| m.string()),
            ("refusal", |m| m.string()),
            ("audio", |m| m.object(&[("data", |m| m.string())])),
            ("tool_calls", |m| m.list(|m| m.call())),
            ("function_call", |m| m.function()),
        ]);
    }

    fn call(&mut self) {
        self.object(&[("function", |m| m.function()), ("index", |m| m.number())]);
    }

    fn function(&mut self) {
        self.object(&[("name", |m| m.string()), ("arguments", |m| m.string())]);
    }

    fn usage(&mut self) {
        self.object(&[
            ("prompt_tokens", |m| m.number()),
            ("completion_tokens", |m| m.number()),
            ("total_tokens", |m| m.number()),
            ("prompt_tokens_details", |m| {
                m.object(&[
                    ("cached_tokens", |m| m.number()),
                    ("cache_write_tokens", |m| m.number()),
                    ("created_cache_tokens", |m| m.number()),
                ]);
            }),
            ("completion_tokens_details", |m| {
                m.object(&[("reasoning_tokens", |m| m.number()), ("audio_tokens", |m| m.number())]);
            }),
            ("reasoning_tokens", |m| m.number()),
        ]);
    }

    fn timings(&mut self) {
        self.object(&[
            ("predicted_n", |m| m.number()),
            ("prompt_n", |m| m.number()),
            ("cache_n", |m| m.number()),
            ("predicted_ms", |m| m.number()),
        ]);
    }

    fn native(&mut self) {
        self.object(&[
            ("content", |m| m.string()),
            ("content", |m| m.string()),
            ("index", |m| m.number()),
            ("tokens", |m| m.ids()),
            ("stop", |m| m.rare()),
            ("tokens_predicted", |m| m.number()),
            ("tokens_evaluated", |m| m.number()),
            ("stop_type", |m| m.finish()),
            ("timings", |m| m.timings()),
            ("completion_probabilities", |m| m.list(|m| m.number())),
            ("model", |m| m.string()),
            ("prompt_progress", |m| m.rare()),
            ("error", |m| m.rare()),
        ]);
    }

    fn logprobs(&mut self) {
        self.object(&[("content", |m| m.ids()), ("tokens", |m| m.ids())]);
    }

    fn ids(&mut self) {
        self.list(|maker| maker.number());
    }

    fn finish(&mut self) {
        if self.dice.one_in(2) { self.string() } else { self.put("null") }
    }

    /// A string, or now and then something else.
    fn string(&mut self) {
        if self.dice.one_in(10) {
            return self.other();
        }
        let text = *self.dice.of(&STRINGS);
        self.put("\"");
        self.put(text);
        self.put("\"");
    }

    /// A number, or now and then something else.
    fn number(&mut self) {
        if self.dice.one_in(12) {
            return self.other();
        }
        let some = if self.dice.one_in(4) { &NUMBERS[..] } else { &NUMBERS[..5] };
        let number = *self.dice.of(some);
        self.put(number);
    }

    /// What is mostly `null`.
    fn rare(&mut self) {
        match self.dice.below(4) {
            0 => self.put("null"),
            1 => self.put("false"),
            _ => self.other(),
        }
    }

    fn other(&mut self) {
        match self.dice.below(4) {
            0 => {
                let other = *self.dice.of(&OTHERS);
                self.put(other);
            }
            1 => self.put("\"\""),
            2 => self.put("7"),
            _ => self.put(r#"{"message":"x"}"#),
        }
    }

    fn list(&mut self, mut element: impl FnMut(&mut Self)) {
        if self.dice.one_in(16) {
            return self.other();
        }
        self.put("[");
        self.gap();
        let len = *self.dice.of(&[1, 1, 1, 0, 2, 3, 9]);
        for n in 0..len {
            if n > 0 {
                self.put(",");
                self.gap();
            }
            if self.dice.one_in(24) { self.other() } else { element(self) }
        }
        self.put("]");
    }

    /// An object with some of the members, mostly in order, look-alikes between them.
    fn object(&mut self, members: &[Member<Self>]) {
        if self.dice.one_in(40) {
            return self.other();
        }
        self.put("{");
        self.gap();
        let mut first = true;
        let skip = *self.dice.of(&[2, 2, 3, 4]);
        let turn = if self.dice.one_in(6) { self.dice.below(members.len()) } else { 0 };
        for n in 0..members.len() {
            let (name, value) = members[(n + turn) % members.len()];
            if n > 0 && self.dice.one_in(skip) {
                continue;
            }
            if !std::mem::take(&mut first) {
                self.put(",");
                self.gap();
            }
            if self.dice.one_in(20) {
                let like = *self.dice.of(&LOOK_ALIKES);
                self.put(like);
                self.put(",");
            }
            self.key(name);
            self.gap();
            self.put(":");
            self.gap();
            value(self);
        }
        self.gap();
        self.put("}");
    }

    fn key(&mut self, name: &str) {
        self.put("\"");
        if self.dice.one_in(30) {
            let at = self.dice.below(name.len());
            let escaped = format!("{}\\u{:04x}{}", &name[..at], name.as_bytes()[at], &name[at + 1..]);
            self.put(&escaped);
        } else {
            self.put(name);
        }
        self.put("\"");
    }
}
