//! Frames that a word decides: `type` says what the rest of the frame means, and it may come last.
//! So the frame is gathered first and resolved when its object closes. An unstreamed answer of
//! these dialects says everything at once and is resolved by its own members.

use crate::dialect::Dialect;
use crate::event::{Counts, Event, Finish, Scope, Sink, Usage};
use crate::field::Field;
use crate::frame::choice::Part;
use crate::frame::held::Said;
use crate::frame::usage::{merged, or_foreign, with_cache};
use crate::frame::{Chars, Frame, Kind};
use crate::json::Value;

/// The facts of a frame that a type decides about.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Typed {
    says: Type,
    /// `object` says that the frame is a whole answer of the Responses API.
    is_response: bool,
    /// Text of the kind the type says.
    delta: Option<u32>,
    whole: Chars,
    /// A whole answer's content stands there.
    has_whole: bool,
    whole_finish: Option<Finish>,
    part: Part,
    /// How the answer stands, and why it is incomplete: of the frame, and of the object in it.
    status: [Option<Status>; 2],
    reason: [Option<Finish>; 2],
    /// The usage of the object in it.
    pub(crate) inner: Option<Counts>,
    /// Numbers are those of the object in it.
    pub(crate) counts_inner: bool,
    /// What the frame says beside its events in waiting.
    pub(crate) verdict: Verdict,
    /// The number of the answer that begins, if it is not the first.
    pub(crate) begins: Option<u32>,
}

/// What a type has decided.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Verdict {
    /// A type decided, and no list of choices.
    pub(crate) is_final: bool,
    pub(crate) note: Option<Event>,
    /// The frame's times are worth something.
    pub(crate) has_times: bool,
    pub(crate) done: bool,
}

/// What a type says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Type {
    /// There is none.
    #[default]
    Nothing,
    /// A piece of this kind.
    Delta(Kind),
    /// A piece of one of these kinds; the field that holds it says which.
    Parts(&'static [Kind]),
    /// The answer begins.
    Begin,
    /// The answer of a Responses body begins, and is worked on.
    Created,
    /// The answer is worked on.
    Progress,
    /// The counts, and why the answer ended.
    Counts,
    /// The answer is over.
    End(Status),
    /// Nothing more will come.
    Stop,
    /// A sign of life.
    Ping,
    Error,
    /// The frame is a whole answer.
    Whole,
    /// No content.
    Meta,
}

/// How an answer of the Responses API stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    Waiting,
    Completed,
    Incomplete,
    Cancelled,
    Failed,
}

impl Typed {
    /// Takes in a field; false if it is none of ours.
    pub(crate) fn take(&mut self, dialect: Dialect, field: Field, value: Value<'_>) -> bool {
        let word = match value {
            Value::Word(word) => Some(word),
            _ => None,
        };
        let chars = match value {
            Value::Text { chars } => Some(chars),
            _ => None,
        };
        let mut add = |kind: Kind| {
            let slot = &mut self.whole[kind as usize];
            *slot = slot.saturating_add(chars.unwrap_or(0));
        };
        match field {
            Field::Type => self.says = word.map_or(Type::Nothing, |word| Type::read(dialect, word)),
            Field::DeltaText => self.delta = chars,
            Field::PartText => self.part.add(chars.unwrap_or(0)),
            Field::Part => self.part = Part::default(),
            Field::Hidden => self.part.hidden = word == Some(b"reasoning"),
            Field::Inner => {
                self.inner = None;
                self.status[1] = None;
                self.reason[1] = None;
            }
            Field::InnerUsage => {
                self.counts_inner = value == Value::Object;
                self.inner = self.counts_inner.then(Counts::default);
            }
            Field::Status => self.status[0] = word.and_then(Status::read),
            Field::InnerStatus => self.status[1] = word.and_then(Status::read),
            Field::Reason => self.reason[0] = word.and_then(Finish::from_word),
            Field::InnerReason => self.reason[1] = word.and_then(Finish::from_word),
            Field::WholeFinish => self.whole_finish = word.and_then(Finish::from_word),
            Field::Whole => {
                self.has_whole = matches!(value, Value::Object | Value::List);
                self.whole = Chars::default();
            }
            Field::WholeText => {
                add(Kind::Text);
                self.has_whole |= chars.is_some();
            }
            Field::WholeReasoning => add(Kind::Reasoning),
            Field::WholeRefusal => add(Kind::Refusal),
            Field::WholeTool => add(Kind::Tool),
            _ => return false,
        }
        true
    }

    /// The frame calls itself this.
    pub(crate) fn is_called(&mut self, object: &[u8]) {
        self.is_response = object == b"response";
    }

    /// A container closes.
    pub(crate) fn close(&mut self, field: Field) {
        match field {
            Field::InnerUsage => self.counts_inner = false,
            Field::Part => {
                let slot = &mut self.whole[self.part.kind() as usize];
                *slot = slot.saturating_add(self.part.chars);
            }
            _ => {}
        }
    }

