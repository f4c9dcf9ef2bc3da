//! Frames that `type` gives their meaning. It may be the last member, so the frame is collected first and
//! resolved when its object closes. An unstreamed answer of these dialects has everything at once and is
//! resolved by its own members.

use crate::counts::{Count, Counts};
use crate::dialect::Dialect;
use crate::event::{Event, Finish, Scope, Sink, Usage};
use crate::field::Field;
use crate::frame::choice::Part;
use crate::frame::facts::{Nesting, Subject};
use crate::frame::pending::ChoiceFacts;
use crate::frame::usage::{merged, or_foreign, with_cache, with_thoughts};
use crate::frame::{Chars, Frame, Kind};
use crate::json::Value;

/// The facts of a typed frame.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Typed {
    frame_type: Type,
    /// `object` marks the frame as a whole answer of the Responses API.
    is_response: bool,
    /// `object` is present.
    pub(crate) has_object: bool,
    /// Text of the kind that the type defines.
    delta: Option<u32>,
    whole: Chars,
    /// The content of a whole answer is present.
    has_whole: bool,
    whole_finish: Option<Finish>,
    part: Part,
    /// The status of the answer, and the reason that it is incomplete: of the frame, and of the inner
    /// object.
    status: [Option<Status>; 2],
    reason: [Option<Finish>; 2],
    /// The usage of the inner object.
    pub(crate) inner: Option<Counts>,
    /// Numbers belong to the inner object.
    pub(crate) counts_inner: bool,
    /// The result of the type, besides the pending events.
    pub(crate) verdict: Verdict,
    /// The index of the answer that begins, if it is not the first.
    pub(crate) begins: Option<u32>,
}

/// The result of a type.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Verdict {
    /// A type decided, and no list of choices.
    pub(crate) is_final: bool,
    pub(crate) note: Option<Event>,
    /// The frame's times are valid.
    pub(crate) has_times: bool,
    pub(crate) done: bool,
}

/// The meaning of a type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Type {
    /// No type.
    #[default]
    Nothing,
    /// A delta of this kind.
    Delta(Kind),
    /// A delta of one of these kinds; the field that holds it decides.
    Parts(&'static [Kind]),
    /// The answer begins.
    Begin,
    /// The answer of a Responses body begins and is in progress.
    Created,
    /// The answer is in progress.
    Progress,
    /// The counts, and the finish reason.
    Counts,
    /// The answer ended.
    End(Status),
    /// The stream ended.
    Stop,
    /// A keep-alive.
    Ping,
    Error,
    /// The frame is a whole answer.
    Whole,
    /// No content.
    Meta,
}

/// The status of an answer of the Responses or the Interactions API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    Waiting,
    Completed,
    Incomplete,
    /// A limit of tokens ended it.
    Limited,
    /// The client has to run a tool.
    CallsTool,
    Cancelled,
    Failed,
}

impl Typed {
    /// Reads a field; returns false if it belongs to another reader.
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
            Field::Type => self.frame_type = word.map_or(Type::Nothing, |word| Type::read(dialect, word)),
            Field::DeltaText => self.delta = chars,
            Field::PartText => self.part.add(chars.unwrap_or(0)),
            Field::Part => self.part = Part::default(),
            Field::ItemType => self.part.hidden = word == Some(b"reasoning"),
            Field::Inner => {
                self.inner = None;
                self.status[1] = None;
                self.reason[1] = None;
            }
            Field::InnerUsage => {
                self.counts_inner = value == Value::Object;
                self.inner = self.counts_inner.then(Counts::default);
            }
            Field::Status => self.status[0] = word.and_then(|word| Status::read(dialect, word)),
            Field::InnerStatus => self.status[1] = word.and_then(|word| Status::read(dialect, word)),
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

    /// Returns true if the type has no content by the dialect, or is none of it.
    pub(crate) fn is_other(&self) -> bool {
        self.frame_type == Type::Meta
    }

    /// Returns true if the frame is one of the dialect.
    pub(crate) fn is_known(&self, unstreamed: bool) -> bool {
        let is_whole = self.is_response || self.status[0].is_some() || self.has_whole;
        !matches!(self.frame_type, Type::Nothing | Type::Meta) || unstreamed && is_whole
    }

    /// Reads the `object` member.
    pub(crate) fn read_object(&mut self, object: &[u8]) {
        (self.is_response, self.has_object) = (object == b"response", true);
    }

