//! What a frame means: gathers the fields of one frame and turns them into events when it is
//! complete. A frame that the end of the body cuts short yields its usage and end marks only, so
//! nothing is let go before; [`FRAME_EVENTS`] says what happens to a frame that outgrows that.

use crate::dialect::Dialect;
use crate::event::{Counts, Event, Finish, Piece, Scope, Sink, Usage};
use crate::extent::Extent;
use crate::field::Field;
use crate::json::{Value, Visit};
use crate::limits::FRAME_EVENTS;
use crate::name::Name;
use crate::shape::Holes;

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
    usage: Option<Counts>,
    /// The usage [`Held::Usage`] stands for.
    ready: Option<Usage>,
    timings: Timings,
    progress: bool,
    error: bool,
    held: [Held; FRAME_EVENTS],
    holding: usize,
    /// Where this frame's varying values stand in the buffer.
    pub(crate) holes: Holes,
    /// The first model name any frame carried.
    pub(crate) model: Name,
}

/// The facts of one answer in it.
#[derive(Clone, Copy, Debug, Default)]
struct Choice {
    index: Option<u32>,
    role: bool,
    chars: [u32; Kind::ALL.len()],
    /// Token ids, if they are listed.
    ids: Option<u32>,
    /// Log-probability entries, if they are listed.
    logprobs: Option<u32>,
    stopped: bool,
    finish: Option<Finish>,
    error: bool,
    /// It is an object, as a choice is.
    open: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Timings {
    seen: bool,
    prompt: Option<u64>,
    cached: Option<u64>,
    predicted: Option<u64>,
}

/// What a piece of content is; the order is that of the events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Reasoning,
    Text,
    Refusal,
    Tool,
    Audio,
}

