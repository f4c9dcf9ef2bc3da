//! The meaning of a frame: collects its fields and turns them into events when the frame is complete. A
//! frame cut short by the end of the body yields its usage and end marks only, so no event is released
//! earlier; [`pending`] defines the handling of frames with too many events.
//!
//! This file collects. Beside it: the facts of an answer ([`choice`]), counts ([`usage`]), times
//! ([`times`]), uncommon fields ([`rare`]), and the two cases that need more than the fields: a type that
//! decides ([`typed`]) and frames that repeat earlier ones ([`cumulative`]).

mod choice;
mod cumulative;
mod kind;
mod pending;
mod rare;
mod times;
mod typed;
mod usage;

use crate::dialect::{Dialect, Form};
use crate::event::{Counts, Event, Finish, Piece, Scope, ServerReport, Sink, Usage};
use crate::extent::Extent;
use crate::field::Field;
use crate::json::{Value, Visit};
use crate::name::{Name, Tier};
use crate::shape::VariableSpans;
use choice::Choice;
use cumulative::Cumulative;
use pending::{ChoiceFacts, PendingEvents};
use typed::Typed;
use usage::{Extra, Modality, Timings};

pub(crate) use kind::{Chars, Kind};
pub(crate) use times::Unit;
pub(crate) use usage::{FOREIGN_INPUT, FOREIGN_OUTPUT, count};

/// The facts of the current frame.
#[derive(Debug)]
pub(crate) struct Frame {
    dialect: Dialect,
    /// The frame is an unstreamed answer: its usage is final without a finish.
    unstreamed: bool,
    choice: Choice,
    /// The number of choices closed so far.
    choices: u32,
    /// Index of the last choice closed.
    last: u32,
    any_finish: bool,
    has_choices: bool,
    /// Elements in the list of choices, of any type.
    listed: u32,
    /// The last choice closed has at most an index and an empty delta.
    is_bare: bool,
    usage: Option<Counts>,
    extra: Extra,
    timings: Timings,
    times: ServerReport,
    /// The model's name in the frame is empty.
    is_nameless: bool,
    /// The reason that there is no answer.
    blocked: Option<Finish>,
    /// Ollama loads or unloads a model, which is no answer.
    is_load: bool,
    progress: bool,
    error: bool,
    /// The frame is a list whose elements may be frames, and some were.
    is_list: bool,
    has_elements: bool,
    /// The current value is in one of them.
    in_element: bool,
    /// Answers of a Responses body that began, and that ended.
    begun: u32,
    ended: u32,
    typed: Typed,
    pending: PendingEvents,
    /// The variable values of this frame in the caller's buffer.
    pub(crate) variable_spans: VariableSpans,
    /// The first model name in any frame.
    pub(crate) model: Name,
    /// The first id in any frame that fits a name.
    pub(crate) id: Name,
    /// The last service tier in any frame: a Responses stream begins with the requested one.
    pub(crate) tier: Tier,
    /// In an answer of unknown dialect: the dialect that it names.
    pub(crate) response_dialect: Option<Dialect>,
    /// Counts of earlier frames: Anthropic's, and those of a stream of unknown dialect.
    earlier: Counts,
    /// The earlier frames of SGLang.
    cumulative: Cumulative,
}

/// Reads one frame's fields into a [`Frame`]; events beyond the limit go to `sink` early.
pub(crate) struct Reader<'a, S> {
    pub(crate) frame: &'a mut Frame,
    pub(crate) sink: &'a mut S,
}

impl Frame {
    pub(crate) fn new(dialect: Dialect, unstreamed: bool) -> Self {
        Self {
            dialect,
            unstreamed,
            choice: Choice::default(),
            choices: 0,
            last: 0,
            any_finish: false,
            has_choices: false,
            listed: 0,
            is_bare: false,
            usage: None,
            extra: Extra::default(),
            timings: Timings::default(),
            times: ServerReport::default(),
            is_nameless: false,
            blocked: None,
            is_load: false,
            progress: false,
            error: false,
            is_list: false,
            has_elements: false,
            in_element: false,
            begun: 0,
            ended: 0,
            typed: Typed::default(),
            pending: PendingEvents::new(),
            variable_spans: VariableSpans::default(),
            model: Name::default(),
            id: Name::default(),
            tier: Tier::default(),
            response_dialect: None,
            earlier: Counts::default(),
            cumulative: Cumulative::default(),
        }
    }

    /// Marks the frame as an error from outside its payload (`event: error`).
    pub(crate) fn mark_error(&mut self) {
        self.error = true;
    }

    /// Returns the event of a frame with an unreadable payload.
    pub(crate) fn unread(&self, whole: bool) -> Event {
        match self.dialect.form() == Form::Opaque && whole && !self.unstreamed {
            true => Event::Text(Piece::default()),
            false => Event::Other,
        }
    }