    /// Closes a container.
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

    /// Returns the status and the finish of the answer, from the frame's own members or the inner object's.
    fn outcome(&self, at: usize, default: Option<Status>) -> (Option<Status>, Option<Finish>) {
        let status = match default {
            // vLLM reports `completed` for every answer.
            None | Some(Status::Completed) => {
                let refines = |status: &Status| default.is_none() || *status != Status::Waiting;
                self.status[at].filter(refines).or(default)
            }
            default => default,
        };
        let finish = match status {
            Some(Status::Completed) => Some(self.reason[at].unwrap_or(Finish::Stop)),
            Some(Status::Incomplete) => Some(self.reason[at].unwrap_or(Finish::Other)),
            Some(Status::Limited) => Some(Finish::Length),
            Some(Status::CallsTool) => Some(Finish::ToolCalls),
            Some(Status::Cancelled) => Some(Finish::Abort),
            Some(Status::Waiting | Status::Failed) => None,
            None => self.reason[at],
        };
        (status, finish)
    }
}

impl Frame {
    /// Closes the frame's object: its type decides.
    #[inline(never)]
    pub(crate) fn close_root(&mut self, sink: &mut impl Sink) {
        let frame_type = self.facts.typed.frame_type;
        let lists = self.dialect == Dialect::Transcription;
        if frame_type == Type::Error {
            self.facts.raise(Subject::Error);
        }
        if frame_type == Type::Whole
            || self.unstreamed && !frame_type.is_of_stream()
            || frame_type == Type::Nothing && self.facts.typed.is_response
        {
            if !lists || self.facts.choices.listed.is_none() {
                self.add_whole_answer(sink);
            }
            return;
        }
        if frame_type == Type::Nothing && lists {
            return;
        }
        self.facts.typed.verdict.is_final = true;
        match frame_type {
            Type::Delta(kind) => {
                let typed = &self.facts.typed;
                let chars = kind.only(typed.delta.unwrap_or(typed.whole[kind as usize]));
                let tokens = self.facts.choice.logprobs.filter(|&entries| entries > 0);
                self.add_choice(ChoiceFacts { chars, tokens, ..ChoiceFacts::default() }, sink);
                self.add_running_usage(sink);
            }
            Type::Parts(kinds) => {
                let mut chars = Chars::default();
                for &kind in kinds {
                    chars[kind as usize] = self.facts.choice.chars[kind as usize];
                }
                self.add_choice(ChoiceFacts { chars, ..ChoiceFacts::default() }, sink);
                self.add_running_usage(sink);
            }
            Type::Begin => {
                self.add_choice(ChoiceFacts { role: true, ..ChoiceFacts::default() }, sink);
                if self.dialect == Dialect::Anthropic {
                    // Nothing has been generated yet: an output count is no count of the answer.
                    let begun =
                        |counts: Counts| counts.with(Count::Output, None).with(Count::OutputReasoning, None);
                    let counts = self.facts.typed.inner.map(begun);
                    self.body.set_earlier(counts.unwrap_or_default());
                    let counts = counts.map(with_cache);
                    let counts =
                        counts.filter(|counts| counts.get(Count::Input).is_some() || counts.rejected > 0);
                    self.add_usage(Scope::Running(0), counts, sink);
                }
            }
            Type::Counts => self.add_counts(sink),
            Type::End(status) => self.end_answer(status, sink),
            Type::Stop => self.facts.typed.verdict.done = true,
            Type::Created => {
                self.facts.raise(Subject::Progress);
                self.facts.typed.begins = Some(self.body.begun).filter(|&answer| answer > 0);
                self.body.begun = self.body.begun.saturating_add(1);
            }
            Type::Progress => self.facts.raise(Subject::Progress),
            Type::Ping => self.facts.typed.verdict.note = Some(Event::Ping),
            Type::Meta => {
                self.facts.typed.verdict.note = Some(Event::Meta);
                self.add_running_counts(self.facts.timings.counts(), sink);
            }
            Type::Nothing => {
                // A usage outside of the dialect's events.
                let counts = self.whole_counts().filter(|_| self.body.follows);
                if !self.add_usage(Scope::Running(0), counts, sink) {
                    self.facts.typed.verdict.note = Some(Event::Other);
                }
            }
            Type::Error | Type::Whole => {}
        }
    }

