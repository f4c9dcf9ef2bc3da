//! The meaning of a frame: collects its fields and turns them into events when the frame is complete. A frame cut short by
//! the end of the body yields its usage and end marks only; [`pending`] defines the handling of too many events.
//!
//! This file collects. Beside it: the facts of an answer ([`choice`]), counts ([`usage`]), times ([`times`]), uncommon
//! fields ([`rare`]), and what needs more than fields: a type that decides ([`typed`]), repeated frames ([`cumulative`]).

mod choice;
mod cumulative;
mod facts;
mod foreign;
mod foreign_counts;
mod kind;
mod passes;
mod pending;
mod rare;
mod times;
mod typed;
mod unknown;
mod usage;
mod usage_end;

use crate::counts::{Count, Counts};
use crate::dialect::{Dialect, Form};
use crate::envelope::Envelope;
use crate::event::{Delta, Event, Finish, Scope, ServerReport, Sink, Usage};
use crate::extent::{Extent, UsageMember, UsageValue};
use crate::field::Field;
use crate::json::{Value, Visit};
use crate::limits::FRAME_MAX_UNKNOWN;
use crate::name::{self, Name};
use crate::shape::VariableSpans;
use choice::Choice;
use facts::{FrameFacts, Nesting, Subject};
use pending::{ChoiceFacts, PendingEvents};
use unknown::UnknownMember;

pub(crate) use facts::BodyFacts;
pub(crate) use foreign_counts::{THOUGHTS, TOOL_PROMPT};
pub(crate) use kind::{Chars, Kind};
pub(crate) use times::Unit;
pub(crate) use usage::{
    BESIDE_PROMPT, CACHE_WRITE_5M, FOREIGN_INPUT, FOREIGN_OUTPUT, OTHER_CACHE_WRITE, OTHER_CACHED, count,
};

/// Collects the frames of one body, one after another.
#[derive(Debug)]
pub(crate) struct Frame {
    dialect: Dialect,
    /// The frame is an unstreamed answer: its usage is final without a finish.
    unstreamed: bool,
    /// The facts of all frames.
    pub(crate) body: BodyFacts,
    /// The facts of the current frame.
    facts: FrameFacts,
    /// The events of the current frame.
    pending: PendingEvents,
    /// The variable values of the current frame in the caller's buffer.
    pub(crate) variable_spans: VariableSpans,
    /// The dialect of the frames after the current one, if it is another.
    becomes: Option<Dialect>,
    /// The current member of a usage that is not read.
    unknown: UnknownMember,
    /// The envelope of the current message, if the frames are messages.
    pub(crate) envelope: Option<Box<Envelope>>,
}

/// Reads one frame's fields into a [`Frame`]; events beyond the limit go to `sink` early.
pub(crate) struct Reader<'a, S> {
    pub(crate) frame: &'a mut Frame,
    pub(crate) sink: &'a mut S,
}

impl Frame {
    /// Returns a frame that belongs to no body yet.
    pub(crate) fn new() -> Self {
        Self {
            dialect: Dialect::Unknown,
            unstreamed: false,
            body: BodyFacts::default(),
            facts: FrameFacts::default(),
            pending: PendingEvents::new(),
            variable_spans: VariableSpans::default(),
            becomes: None,
            unknown: UnknownMember::default(),
            envelope: None,
        }
    }

    /// Sets the dialect of the body, and whether it is unstreamed.
    pub(crate) fn begin(&mut self, dialect: Dialect, unstreamed: bool) {
        (self.dialect, self.unstreamed) = (dialect, unstreamed);
        self.becomes = None;
    }

    /// Marks the frame as an error from outside its payload (`event: error`).
    pub(crate) fn mark_error(&mut self) {
        self.facts.raise(Subject::Error);
    }

    /// Returns the event of a frame with an unreadable payload.
    pub(crate) fn unread(&self, whole: bool) -> Event {
        match self.dialect.form() == Form::Opaque && whole && !self.unstreamed {
            true => Event::Text(Delta::default()),
            false => Event::Other,
        }
    }