    /// Returns the content of a frame with a single piece, the shape of most frames. Its meaning must follow
    /// from its own bytes, number by number.
    pub(crate) fn single_piece(&self) -> Option<(Kind, Piece, Option<Counts>)> {
        if self.choices != 1 || self.any_finish || self.error || self.progress || self.timings.seen {
            return None;
        }
        if self.times != ServerReport::default() || !self.dialect.frames_are_independent() {
            return None;
        }
        let (kind, piece, pending) = self.pending.single_piece()?;
        let usage = pending.or_else(|| self.frame_usage());
        let running = |usage: &Usage| usage.scope == Scope::Running(piece.choice);
        if usage.is_some_and(|usage| !running(&usage) || self.dialect.adds_counts()) {
            return None;
        }
        // A usage object without a number is absent now, but its numbers may come.
        (usage.is_some() || self.usage.is_none()).then_some((kind, piece, usage.map(|usage| usage.counts)))
    }

    /// Ends the frame: passes its events to `sink`. A frame that is not `whole` keeps its content.
    pub(crate) fn end(&mut self, mut extent: Extent, sink: &mut impl Sink) {
        // LiteLLM puts the usage beside one choice without content.
        let is_alone = self.listed == 0 || self.listed == 1 && self.is_bare;
        extent.is_usage = self.has_choices && is_alone && self.usage.is_some() && !self.error;
        if !self.has_elements || self.error {
            self.emit(extent.whole, sink);
        }
        sink.frame(extent);
    }

