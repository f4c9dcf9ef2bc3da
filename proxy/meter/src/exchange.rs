//! One exchange, from its request to its ending, in fixed memory:
//!
//! | state     | entered by                    | counted in it                               | held by                |
//! |-----------|-------------------------------|---------------------------------------------|------------------------|
//! | sent      | [`Meter::new`]                | nothing; [`Meter::requested`] sets t0       | `Sent`                 |
//! | answered  | [`Meter::answered`]           | the first byte, the chunks                  | `Answer`, `Chunks`     |
//! | streaming | the first token-bearing frame | weights; gaps, positions, stalls            | `Tracks`; `Pace`       |
//! | ended     | [`Meter::end`]                | the counts are resolved, the record is made | [`crate::Record`]      |
//!
//! The meter has no clock: ticks come in with the bytes. The terms are defined in the record's
//! documentation.
//!
//! In the process of an inference engine, the engine counts the tokens in place of the frames:
//! [`Meter::count_by_engine`].

mod answer;
mod choices;
mod chunks;
mod end;
mod engine;
mod instants;
mod pace;

use scan::limits::FRAME_MAX_UNKNOWN;
use scan::{Count, Delta, Dialect, Event, Extent, MemberName, Request, Scope, ServerReport, Sink, Usage};

use self::answer::Answer;
use self::choices::Choices;
use self::chunks::Chunks;
use self::engine::EngineCounts;
pub use self::engine::{EnginePrompt, EngineStep};
use self::instants::{FirstTicks, VisibleText};
use self::pace::{Pace, Stalls};
use crate::Tick;
use crate::body::Body;
pub use crate::limits::{COUNTED_CHOICES, TIMED_CHOICES, TOKENS_MAX};
use crate::tokens::TokenType;
use crate::track::{Moment, Tracks};
use crate::usage_resolver::UsageResolver;

/// Meters one exchange.
#[derive(Debug)]
pub struct Meter {
    sent: Sent,
    dialect: Dialect,
    answer: Answer,
    firsts: FirstTicks,
    /// The chunks of a stream, once there is one.
    chunks: Option<Box<Chunks>>,
    visible: VisibleText,
    choices: Choices,
    tracks: Tracks,
    /// The gaps, once there is one: an unstreamed answer has none.
    pace: Option<Box<Pace>>,
    stalls: Stalls,
    /// Nanoseconds for which a frame was ready and the client's socket was not.
    client_wait_ns: u64,
    resolver: UsageResolver,
    /// The counts of the engine, if it is their source; without it, the frames of the body are.
    engine: Option<Box<EngineCounts>>,
    /// The server's report of its own work, if there is one.
    server: Option<Box<ServerReport>>,
    /// Members of usages with unknown numbers of tokens.
    unknown_counts: Option<Box<UnknownCounts>>,
}

/// The members of usages that are not read. Few exchanges have one.
#[derive(Debug, Default)]
struct UnknownCounts(Vec<MemberName>);

/// The request.
#[derive(Debug)]
struct Sent {
    began: Tick,
    /// Tick of the complete request.
    complete: Option<Tick>,
    facts: Request,
}

impl Sent {
    /// The complete request, from which every duration counts; its begin, if it never became complete.
    fn t0(&self) -> Tick {
        self.complete.unwrap_or(self.began)
    }
}

impl Meter {
    /// Starts an exchange whose request began at `began`. A gap of more than `stall_ns` between tokens is a
    /// stall.
    pub fn new(dialect: Dialect, began: Tick, stall_ns: u64) -> Self {
        Self {
            sent: Sent { began, complete: None, facts: Request::default() },
            dialect,
            answer: Answer::default(),
            firsts: FirstTicks::default(),
            chunks: None,
            visible: VisibleText::default(),
            choices: Choices::default(),
            tracks: Tracks::default(),
            pace: None,
            stalls: Stalls::above(stall_ns),
            client_wait_ns: 0,
            resolver: UsageResolver::new(TOKENS_MAX),
            engine: None,
            server: None,
            unknown_counts: None,
        }
    }