/// An event that waits for its frame's end.
#[derive(Clone, Copy, Debug)]
enum Held {
    Role(u32),
    Piece(Kind, Piece),
    Empty(Piece),
    Finish(u32, Finish),
    /// The usage that is ready: a native frame carries one per choice.
    Usage,
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
            usage: None,
            ready: None,
            timings: Timings::default(),
            progress: false,
            error: false,
            held: [Held::Role(0); FRAME_EVENTS],
            holding: 0,
            holes: Holes::default(),
            model: Name::default(),
        }
    }

    /// The frame is marked as an error from outside its payload (`event: error`).
    pub(crate) fn mark_error(&mut self) {
        self.error = true;
    }

    /// What a frame of one piece is made of, if this is one: the shape of most frames.
    pub(crate) fn single_piece(&self) -> Option<(Kind, Piece, Option<Counts>)> {
        if self.choices != 1 || self.any_finish || self.error || self.progress || self.timings.seen {
            return None;
        }
        match self.held[..self.holding] {
            [Held::Piece(kind, piece)] => Some((kind, piece, self.usage)),
            [Held::Piece(kind, piece), Held::Usage] => Some((kind, piece, self.ready.map(|u| u.counts))),
            _ => None,
        }
    }

    /// Ends the frame: gives its events to `sink` and forgets it. A frame that is not `whole`
    /// keeps its content to itself.
    pub(crate) fn end(&mut self, mut extent: Extent, sink: &mut impl Sink) {
        extent.is_usage = self.has_choices && self.listed == 0 && self.usage.is_some() && !self.error;
        if self.error {
            sink.event(Event::Error);
        } else if self.progress {
            self.holding = 0;
            sink.event(Event::Progress);
        } else if self.choices == 0 && self.usage.is_none() {
            sink.event(if self.has_choices { Event::Meta } else { Event::Other });
        }
        self.release(extent.whole, sink);
        if let Some(usage) = self.whole_usage() {
            sink.event(Event::Usage(usage));
        }
        sink.frame(extent);
        self.forget();
    }

    /// Forgets the frame without a word.
    pub(crate) fn forget(&mut self) {
        self.choice = Choice::default();
        self.choices = 0;
        self.last = 0;
        self.any_finish = false;
        self.has_choices = false;
        self.listed = 0;
        self.usage = None;
        self.ready = None;
        self.timings = Timings::default();
        self.progress = false;
        self.error = false;
        self.holding = 0;
        self.holes.clear();
    }

    /// Which part of the answer the frame's usage covers.
    fn whole_usage(&self) -> Option<Usage> {
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
            return Some(Usage { scope, counts });
        }
        let output = self.timings.predicted?;
        let input = self.timings.prompt.map(|n| n + self.timings.cached.unwrap_or(0));
        let counts =
            Counts { input, input_cached: self.timings.cached, output: Some(output), ..Counts::default() };
        (self.choices == 1).then_some(Usage { scope: running, counts })
    }

    fn close_choice(&mut self, sink: &mut impl Sink) {
        let choice = std::mem::take(&mut self.choice);
        if self.dialect.frame_is_choice() && choice.error {
            self.usage = None;
            return;
        }
        let index = choice.index.unwrap_or(self.choices);
        self.choices = self.choices.saturating_add(1);
        self.last = index;
        let finish = match (self.dialect.frame_is_choice(), choice.stopped) {
            (true, true) => Some(choice.finish.unwrap_or(Finish::Stop)),
            (true, false) => None,
            (false, _) => choice.finish,
        };
        self.any_finish |= finish.is_some();

        let mut tokens = choice.tokens();
        let mut content = false;
        for kind in Kind::ALL {
            let chars = choice.chars[kind as usize];
            if chars > 0 {
                self.hold(Held::Piece(kind, Piece { choice: index, chars, tokens }), sink);
                tokens = tokens.map(|_| 0);
                content = true;
            }
        }
        let unsent = tokens.is_some_and(|n| n > 0);
        if !content && choice.role {
            self.hold(Held::Role(index), sink);
        }
        if !content && (unsent || !choice.role && finish.is_none()) {
            self.hold(Held::Empty(Piece { choice: index, chars: 0, tokens }), sink);
        }
        if let Some(reason) = finish {
            self.hold(Held::Finish(index, reason), sink);
        }
        if self.dialect.frame_is_choice()
            && let Some(counts) = self.usage.take()
        {
            let scope = match finish.is_some() || self.unstreamed {
                true => Scope::Choice(Some(index)),
                false => Scope::Running(index),
            };
            if self.ready.is_some() {
                self.release(true, sink);
            }
            self.ready = Some(Usage { scope, counts });
            self.hold(Held::Usage, sink);
        }
    }

    fn hold(&mut self, held: Held, sink: &mut impl Sink) {
        if self.holding == FRAME_EVENTS {
            self.release(true, sink);
        }
        self.held[self.holding] = held;
        self.holding += 1;
    }

    fn release(&mut self, whole: bool, sink: &mut impl Sink) {
        for held in &self.held[..self.holding] {
            let event = match *held {
                Held::Role(choice) => Event::Role { choice },
                Held::Piece(kind, piece) => kind.event(piece),
                Held::Empty(piece) => Event::Empty(piece),
                Held::Finish(choice, reason) => Event::Finish { choice, reason },
                Held::Usage => match self.ready.take() {
                    Some(usage) => Event::Usage(usage),
                    None => continue,
                },
            };
            if whole || matches!(held, Held::Finish(..) | Held::Usage) {
                sink.event(event);
            }
        }
        self.holding = 0;
    }
}

impl<S: Sink> Visit for Reader<'_, S> {
    fn value(&mut self, field: Field, value: Value<'_>, span: Option<(usize, usize)>) {
        let frame = &mut *self.frame;
        if field.may_vary() {
            frame.holes.add(field, value, span);
        }
        match (field, value) {
            (Field::Model, Value::Word(word)) => {
                if frame.model.is_empty() {
                    frame.model = Name::cut(word);
                }
            }
            (Field::Error, value) => {
                frame.choice.error = is_truthy(value);
                frame.error |= frame.choice.error;
            }
            (Field::Object, Value::Word(word)) => frame.error |= word == b"error",
            (Field::Choices, _) => {
                // Of two lists the last counts, as every parser has it.
                if std::mem::replace(&mut frame.has_choices, true) {
                    frame.holes.spoil();
                }
                frame.holding = 0;
                frame.choices = 0;
                frame.listed = 0;
                frame.any_finish = false;
            }
            (Field::Choice, value) => {
                frame.choice = Choice { open: value == Value::Object, ..Choice::default() };
            }
            (Field::Delta, _) => {
                frame.choice.role = false;
                frame.choice.chars = [0; Kind::ALL.len()];
            }
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
                frame.choice.finish = match value {
                    Value::Word(word) => Finish::from_word(word),
                    _ => None,
                }
            }
            (Field::Stop, value) => frame.choice.stopped = value == Value::Bool(true),
            (Field::Usage, value) => {
                if frame.usage.is_some() {
                    frame.holes.spoil();
                }
                frame.usage = (value == Value::Object).then(Counts::default);
            }
            (Field::Timings, value) => frame.timings.seen = value == Value::Object,
            (Field::Progress, value) => frame.progress = value == Value::Object,
            (Field::TimingsPrompt, Value::Number(n)) => frame.timings.prompt = count(n),
            (Field::TimingsCached, Value::Number(n)) => frame.timings.cached = count(n),
            (Field::TimingsPredicted, Value::Number(n)) => frame.timings.predicted = count(n),
            (Field::Ids, value) => frame.choice.ids = (value == Value::List).then_some(0),
            (Field::Logprobs, Value::List) => {
                frame.choice.logprobs.get_or_insert_default();
            }
            (_, Value::Text { chars }) => frame.choice.measure(field, chars),
            (Field::Content | Field::Refusal | Field::Audio, _) => frame.choice.measure(field, 0),
            (_, value) => frame.count_tokens(field, value),
        }
    }

    fn close(&mut self, field: Field, items: u32) {
        let choice = &mut self.frame.choice;
        match field {
            Field::Choices => self.frame.listed = items,
            Field::Choice if choice.open => self.frame.close_choice(self.sink),
            Field::Ids => choice.ids = choice.ids.map(|_| items),
            Field::Logprobs => choice.logprobs = choice.logprobs.map(|most| most.max(items)),
            _ => {}
        }
    }
}

