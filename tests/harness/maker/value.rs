//! Values: mostly of the expected type, sometimes others; objects with some of their members, mostly in order,
//! look-alikes between them, keys escaped or repeated.

use super::Maker;
use super::words::{LOOK_ALIKES, NUMBERS, OTHERS, STRINGS};

/// A member's name and the generator of its value.
pub(super) type Member<Maker> = (&'static str, fn(&mut Maker));

impl Maker<'_, '_> {
    pub(super) fn ids(&mut self) {
        self.list(|maker| maker.number());
    }

    /// A string, or sometimes another value.
    pub(super) fn string(&mut self) {
        if self.dice.one_in(10) {
            return self.other();
        }
        let text = *self.dice.of(&STRINGS);
        self.put("\"");
        self.put(text);
        self.put("\"");
    }

    /// A number, or sometimes another value.
    pub(super) fn number(&mut self) {
        if self.dice.one_in(12) {
            return self.other();
        }
        let some = if self.dice.one_in(4) { &NUMBERS[..] } else { &NUMBERS[..5] };
        let number = *self.dice.of(some);
        self.put(number);
    }

    /// A value that is mostly `null`.
    pub(super) fn rare(&mut self) {
        match self.dice.below(4) {
            0 => self.put("null"),
            1 => self.put("false"),
            _ => self.other(),
        }
    }

    pub(super) fn other(&mut self) {
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

    pub(super) fn list(&mut self, mut element: impl FnMut(&mut Self)) {
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
    pub(super) fn object(&mut self, members: &[Member<Self>]) {
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

    pub(super) fn key(&mut self, name: &str) {
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

    /// A word of a dialect, or sometimes another string, or `null`.
    pub(super) fn word(&mut self, words: &[&str]) {
        match self.dice.below(12) {
            0 => self.string(),
            1 => self.put("null"),
            _ => {
                let word = *self.dice.of(words);
                self.quote(word);
            }
        }
    }

    /// The type of a frame; sometimes an error.
    pub(super) fn called(&mut self, name: &str) {
        let name = if self.dice.one_in(16) { "error" } else { name };
        self.quote(name);
    }

    /// `true`, or another value.
    pub(super) fn flag(&mut self) {
        let flag = *self.dice.of(&["true", "true", "false", "null", "1", "\"true\""]);
        self.put(flag);
    }

    /// A constant string.
    pub(super) fn quote(&mut self, text: &str) {
        self.put("\"");
        self.put(text);
        self.put("\"");
    }

    /// An object with its `type` first, or sometimes last.
    pub(super) fn typed(&mut self, kind: &str, members: &[Member<Self>]) {
        self.typed_by("type", kind, members);
    }

    /// As [`typed`](Self::typed), with this member in the place of `type`.
    pub(super) fn typed_by(&mut self, member: &str, kind: &str, members: &[Member<Self>]) {
        let last = self.dice.one_in(4);
        self.put("{");
        if !last {
            self.quote(member);
            self.put(":");
            self.quote(kind);
        }
        for (n, (name, value)) in members.iter().enumerate() {
            if self.dice.one_in(8) {
                continue;
            }
            let first = last && self.text.ends_with('{');
            if !first {
                self.put(",");
            }
            if n > 0 && self.dice.one_in(20) {
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
        if last {
            if !self.text.ends_with('{') {
                self.put(",");
            }
            self.quote(member);
            self.put(":");
            self.quote(kind);
        }
        self.put("}");
    }

    /// Sometimes an error beside the rest; mostly none.
    pub(super) fn seldom(&mut self) {
        if self.dice.one_in(12) { self.rare() } else { self.put("null") }
    }
}
