//! The facts of one answer in a frame.

use crate::dialect::Dialect;
use crate::event::{Finish, Scope};
use crate::field::Field;
use crate::frame::{Chars, Kind};
use crate::json::Value;

/// The facts of one answer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Choice {
    pub(crate) index: Option<u32>,
    pub(crate) role: bool,
    pub(crate) chars: Chars,
    /// Number of token ids, if they are listed, and of those under the second name.
    pub(crate) ids: Option<u32>,
    pub(crate) other_ids: Option<u32>,
    /// Number of log-probability entries, if they are listed.
    pub(crate) logprobs: Option<u32>,
    /// The frame has one token.
    pub(crate) token: bool,
    /// Characters of the whole answer, if it is present.
    pub(crate) generated: Option<u32>,
    /// The grouped facts of the answer are present.
    pub(crate) detailed: bool,
    pub(crate) stopped: bool,
    pub(crate) finish: Option<Finish>,
    /// Its finish reason concerns the model and no answer.
    pub(crate) is_load: bool,
    pub(crate) error: bool,
    /// It is an object, as a choice is.
    pub(crate) open: bool,
    /// It has a known member besides its index and its delta, even if `"finish_reason":null`.
    pub(crate) has_member: bool,
    pub(crate) part: Part,
}

/// One part of an answer's content.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Part {
    pub(crate) chars: u32,
    pub(crate) hidden: bool,
}

impl Part {
    pub(crate) fn add(&mut self, chars: u32) {
        self.chars = self.chars.saturating_add(chars);
    }

    pub(crate) fn kind(&self) -> Kind {
        if self.hidden { Kind::Reasoning } else { Kind::Text }
    }
}

impl Choice {
    /// Starts an answer.
    pub(crate) fn begun(value: Value<'_>) -> Self {
        Self { open: value == Value::Object, ..Self::default() }
    }

    /// Reads a member of a content part; returns false if `field` is none.
    pub(crate) fn take_part(&mut self, field: Field, value: Value<'_>) -> bool {
        match (field, value) {
            (Field::Part, _) => self.part = Part::default(),
            (Field::PartText, Value::Text { chars }) => self.part.add(chars),
            (Field::Hidden, value) => self.part.hidden = value == Value::Bool(true),
            _ => return false,
        }
        true
    }

    /// Ends the part, whose kind is now known.
    pub(crate) fn close_part(&mut self) {
        let slot = &mut self.chars[self.part.kind() as usize];
        *slot = slot.saturating_add(self.part.chars);
    }

    pub(crate) fn measure(&mut self, field: Field, chars: u32) {
        let (kind, adds) = match field {
            Field::Content => (Kind::Text, false),
            Field::ContentPart => (Kind::Text, true),
            Field::Reasoning => {
                // A server with both of its names sends the same text twice.
                let slot = &mut self.chars[Kind::Reasoning as usize];
                *slot = chars.max(*slot);
                return;
            }
            Field::Refusal => (Kind::Refusal, false),
            Field::Tool => (Kind::Tool, true),
            Field::Audio => (Kind::Audio, false),
            _ => return,
        };
        let slot = &mut self.chars[kind as usize];
        *slot = if adds { slot.saturating_add(chars) } else { chars };
    }

    /// The tokens in it. Ids are exact; log probabilities may cover the prompt too.
    pub(crate) fn tokens(&self) -> Option<u32> {
        let ids = self.ids.max(self.other_ids);
        match (ids, self.logprobs) {
            (None | Some(0), Some(entries)) => Some(entries),
            (ids, _) => ids,
        }
    }

    /// The finish of a choice that is the frame itself.
    pub(crate) fn native_finish(&self, dialect: Dialect) -> Option<Finish> {
        match dialect {
            Dialect::LlamacppCompletion | Dialect::OllamaChat | Dialect::OllamaGenerate => {
                self.stopped.then(|| self.finish.unwrap_or(Finish::Stop))
            }
            Dialect::Tgi => self.finish.or(self.generated.map(|_| Finish::Stop)),
            _ => self.finish,
        }
    }

    /// The scope of the counts of a choice that is the frame itself, if they count.
    pub(crate) fn native_scope(&self, dialect: Dialect, index: u32, is_last: bool) -> Option<Scope> {
        let is_last = match dialect {
            // The ordinal of the last token is no count of the answer; the details are.
            Dialect::Tgi => self.detailed,
            Dialect::OllamaChat | Dialect::OllamaGenerate => {
                return is_last.then_some(Scope::Choice(Some(index)));
            }
            _ => is_last,
        };
        Some(if is_last { Scope::Choice(Some(index)) } else { Scope::Running(index) })
    }

    /// Completes a TGI choice. A stream has one token per frame, and the last frame repeats the text;
    /// unstreamed, the text stands alone.
    pub(crate) fn resolve_tgi(&mut self, unstreamed: bool) {
        if unstreamed {
            self.chars = Kind::Text.only(self.generated.unwrap_or(0));
        } else {
            self.ids = self.token.then_some(1);
        }
    }
}