    /// How the answer stands and why it ended, by the frame's own members or the inner object's.
    fn outcome(&self, at: usize, default: Option<Status>) -> (Option<Status>, Option<Finish>) {
        let status = match default {
            // vLLM says that an answer is completed whatever became of it.
            None | Some(Status::Completed) => {
                let refines = |status: &Status| default.is_none() || *status != Status::Waiting;
                self.status[at].filter(refines).or(default)
            }
            default => default,
        };
        let finish = match status {
            Some(Status::Completed) => Some(self.reason[at].unwrap_or(Finish::Stop)),
            Some(Status::Incomplete) => Some(self.reason[at].unwrap_or(Finish::Other)),
            Some(Status::Cancelled) => Some(Finish::Abort),
            Some(Status::Waiting | Status::Failed) => None,
            None => self.reason[at],
        };
        (status, finish)
    }
}

impl Frame {
    /// The frame's object closes: its type decides.
    #[inline(never)]
    pub(crate) fn close_root(&mut self, sink: &mut impl Sink) {
        let says = self.typed.says;
        let lists = self.dialect == Dialect::Transcription;
        if self.error || says == Type::Error {
            self.error = true;
        }
        if says == Type::Whole
            || self.unstreamed && says != Type::Error
            || says == Type::Nothing && self.typed.is_response
        {
            if !lists || !self.has_choices {
                self.say_whole(sink);
            }
            return;
        }
        if says == Type::Nothing && lists {
            return;
        }
        self.typed.verdict.is_final = true;
        match says {
            Type::Delta(kind) => {
                let chars = kind.only(self.typed.delta.unwrap_or(0));
                let tokens = self.choice.logprobs.filter(|&entries| entries > 0);
                self.say_one(Said { chars, tokens, ..Said::default() }, sink);
                self.say_running(sink);
            }
            Type::Parts(kinds) => {
                let mut chars = Chars::default();
                for &kind in kinds {
                    chars[kind as usize] = self.choice.chars[kind as usize];
                }
                self.say_one(Said { chars, ..Said::default() }, sink);
            }
            Type::Begin => {
                self.say_one(Said { role: true, ..Said::default() }, sink);
                if self.dialect == Dialect::Anthropic {
                    self.earlier = self.typed.inner.unwrap_or_default();
                    let counts = self.typed.inner.map(with_cache);
                    let counts = counts.filter(|counts| counts.input.is_some() || counts.rejected > 0);
                    self.say_usage(Scope::Running(0), counts, sink);
                }
            }
            Type::Counts => self.say_counts(sink),
            Type::End(status) => self.say_end(status, sink),
            Type::Stop => self.typed.verdict.done = true,
            Type::Created => {
                self.progress = true;
                self.typed.begins = Some(self.begun).filter(|&answer| answer > 0);
                self.begun = self.begun.saturating_add(1);
            }
            Type::Progress => self.progress = true,
            Type::Ping => self.typed.verdict.note = Some(Event::Ping),
            Type::Meta => {
                self.typed.verdict.note = Some(Event::Meta);
                self.say_running(sink);
            }
            Type::Nothing => self.typed.verdict.note = Some(Event::Other),
            Type::Error | Type::Whole => {}
        }
    }

    fn say_one(&mut self, said: Said, sink: &mut impl Sink) {
        self.choices = 1;
        self.last = said.choice;
        self.any_finish |= said.finish.is_some();
        self.held.say(said, sink);
    }

    /// Says what was counted, if anything was.
    fn say_usage(&mut self, scope: Scope, counts: Option<Counts>, sink: &mut impl Sink) -> bool {
        let counts = counts.and_then(super::usage::said);
        if let Some(counts) = counts {
            self.held.count(Usage { scope, counts }, sink);
        }
        counts.is_some()
    }

    /// Reports llama.cpp's running count of the one answer. Of several Responses side by side, no count says which
    /// answer it belongs to; after the answer's end it would count the answer twice.
    fn say_running(&mut self, sink: &mut impl Sink) {
        if self.begun <= 1 && self.ended == 0 {
            self.say_usage(Scope::Running(0), self.timings.counts(), sink);
        }
    }

    /// The counts of the whole answer, and why it ended.
    fn say_counts(&mut self, sink: &mut impl Sink) {
        let counts = match self.dialect {
            Dialect::Anthropic => {
                let counts = self.usage.map(|later| merged(&self.earlier, &later));
                self.earlier = counts.unwrap_or(self.earlier);
                counts.map(with_cache)
            }
            _ => self.typed.inner,
        };
        let finish = self.choice.finish;
        if finish.is_some() {
            self.say_one(Said { finish, ..Said::default() }, sink);
        }
        if !self.say_usage(Scope::Whole, counts, sink) && finish.is_none() {
            self.typed.verdict.note = Some(Event::Meta);
        }
    }

