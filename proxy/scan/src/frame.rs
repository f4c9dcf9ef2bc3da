//! What a frame means: gathers the fields of one frame and turns them into events when it is
//! complete. A frame that the end of the body cuts short yields its usage and end marks only, so
//! nothing is let go before; [`held`] says what happens to a frame that outgrows that.
//!
//! The gathering is here; beside it, one noun a file: an answer's facts ([`choice`]), counts
//! ([`usage`]), times ([`times`]), the fields that most frames lack ([`rare`]), and the two ways of saying things that need more than the fields
//! themselves: a type that decides ([`typed`]), frames that repeat what was said ([`cumulative`]).

mod choice;
mod cumulative;
mod held;
mod kind;
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
use crate::shape::Holes;
use choice::Choice;
use cumulative::Cumulative;
use held::{Queue, Said};
use typed::Typed;
use usage::{Extra, Modality, Timings};

pub(crate) use kind::{Chars, Kind};
pub(crate) use times::Unit;
pub(crate) use usage::{FOREIGN_INPUT, FOREIGN_OUTPUT, count};

/// The facts of the frame at hand.
#[derive(Debug)]
pub(crate) struct Frame {
    dialect: Dialect,
    /// The frame is a whole unstreamed answer: its usage is final whatever it says of an end.
    unstreamed: bool,
    choice: Choice,
    /// The number of choices closed so far.
    choices: u32,
    /// Number of the last choice closed.
    last: u32,
    any_finish: bool,
    has_choices: bool,
    /// Elements of the list of choices, whatever they are.
    listed: u32,
    /// The last choice closed has a number and an empty delta at most.
    is_bare: bool,
    usage: Option<Counts>,
    extra: Extra,
    timings: Timings,
    times: ServerReport,
    /// The frame names no model, in so many words.
    is_nameless: bool,
    /// There is no answer, and this is why.
    blocked: Option<Finish>,
    /// Ollama loads or unloads a model, which is no answer.
    is_load: bool,
    progress: bool,
    error: bool,
    /// The frame is a list whose elements may speak for themselves, and some have.
    is_list: bool,
    has_elements: bool,
    /// We are inside one of them.
    in_element: bool,
    /// Answers of a Responses body that have begun, and that have ended.
    begun: u32,
    ended: u32,
    typed: Typed,
    held: Queue,
    /// Where this frame's varying values stand in the buffer.
    pub(crate) holes: Holes,
    /// The first model name any frame carried.
    pub(crate) model: Name,
    /// The first id any frame gave its answer, and that is no longer than a name.
    pub(crate) id: Name,
    /// The last service tier any frame told: what a Responses stream begins with is what was asked for.
    pub(crate) tier: Tier,
    /// Of an answer of no known dialect: the one that it says it is of.
    pub(crate) answered: Option<Dialect>,
    /// Anthropic's counts of the frames before, and those of a stream of no known dialect.
    earlier: Counts,
    /// SGLang's frames before.
    cumulative: Cumulative,
}