    fn emit(&mut self, whole: bool, sink: &mut impl Sink) {
        if let Some(reason) = self.blocked.filter(|_| self.choices == 0) {
            self.any_finish = true;
            self.choices = 1;
            self.pending.add(ChoiceFacts { finish: Some(reason), ..ChoiceFacts::default() }, sink);
        }
        // Ollama's OpenAI routes turn an error into an empty delta without a model.
        self.error |= self.is_nameless
            && self.dialect.is_openai()
            && self.choices > 0
            && !self.any_finish
            && self.pending.is_empty_delta();
        let verdict = self.typed.verdict;
        let usage = self.frame_usage();
        if self.error {
            sink.event(Event::Error);
        } else if self.progress {
            self.pending.clear();
            sink.event(Event::Progress);
            if let Some(choice) = self.typed.begins {
                self.pending.add(ChoiceFacts { choice, role: true, ..ChoiceFacts::default() }, sink);
            }
        } else if self.is_load {
            sink.event(Event::Meta);
        } else if verdict.is_final {
            if let Some(note) = verdict.note {
                sink.event(note);
            }
        } else if self.dialect.form() == Form::Opaque && !self.unstreamed {
            if whole {
                sink.event(Event::Text(Piece::default()));
            }
            self.earlier = usage.map_or(self.earlier, |usage| usage.counts);
        } else if self.choices == 0 && usage.is_none() {
            sink.event(if self.has_choices { Event::Meta } else { Event::Other });
        }
        self.pending.release(whole, sink);
        if let Some(usage) = usage {
            if self.dialect == Dialect::Unknown {
                self.response_dialect = usage::dialect(self.response_dialect, &usage.counts);
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
        self.choice = Choice::default();
        self.choices = 0;
        self.last = 0;
        self.any_finish = false;
        self.has_choices = false;
        self.listed = 0;
        self.is_bare = false;
        self.usage = None;
        self.extra = Extra::default();
        self.timings = Timings::default();
        self.times = ServerReport::default();
        self.is_nameless = false;
        self.blocked = None;
        self.is_load = false;
        self.progress = false;
        self.error = false;
        self.is_list = false;
        self.has_elements = false;
        self.in_element = false;
        self.typed = Typed::default();
        self.pending.clear();
        self.variable_spans.clear();
    }

    /// The frame's own usage, which follows its choices.
    fn frame_usage(&self) -> Option<Usage> {
        if self.typed.verdict.is_final {
            return None;
        }
        let (scope, counts) = match self.dialect.form() {
            Form::Prompt => {
                let counts = self.usage.unwrap_or_default();
                // Embeddings with an answer of 0 tokens have none.
                let output = counts.output.filter(|tokens| *tokens > 0);
                (Scope::Whole, Counts { input: self.extra.first(), output, ..counts })
            }
            Form::Opaque => {
                let scope = if self.unstreamed { Scope::Whole } else { Scope::Running(0) };
                let counts = usage::non_empty(usage::of_any(self.usage?, &self.extra))?;
                (scope, usage::merged(&self.earlier, &counts))
            }
            _ if self.dialect == Dialect::Gemini => {
                let is_last = self.any_finish || self.unstreamed && !self.in_element;
                let scope = if is_last { Scope::Whole } else { Scope::Running(0) };
                (scope, usage::or_foreign(usage::with_thoughts(self.usage?, &self.extra), &self.extra))
            }
            _ => self.listed_usage()?,
        };
        usage::non_empty(counts).map(|counts| Usage { scope, counts })
    }

    /// The scope and counts of a usage beside a list of choices.
    fn listed_usage(&self) -> Option<(Scope, Counts)> {
        let running = Scope::Running(self.last);
        if let Some(counts) = self.usage {
            let one = (self.choices == 1).then_some(self.last);
            let scope = match (self.timings.seen, self.choices, self.any_finish || self.unstreamed) {
                // llama.cpp counts each choice separately; `timings` identify it.
                (true, 0, _) | (true, _, true) => Scope::Choice(one),
                (false, 1, true) => Scope::Choice(one),
                (_, 0, _) | (false, _, true) => Scope::Whole,
                (_, _, false) => running,
            };
            return Some((scope, counts));
        }
        let counts = self.timings.counts()?;
        (self.choices == 1).then_some((running, counts))
    }

    /// The server's times, if they cover an answer and not a step.
    fn final_times(&self) -> Option<ServerReport> {
        let worth = match self.dialect {
            Dialect::LlamacppCompletion | Dialect::OllamaChat | Dialect::OllamaGenerate => {
                self.any_finish || self.unstreamed && self.choices > 0
            }
            Dialect::OpenaiResponses => self.typed.verdict.has_times,
            _ => true,
        };
        (worth && self.times != ServerReport::default()).then_some(self.times)
    }

    fn close_choice(&mut self, sink: &mut impl Sink) {
        let choice = std::mem::take(&mut self.choice);
        let index = choice.index.unwrap_or(self.choices);
        self.choices = self.choices.saturating_add(1);
        self.last = index;
        self.is_bare = !choice.has_member;
        self.any_finish |= choice.finish.is_some();
        let Choice { chars, role, finish, .. } = choice;
        self.pending.add(ChoiceFacts { choice: index, chars, tokens: choice.tokens(), role, finish }, sink);
    }

    /// Closes a frame that is its own choice, or one of several in a list.
    #[inline(never)]
    fn close_native(&mut self, sink: &mut impl Sink) {
        let mut choice = std::mem::take(&mut self.choice);
        let (usage, extra) = (self.usage.take(), std::mem::take(&mut self.extra));
        if choice.error {
            return;
        }
        let index = choice.index.unwrap_or(self.choices);
        self.choices = self.choices.saturating_add(1);
        self.last = index;
        let mut counts = usage;
        if self.dialect == Dialect::Tgi {
            choice.resolve_tgi(self.unstreamed);
            counts = usage::non_empty(usage::with_ordinal(usage.unwrap_or_default(), &extra));
        }
        if self.dialect.is_ollama() && choice.stopped {
            counts = counts.map(usage::with_zero);
        }
        let mut tokens = choice.tokens();
        if self.dialect == Dialect::Sglang && !self.unstreamed {
            let text = &mut choice.chars[Kind::Text as usize];
            let total = usage.and_then(|counts| counts.output);
            (*text, tokens) = self.cumulative.new_in(index, *text, tokens, total);
        }
        let finish = choice.native_finish(self.dialect);
        self.is_load |= self.dialect.is_ollama() && choice.is_load && finish.is_some();
        self.any_finish |= finish.is_some();
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
        self.is_list = true;
        self.has_elements = true;
    }
}

impl<S: Sink> Visit for Reader<'_, S> {
    fn value(&mut self, field: Field, value: Value<'_>, span: Option<(usize, usize)>) {
        let frame = &mut *self.frame;
        if field.may_vary() {
            frame.variable_spans.add(field, value, span);
        }
        frame.choice.has_member |= !matches!(field, Field::Index | Field::Delta);
        match (field, value) {
            (Field::Model, value) => {
                let Value::Word(word) = value else { return };
                frame.is_nameless = word.is_empty();
                if frame.model.is_empty() {
                    frame.model = Name::cut(word);
                }
            }
            (Field::Id, Value::Word(word)) => {
                if frame.id.is_empty() {
                    frame.id = Name::whole(word).unwrap_or_default();
                }
            }
            (Field::Id, _) => {}
            (Field::Error, value) => {
                frame.choice.error |= is_truthy(value);
                frame.error |= frame.choice.error;
            }
            (Field::Object, Value::Word(word)) => {
                if word == b"error" {
                    frame.choice.error = true;
                    frame.error = true;
                }
                frame.typed.read_object(word);
                if frame.dialect == Dialect::Unknown {
                    frame.response_dialect = Dialect::of_object(word).or(frame.response_dialect);
                }
            }
            (Field::Choices, _) => {
                // The last of two lists counts, as in every parser.
                if std::mem::replace(&mut frame.has_choices, true) {
                    frame.variable_spans.exclude();
                }
                frame.pending.clear();
                frame.choices = 0;
                frame.listed = 0;
                frame.any_finish = false;
            }
            (Field::Choice, value) => frame.choice = Choice::begun(value),
            (Field::Delta, _) => frame.begin_delta(),
            (Field::Index, value) => {
                frame.choice.index = match value {
                    Value::Number(number) => count(number).and_then(|n| u32::try_from(n).ok()),
                    _ => None,
                }
            }
            (Field::Role, value) => {
                frame.choice.role = matches!(value, Value::Word(word) if !word.is_empty());
            }
            (Field::Finish, value) => {
                let word = match value {
                    Value::Word(word) => Some(word),
                    _ => None,
                };
                frame.choice.finish = word.and_then(Finish::from_word);
                frame.choice.is_load = matches!(word, Some(b"load" | b"unload"));
            }
            (Field::Usage, value) => {
                if frame.usage.is_some() {
                    frame.variable_spans.exclude();
                }
                frame.usage = (value == Value::Object).then(Counts::default);
                frame.extra.ranks[..2].fill(None);
                frame.typed.counts_inner = false;
            }
            (Field::Ids, value) => frame.choice.ids = (value == Value::List).then_some(0),
            (Field::OtherIds, value) => frame.choice.other_ids = (value == Value::List).then_some(0),
            (Field::Logprobs, value) => {
                if value == Value::List {
                    frame.choice.logprobs.get_or_insert_default();
                }
            }
            (
                Field::Content
                | Field::ContentPart
                | Field::Reasoning
                | Field::Refusal
                | Field::Tool
                | Field::Audio,
                Value::Text { chars },
            ) => frame.choice.measure(field, chars),
            (Field::Content | Field::Refusal | Field::Audio, _) => frame.choice.measure(field, 0),
            (Field::Varying, _) => {}
            (
                Field::InputTokens
                | Field::CachedTokens
                | Field::CacheWriteTokens
                | Field::InputAudioTokens
                | Field::OutputTokens
                | Field::ReasoningTokens
                | Field::AudioTokens,
                _,
            ) => frame.count_tokens(field, value),
            _ => frame.value(field, value),
        }
    }

    fn close(&mut self, field: Field, items: u32) {
        let choice = &mut self.frame.choice;
        match field {
            Field::Choices => self.frame.listed = items,
            Field::Choice if choice.open => match self.frame.dialect.form() {
                Form::Native => self.frame.close_native(self.sink),
                _ => self.frame.close_choice(self.sink),
            },
            Field::Ids => choice.ids = choice.ids.map(|_| items),
            Field::OtherIds => choice.other_ids = choice.other_ids.map(|_| items),
            Field::Logprobs => choice.logprobs = choice.logprobs.map(|most| most.max(items)),
            Field::Root => {
                self.frame.close_root(self.sink);
                if self.frame.in_element {
                    self.frame.close_element(self.sink);
                }
            }
            Field::Element if self.frame.in_element => self.frame.close_element(self.sink),
            // An empty one was not requested.
            Field::PromptList if items > 0 => {
                self.frame.usage.get_or_insert_default().input = Some(u64::from(items));
            }
            Field::Part if self.frame.dialect == Dialect::Gemini => choice.close_part(),
            Field::Modality => self.frame.close_modality(Modality::input),
            Field::OutputModality => self.frame.close_modality(Modality::output),
            _ => self.frame.typed.close(field),
        }
    }
}

impl Frame {
    /// Ends the part of one modality: its tokens go to the field that `of` returns.
    fn close_modality(&mut self, of: fn(Modality) -> Field) {
        let slot = self.extra.modality.and_then(|modality| usage::slot(of(modality)));
        if let (Some(slot), Some(counts)) = (slot, &mut self.usage) {
            *slot(counts) = self.extra.ranks[1];
        }
    }

    /// Starts the member of an answer that target its content.
    fn begin_delta(&mut self) {
        self.choice.role = false;
        self.choice.chars = Chars::default();
        if matches!(self.dialect, Dialect::Anthropic | Dialect::Cohere) {
            self.choice.finish = None;
        }
        if self.dialect == Dialect::Cohere {
            self.typed.inner = None;
        }
    }
}

fn is_truthy(value: Value<'_>) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::Word(word) => !word.is_empty(),
        Value::Text { chars } => chars > 0,
        Value::Number(number) => count(number) != Some(0),
        Value::Bool(true) | Value::Malformed | Value::Object | Value::List => true,
    }
}