    /// Returns the content of a frame with a single delta, the shape of most frames. Its meaning must follow
    /// from its own bytes, number by number.
    pub(crate) fn single_delta(&self) -> Option<(Kind, Delta, Option<Counts>)> {
        let facts = &self.facts;
        if facts.choices.closed != 1 || facts.choices.any_finish || facts.subject != Subject::Answers {
            return None;
        }
        if facts.timings.seen
            || facts.times != ServerReport::default()
            || !self.dialect.frames_are_independent()
        {
            return None;
        }
        let (kind, delta, pending) = self.pending.single_delta()?;
        let has_two = facts.usage.is_some() && facts.typed.inner.is_some();
        // What was read is not what the frame says where earlier frames or other numbers were added.
        let is_own = |usage: &Usage| facts.usage.is_none_or(|counts| counts == usage.counts);
        if has_two || !pending.as_ref().is_none_or(is_own) {
            return None;
        }
        let usage = pending.or_else(|| self.frame_usage());
        let running = |usage: &Usage| usage.scope == Scope::Running(delta.choice);
        if usage.is_some_and(|usage| !running(&usage) || self.dialect.adds_counts()) {
            return None;
        }
        // A usage object without a number is absent now, but its numbers may come.
        let is_absent = facts.usage.is_none() && facts.typed.inner.is_none();
        (usage.is_some() || is_absent).then_some((kind, delta, usage.map(|usage| usage.counts)))
    }

    /// Ends the frame: passes its events to `sink`. A frame that is not `whole` keeps its content.
    pub(crate) fn end(&mut self, mut extent: Extent, sink: &mut impl Sink) {
        let facts = &self.facts;
        // Some servers leave out the empty list (ATOM).
        let has_no_list =
            facts.choices.listed.is_none() && facts.typed.has_object && self.dialect.is_openai();
        let is_contentless = !self.unstreamed && (facts.choices.is_contentless_list() || has_no_list);
        extent.is_usage = is_contentless && facts.usage.is_some() && !facts.is_error();
        if !facts.has_elements || facts.is_error() {
            self.emit(extent.whole, sink);
        }
        sink.frame(extent);
    }

    fn emit(&mut self, whole: bool, sink: &mut impl Sink) {
        if self.facts.choices.closed == 0 && self.facts.choices.blocked.is_some() {
            let facts = ChoiceFacts { finish: self.facts.choices.blocked, ..ChoiceFacts::default() };
            self.facts.choices.add(facts.choice, facts.finish);
            self.pending.add(facts, sink);
        }
        // Ollama's OpenAI routes turn an error into an empty delta without a model.
        if self.facts.is_nameless
            && self.dialect.is_openai()
            && self.facts.choices.closed > 0
            && !self.facts.choices.any_finish
            && self.pending.is_empty_delta()
        {
            self.facts.raise(Subject::Error);
        }
        let verdict = self.facts.typed.verdict;
        let mut usage = self.frame_usage();
        if self.body.uncommon.as_ref().is_some_and(|uncommon| uncommon.foreign.is_present()) {
            usage = self.usage_with_foreign(usage);
        }
        if let (Some(usage), Nesting::Element, true) =
            (&mut usage, self.facts.nesting, self.is_list_of_answers())
        {
            // Of several answers in one body, each counts.
            let earlier = self.body.earlier.as_deref();
            let counts = earlier.map_or(usage.counts, |earlier| passes::added(earlier, &usage.counts));
            self.body.set_earlier(counts);
            *usage = Usage { scope: Scope::Whole, counts };
        }
        if usage.is_some() {
            // That of one of its choices repeats it.
            self.pending.remove_usage();
        }
        match self.facts.subject {
            Subject::Error => sink.event(Event::Error),
            Subject::Progress => {
                self.pending.clear();
                sink.event(Event::Progress);
                if let Some(choice) = self.facts.typed.begins {
                    self.pending.add(ChoiceFacts { choice, role: true, ..ChoiceFacts::default() }, sink);
                }
            }
            Subject::Load => sink.event(Event::Meta),
            Subject::Answers if verdict.is_final => {
                if let Some(note) = verdict.note {
                    sink.event(note);
                }
            }
            Subject::Answers if self.dialect.form() == Form::Opaque && !self.unstreamed => {
                if whole {
                    sink.event(Event::Text(Delta::default()));
                }
                if let Some(usage) = usage {
                    self.body.set_earlier(usage.counts);
                }
            }
            Subject::Answers if self.facts.choices.closed == 0 && usage.is_none() => {
                sink.event(if self.facts.choices.listed.is_some() { Event::Meta } else { Event::Other });
            }
            Subject::Answers => {}
        }
        self.pending.release(whole, sink);
        if let Some(usage) = usage {
            if self.dialect == Dialect::Unknown {
                self.body.response_dialect = usage::dialect(self.body.response_dialect, &usage.counts);
            }
            sink.event(Event::Usage(usage));
        }
        if let Some(times) = self.final_times() {
            sink.event(Event::Server(times));
        }
        if verdict.done {
            sink.event(Event::Done);
        }
    }