    /// Limits every count to `tokens`, in place of [`TOKENS_MAX`]. Must be called before any other method.
    pub fn set_max_tokens(&mut self, tokens: u64) {
        self.resolver = UsageResolver::new(tokens);
    }

    /// Sets the dialect once the request's body determines it.
    pub fn set_dialect(&mut self, dialect: Dialect) {
        self.resolver.is_opaque = dialect == Dialect::Unknown;
        if self.dialect != dialect {
            self.dialect = dialect;
            self.sent.facts.count_as(Some(dialect));
        }
    }

    /// Returns true if the response head has a status of success.
    pub fn is_success(&self) -> bool {
        self.answer.is_success()
    }

    /// The facts of the request, as far as they are known.
    pub fn request(&self) -> &Request {
        &self.sent.facts
    }

    /// Records the complete request at `at`, which is t0.
    pub fn requested(&mut self, request: Request, at: Tick) {
        self.sent.facts = request.of(self.dialect);
        self.sent.complete = Some(at);
    }

    /// Records the response head and the way its body can be read.
    pub fn answered(&mut self, status: u16, body: Body) {
        self.answer = Answer::new(status, body);
        self.resolver.is_body = body == Body::Whole;
    }

    /// Sets the way the body can be read, once its first byte determines it.
    pub fn set_body(&mut self, body: Body) {
        self.answered(self.answer.status, body);
    }

    /// Marks the rest of the body as unreadable: the counts so far are part of an unknown total.
    pub fn mark_unreadable(&mut self) {
        self.answer.mark_unreadable();
    }

    /// Records body bytes read at `at`; the returned sink takes their events.
    pub fn read(&mut self, at: Tick) -> MeterSink<'_> {
        self.firsts.byte.get_or_insert(at);
        MeterSink { meter: self, at }
    }

    /// Records the end of the body at `at`; the returned sink takes the events of its tail.
    pub fn tail(&mut self, at: Tick) -> MeterSink<'_> {
        MeterSink { meter: self, at }
    }

    /// Records `ns` nanoseconds for which a frame was ready and the client's socket was not.
    pub fn add_client_wait(&mut self, ns: u64) {
        self.client_wait_ns = self.client_wait_ns.saturating_add(ns);
    }

    /// The best count of output tokens so far; the final one once the server reported it.
    pub fn live_output(&self) -> u64 {
        if let Some(counts) = &self.engine {
            return counts.output();
        }
        let reported = self.resolver.reported(self.choices.count, &self.sent.facts, self.is_finished());
        let weight = if self.answer.is_streamed() { self.tracks.weight } else { 0 };
        reported.and_then(|counts| counts.get(Count::Output)).unwrap_or(weight)
    }

    /// Returns true if the body finished every requested answer, or its end mark arrived.
    fn is_finished(&self) -> bool {
        let is_streamed = self.answer.is_streamed();
        self.choices.marks.done || !is_streamed || self.choices.are_finished_by_body(self.sent.facts.answers)
    }

    fn now(&self, at: Tick) -> Moment {
        Moment { at, client_wait_ns: self.client_wait_ns }
    }

    fn content(&mut self, delta: Delta, reasoning: bool, at: Tick) {
        self.choices.has_content = true;
        if self.engine.is_none() {
            self.firsts.token.get_or_insert(at);
        }
        self.tokens_of(delta, true, reasoning);
    }

    fn tokens_of(&mut self, mut delta: Delta, content: bool, reasoning: bool) {
        self.choices.note(delta.choice);
        if self.engine.is_some() {
            return self.add_uncounted(delta, content, reasoning);
        }
        if self.sent.facts.echo && self.tracks.of(delta.choice).is_some_and(|track| track.first.is_none()) {
            // The first frame may hold the prompt, whose log probabilities are no output.
            delta.tokens = None;
        }
        self.resolver.add_ids(delta.tokens, reasoning);
        if self.tracks.add(delta, content) {
            self.resolver.add_frame(reasoning);
        }
    }

    fn usage(&mut self, usage: &Usage) {
        let usage = &Usage { scope: self.choices.scope(usage.scope), ..*usage };
        let counts = self.resolver.usage(usage);
        let (Scope::Running(choice) | Scope::Choice(Some(choice))) = usage.scope else { return };
        let Some(output) = counts.get(Count::Output) else { return };
        self.choices.note(choice);
        if self.engine.is_none() {
            self.tracks.count(choice, output);
        }
    }

    /// Merges the server's report of its own work; the last value of each field counts.
    fn merge_report(&mut self, report: ServerReport) {
        let server = self.server.get_or_insert_default();
        server.queue_ns = report.queue_ns.or(server.queue_ns);
        server.prefill_ns = report.prefill_ns.or(server.prefill_ns);
        server.decode_ns = report.decode_ns.or(server.decode_ns);
        server.draft_tokens = report.draft_tokens.or(server.draft_tokens);
        server.accepted_draft_tokens = report.accepted_draft_tokens.or(server.accepted_draft_tokens);
    }

    fn end_frame(&mut self, at: Tick) {
        self.choices.end_frame();
        if self.engine.is_none() {
            self.time_tokens(at);
        }
    }

    /// Sets the type of the generated tokens where a usage does not say it; `None` for text.
    pub fn set_generates(&mut self, kind: Option<TokenType>) {
        self.resolver.generates = kind;
    }

    /// Adds a member with an unknown number of tokens, once.
    fn add_unknown(&mut self, name: MemberName) {
        let UnknownCounts(names) = &mut **self.unknown_counts.get_or_insert_default();
        if names.len() < FRAME_MAX_UNKNOWN && !names.contains(&name) {
            names.push(name);
        }
    }

    /// Times the tokens that were added since the last call, which arrived at `at`.
    fn time_tokens(&mut self, at: Tick) {
        let now = self.now(at);
        self.tracks.end_frame(now, |frame| {
            self.firsts.token.get_or_insert(at);
            // The first one of a choice has no gap.
            if let Some(gap) = frame.gap {
                self.pace.get_or_insert_default().add(frame, gap);
                self.stalls.add(gap.silent_ns);
            }
        });
    }

    /// Counts a stall of a server that sent nothing more until the end.
    fn stall_at_end(&mut self, at: Tick) {
        if !self.answer.is_streamed() || self.choices.marks.done || self.choices.are_finished(1) {
            return;
        }
        if let Some(gap) = self.tracks.since_last(self.now(at)) {
            self.stalls.add(gap.silent_ns);
        }
    }
}

