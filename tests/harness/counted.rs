//! Generates event streams with requested usage: several answers, usage at the end, after each answer or in every
//! frame, members in any order, other line ends, comments and other lines at any allowed place. The same bytes give the
//! same stream.

use usage::AddedOptions;

use crate::dice::Dice;

/// A generated stream.
#[derive(Clone, Debug)]
pub struct Made {
    /// The options that the proxy added to its request.
    pub added: AddedOptions,
    /// Its bytes.
    pub body: Vec<u8>,
    /// True if a usage event precedes the first finish.
    pub early: bool,
}

/// Usage objects with difficult ends.
const COUNTS: [&str; 7] = [
    r#"{"prompt_tokens":4,"completion_tokens":2,"total_tokens":6}"#,
    r#"{}"#,
    r#"{ "completion_tokens" : 7 , "prompt_tokens_details" : { "cached_tokens" : 1 } }"#,
    r#"{"x":"},\"usage\":{","prompt_tokens":1}"#,
    r#"{"x":[{},{"usage":{}}],"completion_tokens":3,"y":null}"#,
    r#"{"cache_n":1,"prompt_n":3,"prompt_ms":0.4,"predicted_n":2,"predicted_ms":1e-3}"#,
    "{\"é\":\"😀\\\\\",\"completion_tokens\":1}",
];