    fn add_choice(&mut self, facts: ChoiceFacts, sink: &mut impl Sink) {
        self.facts.choices.closed = 0;
        self.facts.choices.add(facts.choice, facts.finish);
        self.pending.add(facts, sink);
    }

    /// Adds the usage, if there are counts. Returns true if it was added.
    fn add_usage(&mut self, scope: Scope, counts: Option<Counts>, sink: &mut impl Sink) -> bool {
        let counts = counts.and_then(super::usage::non_empty);
        if let Some(counts) = counts {
            self.pending.add_usage(Usage { scope, counts }, sink);
        }
        counts.is_some()
    }

    /// Adds the running count beside a part of the answer: llama.cpp's, or a usage (Dynamo).
    fn add_running_usage(&mut self, sink: &mut impl Sink) {
        let usage = || self.facts.usage.or(self.facts.typed.inner).and_then(super::usage::non_empty);
        let counts = self.facts.timings.counts().or_else(|| match self.dialect {
            Dialect::Anthropic => usage().map(|later| with_cache(merged(&self.body.earlier(), &later))),
            _ => self.total(usage()),
        });
        self.add_running_counts(counts, sink);
    }

    /// Adds running counts of the one answer. With several parallel Responses, a count does not identify its answer;
    /// after the answer's end it would count the answer twice.
    fn add_running_counts(&mut self, counts: Option<Counts>, sink: &mut impl Sink) {
        if self.body.begun <= 1 && self.body.ended == 0 {
            self.add_usage(Scope::Running(0), counts, sink);
        }
    }

    /// Adds the counts of the whole answer, and its finish reason.
    fn add_counts(&mut self, sink: &mut impl Sink) {
        let counts = match self.dialect {
            Dialect::Anthropic => {
                let counts = self.facts.usage.map(|later| merged(&self.body.earlier(), &later));
                if let Some(counts) = counts {
                    self.body.set_earlier(counts);
                }
                counts.map(with_cache)
            }
            _ => self.facts.typed.inner,
        };
        let finish = self.facts.choice.finish;
        if finish.is_some() {
            self.add_choice(ChoiceFacts { finish, ..ChoiceFacts::default() }, sink);
        }
        if !self.add_usage(Scope::Whole, counts, sink) && finish.is_none() {
            self.facts.typed.verdict.note = Some(Event::Meta);
        }
    }

    /// Ends the answer of a session, of which each answer is metered alone. A cancelled one has no finish and no end
    /// mark: the client or the speaker broke it off.
    fn end_realtime(&mut self, default: Status, sink: &mut impl Sink) {
        let (status, finish) = self.facts.typed.outcome(1, Some(default));
        let is_cancelled = status == Some(Status::Cancelled);
        self.facts.typed.verdict.done = !is_cancelled;
        if status == Some(Status::Failed) {
            self.facts.raise(Subject::Error);
        }
        if finish.is_some() && !is_cancelled {
            self.add_choice(ChoiceFacts { finish, ..ChoiceFacts::default() }, sink);
        }
        let counts = self.facts.typed.inner.or(self.facts.usage);
        if !self.add_usage(Scope::Whole, counts, sink) && is_cancelled {
            self.facts.typed.verdict.note = Some(Event::Meta);
        }
    }

    /// Ends the answer, and the stream if every answer that began has ended.
    fn end_answer(&mut self, default: Status, sink: &mut impl Sink) {
        if self.dialect == Dialect::Realtime {
            return self.end_realtime(default, sink);
        }
        let inner = self.dialect.stores_answers();
        let choice = self.body.ended;
        self.body.ended = self.body.ended.saturating_add(u32::from(inner));
        self.facts.typed.verdict.done = self.body.ended >= self.body.begun;
        self.facts.typed.verdict.has_times = true;
        let (status, finish) = self.facts.typed.outcome(usize::from(inner), Some(default));
        if status == Some(Status::Failed) {
            self.facts.raise(Subject::Error);
        }
        if finish.is_some() {
            self.add_choice(ChoiceFacts { choice, finish, ..ChoiceFacts::default() }, sink);
        }
        match inner {
            // The counts cover one answer, and the stream may hold several.
            true => self.add_usage(Scope::Choice(None), self.total(self.facts.typed.inner), sink),
            false => self.add_usage(Scope::Whole, self.facts.usage, sink),
        };
    }