/// Takes the events of the bytes read at one tick.
#[derive(Debug)]
pub struct MeterSink<'a> {
    meter: &'a mut Meter,
    at: Tick,
}

impl Sink for MeterSink<'_> {
    #[inline]
    fn event(&mut self, event: Event) {
        let (meter, at) = (&mut *self.meter, self.at);
        if meter.answer.is_streamed() && !matches!(event, Event::Ping | Event::Done | Event::Unknown(_)) {
            meter.chunks.get_or_insert_with(|| Box::new(Chunks::new(at))).begin();
        }
        match event {
            Event::Text(delta) => {
                meter.visible.add(u64::from(delta.chars), at);
                meter.content(delta, false, at);
            }
            Event::Reasoning(delta) => meter.content(delta, true, at),
            Event::Tool(delta) => {
                meter.firsts.tool.get_or_insert(at);
                meter.content(delta, false, at);
            }
            Event::Refusal(delta) | Event::Audio(delta) => meter.content(delta, false, at),
            Event::Empty(delta) => meter.tokens_of(delta, false, false),
            Event::Role { choice } => meter.choices.note(choice),
            Event::Usage(usage) => meter.usage(&usage),
            Event::Finish { choice, reason } => meter.choices.finish(choice, reason),
            Event::Error => meter.choices.marks.error = true,
            Event::Done => meter.choices.marks.done = true,
            Event::Server(report) => meter.merge_report(report),
            Event::Unknown(name) => meter.add_unknown(name),
            Event::Progress | Event::Ping | Event::Meta | Event::Other => {}
        }
    }

    #[inline]
    fn frame(&mut self, _extent: Extent) {
        if let Some(chunks) = &mut self.meter.chunks {
            chunks.end_frame(self.at);
        }
        self.meter.end_frame(self.at);
    }
}