    /// Clears the frame without events.
    pub(crate) fn forget(&mut self) {
        self.facts = FrameFacts::default();
        self.forget_foreign();
        // Not by assignment: both have a long list, of which the length alone counts.
        self.pending.clear();
        self.variable_spans.clear();
    }

    /// The usage member at `range` of the frame, with the kind of its value.
    pub(crate) fn usage_member(&self, range: Option<(u64, u64)>) -> Option<UsageMember> {
        let (from, to) = range?;
        let value = match &self.facts.usage {
            None => UsageValue::Null,
            Some(counts) if counts.are_zeros() => UsageValue::Zeros,
            Some(_) => UsageValue::Counts,
        };
        Some(UsageMember { from, to, value })
    }

    /// Returns true if the elements of an array are whole answers (LiteLLM's to a list of models), not frames of one.
    fn is_list_of_answers(&self) -> bool {
        self.unstreamed && matches!(self.dialect, Dialect::OpenaiChat | Dialect::OpenaiCompletions)
    }

    /// The frame's own usage, which follows its choices.
    fn frame_usage(&self) -> Option<Usage> {
        let facts = &self.facts;
        if facts.typed.verdict.is_final {
            return None;
        }
        let (scope, counts) = match self.dialect.form() {
            Form::Prompt => {
                let counts = facts.usage.unwrap_or_default();
                // Embeddings with an answer of 0 tokens have none.
                let output = counts.get(Count::Output).filter(|tokens| *tokens > 0);
                (Scope::Whole, usage::of_prompt(counts, &facts.extra).with(Count::Output, output))
            }
            Form::Opaque => {
                let scope = if self.unstreamed { Scope::Whole } else { Scope::Running(0) };
                let counts = usage::non_empty(usage::of_any(facts.usage?, &facts.extra))?;
                (scope, self.body.earlier.as_ref().map_or(counts, |earlier| usage::merged(earlier, &counts)))
            }
            _ if self.dialect == Dialect::Gemini => {
                let is_last =
                    facts.choices.any_finish || self.unstreamed && facts.nesting != Nesting::Element;
                let scope = if is_last { Scope::Whole } else { Scope::Running(0) };
                (scope, usage::or_foreign(usage::with_thoughts(facts.usage?, &facts.extra), &facts.extra))
            }
            _ => self.listed_usage()?,
        };
        usage::non_empty(counts).map(|counts| Usage { scope, counts })
    }