    /// The counts of an answer with the parts that its dialect counts apart.
    fn total(&self, counts: Option<Counts>) -> Option<Counts> {
        match self.dialect {
            Dialect::GeminiInteractions => counts.map(|counts| with_thoughts(counts, &self.facts.extra)),
            _ => counts,
        }
    }

    /// The counts of the frame's own usage.
    fn whole_counts(&self) -> Option<Counts> {
        let counts = match self.dialect {
            Dialect::Anthropic => self.facts.usage.map(with_cache),
            _ => self.total(self.facts.usage),
        };
        counts.map(|counts| or_foreign(counts, &self.facts.extra))
    }

    /// Adds a whole answer: the frame, or the element of a list.
    fn add_whole_answer(&mut self, sink: &mut impl Sink) {
        self.facts.typed.verdict.is_final = true;
        self.facts.typed.verdict.has_times = true;
        let mut finish = self.facts.typed.whole_finish;
        if self.dialect.stores_answers() {
            let (status, why) = self.facts.typed.outcome(0, None);
            finish = why;
            match status {
                Some(Status::Failed) => self.facts.raise(Subject::Error),
                Some(Status::Waiting) => return self.facts.raise(Subject::Progress),
                _ => {}
            }
        }
        let counts = self.whole_counts();
        let silent = self.facts.is_error() && self.facts.typed.whole == Chars::default();
        let answers = self.facts.typed.has_whole && !silent || finish.is_some();
        let in_element = self.facts.nesting == Nesting::Element;
        let (choice, scope) = match in_element {
            true => (self.body.ended, Scope::Choice(None)),
            false => (0, Scope::Whole),
        };
        if answers {
            let chars = self.facts.typed.whole;
            self.body.ended = self.body.ended.saturating_add(u32::from(in_element));
            self.add_choice(ChoiceFacts { choice, chars, finish, ..ChoiceFacts::default() }, sink);
        }
        if !self.add_usage(scope, counts, sink) && !answers {
            self.facts.typed.verdict.note = Some(Event::Other);
        }
    }
}

impl Status {
    fn read(dialect: Dialect, word: &[u8]) -> Option<Self> {
        Some(match word {
            b"incomplete" | b"budget_exceeded" | b"requires_continuation"
                if dialect == Dialect::GeminiInteractions =>
            {
                Self::Limited
            }
            b"requires_action" if dialect == Dialect::GeminiInteractions => Self::CallsTool,
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
    /// Returns true for a frame of a stream. In a body of one value, it is the first line of many.
    fn is_of_stream(self) -> bool {
        !matches!(self, Self::Nothing | Self::Whole | Self::Meta)
    }

    fn read(dialect: Dialect, word: &[u8]) -> Self {
        match dialect {
            _ if word.is_empty() => Self::Nothing,
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
            Dialect::GeminiInteractions => match word {
                b"interaction.created" | b"interaction.start" => Self::Progress,
                b"step.delta" | b"content.delta" => {
                    Self::Parts(&[Kind::Reasoning, Kind::Text, Kind::Tool, Kind::Audio])
                }
                b"interaction.completed" | b"interaction.complete" => Self::End(Status::Completed),
                _ => Self::Meta,
            },
            Dialect::Transcription => match word {
                b"transcript.text.delta" | b"transcription.text.delta" => Self::Delta(Kind::Text),
                b"transcript.text.done" | b"transcription.done" => Self::End(Status::Completed),
                _ => Self::Meta,
            },
            Dialect::Realtime => Self::of_realtime(word),
            // The frames of other dialects have no type.
            _ => Self::Meta,
        }
    }

    fn of_realtime(word: &[u8]) -> Self {
        match word {
            b"response.created" => Self::Progress,
            b"response.done" => Self::End(Status::Completed),
            b"response.text.delta"
            | b"response.output_audio_transcript.delta"
            | b"response.audio_transcript.delta"
            | b"transcription.delta"
            | b"conversation.item.input_audio_transcription.delta" => Self::Delta(Kind::Text),
            b"response.output_audio.delta" => Self::Delta(Kind::Audio),
            b"transcription.done" | b"conversation.item.input_audio_transcription.completed" => {
                Self::End(Status::Completed)
            }
            b"conversation.item.input_audio_transcription.failed" => Self::End(Status::Failed),
            _ => match Self::of_responses(word) {
                delta @ Self::Delta(_) => delta,
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
