//! The facts of one answer in a frame, and of the answers that ended.

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
    /// It has a usage.
    pub(crate) has_usage: bool,
    pub(crate) part: Part,
}

/// The answers of a frame that ended.
#[derive(Debug, Default)]
pub(crate) struct Choices {
    /// Their number.
    pub(crate) closed: u32,
    /// The index of the last one.
    pub(crate) last: u32,
    /// The last one has at most an index and an empty delta.
    pub(crate) is_bare: bool,
    pub(crate) any_finish: bool,
    /// Elements of the list of choices, of any type; `None` without a list.
    pub(crate) listed: Option<u32>,
    /// The reason that there is no answer.
    pub(crate) blocked: Option<Finish>,
}

impl Choices {
    /// Starts the list. The last of two lists counts, as in every parser; returns true if this is a second one.
    pub(crate) fn begin_list(&mut self) -> bool {
        self.closed = 0;
        self.any_finish = false;
        self.listed.replace(0).is_some()
    }

    /// Adds an answer.
    pub(crate) fn add(&mut self, index: u32, finish: Option<Finish>) {
        self.closed = self.closed.saturating_add(1);
        self.last = index;
        self.any_finish |= finish.is_some();
    }

    /// The index of the only answer, if there is one.
    pub(crate) fn only(&self) -> Option<u32> {
        (self.closed == 1).then_some(self.last)
    }

    /// Returns true if there is a list of choices without content. LiteLLM puts the usage beside one bare choice.
    pub(crate) fn is_contentless_list(&self) -> bool {
        matches!((self.listed, self.is_bare), (Some(0), _) | (Some(1), true))
    }
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
            Field::ReasoningPart => (Kind::Reasoning, true),
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
            // They follow the end.
            Dialect::BedrockConverse => true,
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