/// Reads one frame's fields into a [`Frame`], letting events go to `sink` where they may.
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
            held: Queue::new(),
            holes: Holes::default(),
            model: Name::default(),
            id: Name::default(),
            tier: Tier::default(),
            answered: None,
            earlier: Counts::default(),
            cumulative: Cumulative::default(),
        }
    }

    /// The frame is marked as an error from outside its payload (`event: error`).
    pub(crate) fn mark_error(&mut self) {
        self.error = true;
    }

    /// What a frame is whose payload could not be read.
    pub(crate) fn unread(&self, whole: bool) -> Event {
        match self.dialect.form() == Form::Opaque && whole && !self.unstreamed {
            true => Event::Text(Piece::default()),
            false => Event::Other,
        }
    }

    /// What a frame of one piece is made of, if this is one: the shape of most frames. What it
    /// means must follow from its own bytes, number by number.
    pub(crate) fn single_piece(&self) -> Option<(Kind, Piece, Option<Counts>)> {
        if self.choices != 1 || self.any_finish || self.error || self.progress || self.timings.seen {
            return None;
        }
        if self.times != ServerReport::default() || !self.dialect.frames_stand_alone() {
            return None;
        }
        let (kind, piece, held) = self.held.single_piece()?;
        let usage = held.or_else(|| self.said_usage());
        let running = |usage: &Usage| usage.scope == Scope::Running(piece.choice);
        if usage.is_some_and(|usage| !running(&usage) || self.dialect.adds_counts()) {
            return None;
        }
        // A usage object without a number says nothing, and its numbers may come.
        (usage.is_some() || self.usage.is_none()).then_some((kind, piece, usage.map(|usage| usage.counts)))
    }

    /// Ends the frame: gives its events to `sink`. A frame that is not `whole` keeps its content to
    /// itself.
    pub(crate) fn end(&mut self, mut extent: Extent, sink: &mut impl Sink) {
        // LiteLLM puts the usage beside one choice that says nothing.
        let is_alone = self.listed == 0 || self.listed == 1 && self.is_bare;
        extent.is_usage = self.has_choices && is_alone && self.usage.is_some() && !self.error;
        if !self.has_elements || self.error {
            self.say(extent.whole, sink);
        }
        sink.frame(extent);
    }

    fn say(&mut self, whole: bool, sink: &mut impl Sink) {
        if let Some(reason) = self.blocked.filter(|_| self.choices == 0) {
            self.any_finish = true;
            self.choices = 1;
            self.held.say(Said { finish: Some(reason), ..Said::default() }, sink);
        }
        // Ollama's OpenAI routes turn an error into a delta of nothing by nobody.
        self.error |= self.is_nameless
            && self.dialect.is_openai()
            && self.choices > 0
            && !self.any_finish
            && self.held.is_void();
        let verdict = self.typed.verdict;
        let usage = self.said_usage();
        if self.error {
            sink.event(Event::Error);
        } else if self.progress {
            self.held.clear();
            sink.event(Event::Progress);
            if let Some(choice) = self.typed.begins {
                self.held.say(Said { choice, role: true, ..Said::default() }, sink);
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
        self.held.release(whole, sink);
        if let Some(usage) = usage {
            if self.dialect == Dialect::Unknown {
                self.answered = usage::dialect(self.answered, &usage.counts);
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

    /// Forgets the frame without a word.
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
        self.held.clear();
        self.holes.clear();
    }

    /// The frame's own usage, which follows its choices.
    fn said_usage(&self) -> Option<Usage> {
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
                let counts = usage::said(usage::of_any(self.usage?, &self.extra))?;
                (scope, usage::merged(&self.earlier, &counts))
            }
            _ if self.dialect == Dialect::Gemini => {
                let is_last = self.any_finish || self.unstreamed && !self.in_element;
                let scope = if is_last { Scope::Whole } else { Scope::Running(0) };
                (scope, usage::or_foreign(usage::with_thoughts(self.usage?, &self.extra), &self.extra))
            }
            _ => self.listed_usage()?,
        };
        usage::said(counts).map(|counts| Usage { scope, counts })
    }

    /// Which part of the answer the usage beside a list of choices covers.
    fn listed_usage(&self) -> Option<(Scope, Counts)> {
        let running = Scope::Running(self.last);
        if let Some(counts) = self.usage {
            let one = (self.choices == 1).then_some(self.last);
            let scope = match (self.timings.seen, self.choices, self.any_finish || self.unstreamed) {
                // llama.cpp counts each choice for itself, and `timings` gives it away.
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

    /// The server's times, where they are those of an answer and not of a step.
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
        self.held.say(Said { choice: index, chars, tokens: choice.tokens(), role, finish }, sink);
    }

    /// A frame that is its own choice closes, or one of several in a list.
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
            choice.settle_tgi(self.unstreamed);
            counts = usage::said(usage::with_ordinal(usage.unwrap_or_default(), &extra));
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
        self.held.say(Said { choice: index, chars: choice.chars, tokens, role: choice.role, finish }, sink);
        let is_last = finish.is_some() || self.unstreamed;
        let scope = choice.native_scope(self.dialect, index, is_last);
        if let Some((counts, scope)) = counts.zip(scope) {
            self.held.count(Usage { scope, counts }, sink);
        }
    }

    /// An element of a list that stands for a frame closes.
    #[inline(never)]
    fn close_element(&mut self, sink: &mut impl Sink) {
        self.say(true, sink);
        self.forget();
        self.is_list = true;
        self.has_elements = true;
    }
}

impl<S: Sink> Visit for Reader<'_, S> {
    fn value(&mut self, field: Field, value: Value<'_>, span: Option<(usize, usize)>) {
        let frame = &mut *self.frame;
        if field.may_vary() {
            frame.holes.add(field, value, span);
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
                frame.typed.is_called(word);
                if frame.dialect == Dialect::Unknown {
                    frame.answered = Dialect::of_object(word).or(frame.answered);
                }
            }
            (Field::Choices, _) => {
                // Of two lists the last counts, as every parser has it.
                if std::mem::replace(&mut frame.has_choices, true) {
                    frame.holes.spoil();
                }
                frame.held.clear();
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
                    frame.holes.spoil();
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
            // An empty one was not asked for.
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
    /// The part of one modality ends: its tokens go to the field that `of` names.
    fn close_modality(&mut self, of: fn(Modality) -> Field) {
        let slot = self.extra.modality.and_then(|modality| usage::slot(of(modality)));
        if let (Some(slot), Some(counts)) = (slot, &mut self.usage) {
            *slot(counts) = self.extra.ranks[1];
        }
    }

    /// The part of an answer that holds its content begins.
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