/// Usage of servers without running counts.
const NOTHING: [&str; 4] = ["", "null", r#"{"prompt_tokens":0,"completion_tokens":0}"#, ""];

/// Other members of a frame.
const OTHERS: [&str; 6] = [
    r#""id":"x,\"usage\":{}""#,
    r#""model":"m""#,
    r#""created":17"#,
    r#""metadata":{"usage":{"completion_tokens":9},"choices":[]}"#,
    r#""list":[1,{"a":"}"}]"#,
    r#""system_fingerprint":null"#,
];

/// Generates a stream.
pub fn stream(dice: &mut Dice<'_>) -> Made {
    let end = AddedOptions { include: true, ..AddedOptions::default() };
    let both = AddedOptions { continuous: true, ..end };
    let timings = AddedOptions { timings: true, ..AddedOptions::default() };
    let added = *dice.of(&[
        end,
        both,
        AddedOptions { include: false, ..both },
        timings,
        AddedOptions { timings: true, ..end },
    ]);
    let end = *dice.of(&["\n", "\n", "\r\n", "\r"]);
    let mut maker = Maker { dice, end, text: String::new() };
    let early = maker.stream(added);
    let mut body = maker.text.into_bytes();
    if dice.one_in(12) {
        let at = dice.below(body.len() + 1);
        body.truncate(at);
    }
    Made { added, body, early }
}

struct Maker<'a, 'b> {
    dice: &'a mut Dice<'b>,
    end: &'static str,
    text: String,
}

impl Maker<'_, '_> {
    /// Generates the frames; returns true if a usage event precedes the first finish.
    fn stream(&mut self, added: AddedOptions) -> bool {
        if self.dice.one_in(16) {
            self.text.push('\u{FEFF}');
        }
        let answers = 1 + self.dice.below(3);
        let counts_each = self.dice.one_in(3);
        // A server that does not support the requested running counts.
        let running = (added.is_running() && !self.dice.one_in(4)).then_some(match added.timings {
            true => "timings",
            false => "usage",
        });
        let early = self.dice.one_in(8);
        for answer in 0..answers {
            self.frame(&choice(answer, r#"{"role":"assistant","content":""}"#, false), running, "");
        }
        if early {
            self.usage();
        }
        for answer in 0..answers {
            for _ in 0..self.dice.below(4) {
                let text = *self.dice.of(&["a", "\\\"usage\\\":{}", " é😀", "\\n"]);
                let delta = format!(r#"{{"content":"{text}"}}"#);
                self.frame(&choice(answer, &delta, false), running, "");
            }
            let own = if self.dice.one_in(6) { *self.dice.of(&COUNTS) } else { "" };
            self.frame(&choice(answer, "{}", true), running, own);
            if counts_each {
                self.usage();
            }
        }
        if !counts_each {
            self.usage();
        }
        self.event(vec!["[DONE]".to_owned()]);
        early
    }

    fn usage(&mut self) {
        let counts = *self.dice.of(&COUNTS);
        let choices = *self.dice.of(&[
            r#""choices":[]"#,
            r#""choices":[]"#,
            r#""choices":[{"index":0,"delta":{}}]"#,
            r#""choices":[{"index":1}]"#,
        ]);
        self.object(choices, "usage", counts);
    }

    /// A frame with answers; `own` is usage that the server sends without a request.
    fn frame(&mut self, choices: &str, running: Option<&str>, own: &str) {
        let (key, counts) = match running {
            Some(key) => (key, *self.dice.of(&COUNTS)),
            None if own.is_empty() => ("usage", *self.dice.of(&NOTHING)),
            None => ("usage", own),
        };
        self.object(choices, key, counts);
    }

    /// An event with these members and some others in its payload.
    fn object(&mut self, choices: &str, key: &str, usage: &str) {
        let mut members = vec![choices.to_owned()];
        for _ in 0..self.dice.below(3) {
            let other = *self.dice.of(&OTHERS);
            if members.iter().all(|member| member != other) {
                members.insert(self.dice.below(members.len() + 1), other.to_owned());
            }
        }
        if !usage.is_empty() {
            let colon = *self.dice.of(&[":", ":", " : "]);
            let key = if self.dice.one_in(12) {
                key.replacen('a', "\\u0061", 1).replacen('t', "\\u0074", 1)
            } else {
                key.to_owned()
            };
            let at = self.dice.below(members.len() + 1);
            members.insert(at, format!("\"{key}\"{colon}{usage}"));
        }
        let mut lines = vec!["{".to_owned()];
        for (number, member) in members.iter().enumerate() {
            if number > 0 {
                self.gap(&mut lines);
                self.put(&mut lines, ",");
            }
            self.gap(&mut lines);
            self.put(&mut lines, member);
        }
        self.gap(&mut lines);
        self.put(&mut lines, "}");
        self.event(lines);
    }

    fn put(&self, lines: &mut [String], text: &str) {
        lines.last_mut().expect("at least one line").push_str(text);
    }

    /// White space, or another data line.
    fn gap(&mut self, lines: &mut Vec<String>) {
        match self.dice.below(24) {
            20 => self.put(lines, " "),
            21 => self.put(lines, "\t "),
            22 => lines.push(String::new()),
            23 => lines.push(" ".to_owned()),
            _ => {}
        }
    }

    /// An event with these lines of data, and other allowed lines around them.
    fn event(&mut self, data: Vec<String>) {
        for around in ["", ": ping\n", ": ping\n\n", "\n", "id: 3\n\n"] {
            if self.dice.one_in(24) {
                self.lines(around);
            }
        }
        let name = *self.dice.of(&["data: ", "data: ", "data:", "data:  "]);
        for line in data {
            for within in [": in\n", "event: message\n", "id: 7\n", "foo\n", ":\n"] {
                if self.dice.one_in(24) {
                    self.lines(within);
                }
            }
            self.text.push_str(name);
            self.text.push_str(&line);
            self.lines("\n");
        }
        if self.dice.one_in(24) {
            self.lines(": after\n");
        }
        self.lines("\n");
    }

    fn lines(&mut self, text: &str) {
        self.text.push_str(&text.replace('\n', self.end));
    }
}

fn choice(index: usize, delta: &str, finish: bool) -> String {
    let reason = if finish { "\"stop\"" } else { "null" };
    format!(r#""choices":[{{"index":{index},"delta":{delta},"finish_reason":{reason}}}]"#)
}