    /// The scope and counts of a usage beside a list of choices.
    fn listed_usage(&self) -> Option<(Scope, Counts)> {
        let FrameFacts { choices, timings, usage, .. } = &self.facts;
        let (one, running) = (choices.only(), Scope::Running(choices.last));
        let elsewhere = || self.facts.typed.inner.and_then(usage::non_empty);
        if let Some(counts) = usage.and_then(usage::non_empty).or_else(elsewhere).or(*usage) {
            let scope = match (timings.seen, choices.closed, choices.any_finish || self.unstreamed) {
                // llama.cpp counts each choice separately; `timings` identify it.
                (true, 0, _) | (true, _, true) => Scope::Choice(one),
                (false, 1, true) => Scope::Choice(one),
                (_, 0, _) | (false, _, true) => Scope::Whole,
                (_, _, false) => running,
            };
            return Some((scope, counts));
        }
        let counts = timings.counts()?;
        one.map(|_| (running, counts))
    }

    /// The server's times, if they cover an answer and not a step.
    fn final_times(&self) -> Option<ServerReport> {
        let worth = match self.dialect {
            Dialect::LlamacppCompletion | Dialect::OllamaChat | Dialect::OllamaGenerate => {
                self.facts.choices.any_finish || self.unstreamed && self.facts.choices.closed > 0
            }
            Dialect::OpenaiResponses => self.facts.typed.verdict.has_times,
            _ => true,
        };
        (worth && self.facts.times != ServerReport::default()).then_some(self.facts.times)
    }

    fn close_choice(&mut self, sink: &mut impl Sink) {
        let choice = std::mem::take(&mut self.facts.choice);
        let index = choice.index.unwrap_or(self.facts.choices.closed);
        self.facts.choices.add(index, choice.finish);
        self.facts.choices.is_bare = !choice.has_member;
        let Choice { chars, role, finish, .. } = choice;
        self.pending.add(ChoiceFacts { choice: index, chars, tokens: choice.tokens(), role, finish }, sink);
        if choice.has_usage {
            self.close_choice_usage(index, finish.is_some(), sink);
        }
    }

    /// Adds the usage inside a choice (Moonshot).
    #[cold]
    fn close_choice_usage(&mut self, index: u32, is_last: bool, sink: &mut impl Sink) {
        let scope =
            if is_last || self.unstreamed { Scope::Choice(Some(index)) } else { Scope::Running(index) };
        if let Some(counts) = self.facts.typed.inner.take().and_then(usage::non_empty) {
            self.pending.add_usage(Usage { scope, counts }, sink);
        }
    }

    /// Closes a frame that is its own choice, or one of several in a list.
    #[inline(never)]
    fn close_native(&mut self, sink: &mut impl Sink) {
        let mut choice = std::mem::take(&mut self.facts.choice);
        let (usage, extra) = (self.facts.usage.take(), std::mem::take(&mut self.facts.extra));
        if choice.error {
            return;
        }
        let index = choice.index.unwrap_or(self.facts.choices.closed);
        let mut counts = usage;
        if self.dialect == Dialect::Tgi {
            choice.resolve_tgi(self.unstreamed);
            counts = usage::non_empty(usage::with_ordinal(usage.unwrap_or_default(), &extra));
        }
        counts = counts.map(|counts| usage::settled(self.dialect, choice.stopped, counts, &extra));
        let mut tokens = choice.tokens();
        if self.dialect == Dialect::Sglang && !self.unstreamed {
            let text = &mut choice.chars[Kind::Text as usize];
            let total = usage.and_then(|counts| counts.get(Count::Output));
            (*text, tokens) = self.body.uncommon().cumulative.new_in(index, *text, tokens, total);
        }
        let finish = choice.native_finish(self.dialect);
        if self.dialect.is_ollama() && choice.is_load && finish.is_some() {
            self.facts.raise(Subject::Load);
        }
        self.facts.choices.add(index, finish);
        self.pending
            .add(ChoiceFacts { choice: index, chars: choice.chars, tokens, role: choice.role, finish }, sink);
        let is_last = finish.is_some() || self.unstreamed;
        let scope = choice.native_scope(self.dialect, index, is_last);
        if let Some((counts, scope)) = counts.zip(scope) {
            self.pending.add_usage(Usage { scope, counts }, sink);
        }
    }