impl Frame {
    /// A token count of the usage object, or of a frame that is its own usage.
    fn count_tokens(&mut self, field: Field, value: Value<'_>) {
        let slot: fn(&mut Counts) -> &mut Option<u64> = match field {
            Field::InputTokens => |c| &mut c.input,
            Field::CachedTokens => |c| &mut c.input_cached,
            Field::CacheWriteTokens => |c| &mut c.input_cache_write,
            Field::OutputTokens => |c| &mut c.output,
            Field::ReasoningTokens => |c| &mut c.output_reasoning,
            Field::AudioTokens => |c| &mut c.output_audio,
            _ => return,
        };
        let number = match value {
            Value::Number(number) => count(number),
            Value::Null => return,
            _ => None,
        };
        if self.dialect.frame_is_choice() {
            self.usage.get_or_insert_default();
        }
        let Some(counts) = &mut self.usage else { return };
        match number {
            Some(_) => *slot(counts) = number,
            None => counts.rejected += 1,
        }
    }
}

impl Choice {
    fn measure(&mut self, field: Field, chars: u32) {
        let (kind, adds) = match field {
            Field::Content => (Kind::Text, false),
            Field::ContentPart => (Kind::Text, true),
            Field::Reasoning => {
                // A server that knows both of its names sends the same text twice.
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

    /// Tokens in it. Ids are exact where there are any: log probabilities may cover the prompt too.
    fn tokens(&self) -> Option<u32> {
        match (self.ids, self.logprobs) {
            (None | Some(0), Some(entries)) => Some(entries),
            (ids, _) => ids,
        }
    }
}

impl Kind {
    pub(crate) const ALL: [Self; 5] = [Self::Reasoning, Self::Text, Self::Refusal, Self::Tool, Self::Audio];

    /// The event of a piece of this kind.
    pub(crate) fn event(self, piece: Piece) -> Event {
        match self {
            Self::Reasoning => Event::Reasoning(piece),
            Self::Text => Event::Text(piece),
            Self::Refusal => Event::Refusal(piece),
            Self::Tool => Event::Tool(piece),
            Self::Audio => Event::Audio(piece),
        }
    }
}

fn is_truthy(value: Value<'_>) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::Word(word) => !word.is_empty(),
        Value::Text { chars } => chars > 0,
        Value::Number(number) => count(number) != Some(0),
        Value::Bool(true) | Value::Object | Value::List => true,
    }
}

/// A number as a count: a whole number from 0 to 2^53, however it is written (`12`, `12.0`).
pub(crate) fn count(number: &[u8]) -> Option<u64> {
    const MOST: u64 = 1 << 53;
    if number.len() <= 16 && number.iter().all(u8::is_ascii_digit) {
        let n = number.iter().fold(0_u64, |n, &digit| n * 10 + u64::from(digit - b'0'));
        return (n <= MOST).then_some(n);
    }
    let n: f64 = str::from_utf8(number).ok()?.parse().ok()?;
    (n >= 0.0 && n <= MOST as f64 && n.fract() == 0.0).then_some(n as u64)
}