    /// The answer is over, and so is the stream, unless others that it began are not.
    fn say_end(&mut self, default: Status, sink: &mut impl Sink) {
        let inner = self.dialect == Dialect::OpenaiResponses;
        let choice = self.ended;
        self.ended = self.ended.saturating_add(u32::from(inner));
        self.typed.verdict.done = self.ended >= self.begun;
        self.typed.verdict.has_times = true;
        let (status, finish) = self.typed.outcome(usize::from(inner), Some(default));
        self.error |= status == Some(Status::Failed);
        if finish.is_some() {
            self.say_one(Said { choice, finish, ..Said::default() }, sink);
        }
        match inner {
            // The counts are those of one answer, and the stream may hold several.
            true => self.say_usage(Scope::Choice(None), self.typed.inner, sink),
            false => self.say_usage(Scope::Whole, self.usage, sink),
        };
    }

    /// The frame, or the element of a list, is a whole answer.
    fn say_whole(&mut self, sink: &mut impl Sink) {
        self.typed.verdict.is_final = true;
        self.typed.verdict.has_times = true;
        let mut finish = self.typed.whole_finish;
        if self.dialect == Dialect::OpenaiResponses {
            let (status, why) = self.typed.outcome(0, None);
            finish = why;
            self.error |= status == Some(Status::Failed);
            if status == Some(Status::Waiting) {
                self.progress = true;
                return;
            }
        }
        let counts = match self.dialect {
            Dialect::Anthropic => self.usage.map(with_cache),
            _ => self.usage,
        };
        let counts = counts.map(|counts| or_foreign(counts, &self.extra));
        let silent = self.error && self.typed.whole == Chars::default();
        let answers = self.typed.has_whole && !silent || finish.is_some();
        let (choice, scope) = match self.in_element {
            true => (self.ended, Scope::Choice(None)),
            false => (0, Scope::Whole),
        };
        if answers {
            let chars = self.typed.whole;
            self.ended = self.ended.saturating_add(u32::from(self.in_element));
            self.say_one(Said { choice, chars, finish, ..Said::default() }, sink);
        }
        if !self.say_usage(scope, counts, sink) && !answers {
            self.typed.verdict.note = Some(Event::Other);
        }
    }
}

impl Status {
    fn read(word: &[u8]) -> Option<Self> {
        Some(match word {
            b"queued" | b"in_progress" => Self::Waiting,
            b"completed" => Self::Completed,
            b"incomplete" => Self::Incomplete,
            b"cancelled" => Self::Cancelled,
            b"failed" => Self::Failed,
            _ => return None,
        })
    }
}

impl Type {
    fn read(dialect: Dialect, word: &[u8]) -> Self {
        match dialect {
            _ if word == b"error" => Self::Error,
            Dialect::OpenaiResponses => Self::of_responses(word),
            Dialect::Anthropic => match word {
                b"message_start" => Self::Begin,
                b"content_block_delta" => Self::Parts(&[Kind::Reasoning, Kind::Text, Kind::Tool]),
                b"message_delta" => Self::Counts,
                b"message_stop" => Self::Stop,
                b"ping" => Self::Ping,
                b"message" => Self::Whole,
                _ => Self::Meta,
            },
            Dialect::Cohere => match word {
                b"message-start" => Self::Begin,
                b"content-delta" => Self::Parts(&[Kind::Reasoning, Kind::Text]),
                b"tool-plan-delta" => Self::Parts(&[Kind::Reasoning]),
                b"tool-call-start" | b"tool-call-delta" => Self::Parts(&[Kind::Tool]),
                b"message-end" => Self::Counts,
                _ => Self::Meta,
            },
            _ => match word {
                b"transcript.text.delta" => Self::Delta(Kind::Text),
                b"transcript.text.done" => Self::End(Status::Completed),
                _ => Self::Meta,
            },
        }
    }

    fn of_responses(word: &[u8]) -> Self {
        let Some(word) = word.strip_prefix(b"response.") else { return Self::Meta };
        match word {
            b"output_text.delta" => Self::Delta(Kind::Text),
            b"refusal.delta" => Self::Delta(Kind::Refusal),
            b"reasoning_text.delta" | b"reasoning_summary_text.delta" => Self::Delta(Kind::Reasoning),
            b"function_call_arguments.delta"
            | b"custom_tool_call_input.delta"
            | b"mcp_call_arguments.delta"
            | b"code_interpreter_call_code.delta" => Self::Delta(Kind::Tool),
            b"audio.delta" | b"audio.transcript.delta" => Self::Delta(Kind::Audio),
            b"created" => Self::Created,
            b"queued" | b"in_progress" => Self::Progress,
            b"completed" => Self::End(Status::Completed),
            b"incomplete" => Self::End(Status::Incomplete),
            b"cancelled" => Self::End(Status::Cancelled),
            b"failed" => Self::End(Status::Failed),
            _ => Self::Meta,
        }
    }
}