    /// Closes an element of a list that is equivalent to a frame.
    #[inline(never)]
    fn close_element(&mut self, sink: &mut impl Sink) {
        self.emit(true, sink);
        self.forget();
        (self.facts.nesting, self.facts.has_elements) = (Nesting::List, true);
    }
}

impl<S: Sink> Visit for Reader<'_, S> {
    fn value(&mut self, field: Field, value: Value<'_>, span: Option<(usize, usize)>) {
        let frame = &mut *self.frame;
        // The shape of an unstreamed body is not compared with another one.
        if !frame.unstreamed && field.may_vary() {
            frame.variable_spans.add(field, value, span);
        }
        frame.facts.choice.has_member |= !matches!(field, Field::Index | Field::Delta);
        match (field, value) {
            (Field::Model, value) => {
                let Value::Word(word) = value else { return };
                frame.facts.is_nameless = word.is_empty();
                match (&frame.body.names.model, &mut frame.envelope) {
                    (None, _) => frame.body.names.model = name::shared(Name::cut_str(word)),
                    (Some(model), Some(envelope)) => {
                        envelope.has_two_models |= **model != *Name::cut_str(word);
                    }
                    (Some(_), None) => {}
                }
            }
            (Field::Id, Value::Word(word)) => {
                if frame.body.names.id.is_none() {
                    frame.body.names.id = Name::whole_str(word).and_then(name::shared);
                }
            }
            (Field::Id, _) => {}
            (Field::Error, value) => {
                frame.facts.choice.error |= is_truthy(value);
                if frame.facts.choice.error {
                    frame.facts.raise(Subject::Error);
                }
            }
            (Field::Object, Value::Word(word)) => {
                if word == b"error" {
                    frame.facts.choice.error = true;
                    frame.facts.raise(Subject::Error);
                }
                frame.facts.typed.read_object(word);
                if frame.dialect == Dialect::Unknown {
                    frame.body.read_object(word);
                }
            }
            (Field::Choices, _) => {
                if frame.facts.choices.begin_list() {
                    frame.variable_spans.exclude();
                }
                frame.pending.clear();
            }
            (Field::Choice, value) => frame.facts.choice = Choice::begun(value),
            (Field::Delta, _) => frame.begin_delta(),
            (Field::Index, value) => {
                frame.facts.choice.index = match value {
                    Value::Number(number) => count(number).and_then(|n| u32::try_from(n).ok()),
                    _ => None,
                }
            }
            (Field::Role, value) => {
                frame.facts.choice.role = matches!(value, Value::Word(word) if !word.is_empty());
            }
            (Field::Finish, value) => {
                let word = match value {
                    Value::Word(word) => Some(word),
                    _ => None,
                };
                frame.facts.choice.finish = word.and_then(Finish::from_word);
                frame.facts.choice.is_load = matches!(word, Some(b"load" | b"unload"));
            }
            (Field::Usage, value) => {
                let mut stale = 2;
                if frame.facts.usage.is_some() {
                    frame.variable_spans.exclude();
                    stale = frame.facts.extra.ranks.len();
                }
                frame.facts.usage = (value == Value::Object).then(Counts::default);
                frame.facts.extra.ranks[..stale].fill(None);
                frame.facts.passes = None;
                frame.facts.typed.counts_inner = false;
            }
            (Field::Ids, value) => frame.facts.choice.ids = (value == Value::List).then_some(0),
            (Field::OtherIds, value) => frame.facts.choice.other_ids = (value == Value::List).then_some(0),
            (Field::Logprobs, value) => {
                if value == Value::List {
                    frame.facts.choice.logprobs.get_or_insert_default();
                }
            }
            (
                Field::Content
                | Field::ContentPart
                | Field::Reasoning
                | Field::ReasoningPart
                | Field::Refusal
                | Field::Tool
                | Field::Audio,
                Value::Text { chars },
            ) => frame.facts.choice.measure(field, chars),
            (Field::Content | Field::Refusal | Field::Audio, _) => frame.facts.choice.measure(field, 0),
            (Field::Varying, _) => {}
            (Field::UnknownCount, Value::Number(number))
                if count(number).is_some_and(|tokens| tokens > 0) =>
            {
                if let Some(event) = frame.unknown_count(count(number)) {
                    self.sink.event(event);
                }
            }
            (Field::Count(_), _) => frame.count_tokens(field, value),
            _ => frame.value(field, value),
        }
    }

    fn close(&mut self, field: Field, items: u32) {
        let choice = &mut self.frame.facts.choice;
        match field {
            Field::Choices => self.frame.facts.choices.listed = Some(items),
            Field::Choice if choice.open => match self.frame.dialect.form() {
                Form::Native => self.frame.close_native(self.sink),
                _ => self.frame.close_choice(self.sink),
            },
            Field::Ids => choice.ids = choice.ids.map(|_| items),
            Field::OtherIds => choice.other_ids = choice.other_ids.map(|_| items),
            Field::Logprobs => choice.logprobs = choice.logprobs.map(|most| most.max(items)),
            Field::Root => {
                self.frame.close_root(self.sink);
                if self.frame.facts.nesting == Nesting::Element {
                    self.frame.close_element(self.sink);
                }
            }
            Field::Element if self.frame.facts.nesting == Nesting::Element => {
                self.frame.close_element(self.sink);
            }
            // An empty one was not requested.
            Field::PromptList if items > 0 => {
                self.frame.facts.usage.get_or_insert_default().set(Count::Input, u64::from(items));
            }
            Field::Part if self.frame.dialect == Dialect::Gemini => choice.close_part(),
            Field::Modality | Field::CachedModality | Field::ToolModality => self.frame.close_part_of(field),
            Field::OutputModality | Field::CacheLifetime | Field::Metric => self.frame.close_part_of(field),
            Field::Usage => self.frame.close_own_usage(),
            Field::InnerUsage => {
                self.frame.close_usage();
                self.frame.facts.typed.close(field);
            }
            Field::Iteration => self.frame.close_pass(),
            _ => self.frame.facts.typed.close(field),
        }
    }

    #[cold]
    fn unknown(&mut self, name: &[u8], is_nested: bool, is_tokens: bool) {
        self.frame.unknown.begin(name, is_nested, is_tokens);
    }
}

impl Frame {
    /// Returns the event of a number of tokens at a member that is not read.
    #[cold]
    fn unknown_count(&mut self, tokens: Option<u64>) -> Option<Event> {
        let name = self.unknown.name()?;
        if !self.unknown.is_of_answer() {
            let beside = &mut self.facts.extra.ranks[usize::from(BESIDE_PROMPT)];
            *beside = usage::sum(*beside, tokens);
        }
        // A frame of the same shape would not report it.
        self.variable_spans.exclude();
        self.facts.unknown += 1;
        (self.facts.unknown <= FRAME_MAX_UNKNOWN).then_some(Event::Unknown(name))
    }

    /// Starts the member of an answer that holds its content.
    fn begin_delta(&mut self) {
        self.facts.choice.role = false;
        self.facts.choice.chars = Chars::default();
        if matches!(self.dialect, Dialect::Anthropic | Dialect::Cohere) {
            self.facts.choice.finish = None;
        }
        if self.dialect == Dialect::Cohere {
            self.facts.typed.inner = None;
        }
    }
}

fn is_truthy(value: Value<'_>) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(value) => value,
        Value::Word(word) => !word.is_empty(),
        Value::Text { chars } => chars > 0,
        Value::Number(number) => count(number) != Some(0),
        Value::Malformed | Value::Object | Value::List => true,
    }
}
