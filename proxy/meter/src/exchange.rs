//! One exchange, from its request to its ending, in fixed memory:
//!
//! | state     | entered by                    | counted in it                                   |
//! |-----------|-------------------------------|-------------------------------------------------|
//! | sent      | [`Meter::new`]                | nothing; [`Meter::requested`] sets t0           |
//! | answered  | [`Meter::answered`]           | the first byte                                  |
//! | streaming | the first token-bearing frame | gaps, weights, positions, stalls                |
//! | ended     | [`Meter::end`]                | the counts are resolved, the [`crate::Record`] is made |
//!
//! The meter has no clock: ticks come in with the bytes. The terms are defined in the record's
//! documentation.

mod end;

use scan::{Dialect, Event, Extent, Finish, Piece, Request, Scope, ServerReport, Sink, Usage};

use crate::Tick;
use crate::body::Body;
use crate::edges::{POSITION, POSITION_NAMES};
use crate::gaps::GapHistogram;
use crate::record::{FINISHES, Span};
use crate::track::{FrameWeight, Track};
use crate::usage_resolver::UsageResolver;

/// Choices that are timed one by one; further ones are counted only. A larger n is rare and adds nothing to
/// the latency distribution.
pub const TIMED_CHOICES: usize = 8;

/// Choices with running counts of their own; counts of higher indices are not trusted.
pub const COUNTED_CHOICES: usize = 128;

/// The default limit of one token count of one exchange: a hundred times the longest context of any model.
pub const TOKENS_MAX: u64 = 10_000_000;

/// Meters one exchange.
#[derive(Debug)]
pub struct Meter {
    began: Tick,
    requested: Option<Tick>,
    stall_ns: u64,
    dialect: Dialect,
    streamed: bool,
    unreadable: bool,
    /// The body became unreadable: the counts so far are part of an unknown total.
    became_unreadable: bool,
    status: u16,
    request: Request,
    first_byte: Option<Tick>,
    first_chunk: Option<Tick>,
    first_token: Option<Tick>,
    /// Tick of the last token of any choice, and the client wait until then.
    last_token: Tick,
    client_wait_at_last_token_ns: u64,
    first_visible: Option<Tick>,
    first_tool: Option<Tick>,
    last_visible: Tick,
    visible_chars: u64,
    visible_chars_first: u64,
    /// Highest choice index seen, plus one.
    choices: u32,
    finished: u32,
    finished_timed: u8,
    /// The last finish reason of each timed choice.
    finishes: [Option<Finish>; FINISHES],
    /// Bits of the timed choices that finished before the current frame.
    finished_earlier: u8,
    /// Bits of the timed choices with a final count.
    counted_timed: u8,
    length: bool,
    aborted: bool,
    content: bool,
    done: bool,
    error: bool,
    resolver: UsageResolver,
    track: Track,
    /// Tracks of further choices; most exchanges have none.
    more: Option<Box<[Track; TIMED_CHOICES - 1]>>,
    /// Bits of the timed choices with tokens in the current frame.
    in_frame: u8,
    /// Running counts of the untimed choices.
    untimed_running: Option<Box<[u64; COUNTED_CHOICES - TIMED_CHOICES]>>,
    /// The untimed choice with content in the current frame.
    untimed_in_frame: Option<u32>,
    /// Tokens of the timed choices by frame weight.
    timed_weight: u64,
    /// Tokens in all frames so far.
    weight: u64,
    /// Some frame's tokens are an estimate.
    inexact: bool,
    inter_token: GapHistogram,
    chunk_gap: GapHistogram,
    longest_gap_ns: u64,
    longest_token_gap_ns: u64,
    position: [Span; POSITION_NAMES.len()],
    stalls: u32,
    stalled_ns: u64,
    client_wait_ns: u64,
    server: ServerReport,
}

impl Meter {
    /// Starts an exchange whose request began at `began`. A gap of more than `stall_ns` between tokens is a
    /// stall.
    pub fn new(dialect: Dialect, began: Tick, stall_ns: u64) -> Self {
        Self {
            began,
            requested: None,
            stall_ns,
            dialect,
            streamed: false,
            unreadable: false,
            became_unreadable: false,
            status: 0,
            request: Request::default(),
            first_byte: None,
            first_chunk: None,
            first_token: None,
            last_token: Tick::default(),
            client_wait_at_last_token_ns: 0,
            first_visible: None,
            first_tool: None,
            last_visible: Tick::default(),
            visible_chars: 0,
            visible_chars_first: 0,
            choices: 0,
            finished: 0,
            finished_timed: 0,
            finishes: [None; FINISHES],
            finished_earlier: 0,
            counted_timed: 0,
            length: false,
            aborted: false,
            content: false,
            done: false,
            error: false,
            resolver: UsageResolver::new(TOKENS_MAX),
            track: Track::default(),
            more: None,
            in_frame: 0,
            untimed_running: None,
            untimed_in_frame: None,
            timed_weight: 0,
            weight: 0,
            inexact: false,
            inter_token: GapHistogram::default(),
            chunk_gap: GapHistogram::default(),
            longest_gap_ns: 0,
            longest_token_gap_ns: 0,
            position: Default::default(),
            stalls: 0,
            stalled_ns: 0,
            client_wait_ns: 0,
            server: ServerReport::default(),
        }
    }

    /// Limits every count to `tokens`, in place of [`TOKENS_MAX`]. Must be called before any other method.
    pub fn set_max_tokens(&mut self, tokens: u64) {
        self.resolver = UsageResolver::new(tokens);
    }

    /// Sets the dialect once the request's body determines it.
    pub fn set_dialect(&mut self, dialect: Dialect) {
        self.dialect = dialect;
        self.request = self.request.of(dialect);
    }

    /// Returns true if the response head has a status of success.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// The facts of the request, as far as they are known.
    pub fn request(&self) -> &Request {
        &self.request
    }

    /// Records the complete request at `at`, which is t0.
    pub fn requested(&mut self, request: Request, at: Tick) {
        self.request = request.of(self.dialect);
        self.requested = Some(at);
    }

    /// Records the response head and the way its body can be read.
    pub fn answered(&mut self, status: u16, body: Body) {
        self.status = status;
        self.streamed = body == Body::Frames;
        self.unreadable = body == Body::Unknown;
        self.resolver.is_body = body == Body::Whole;
    }

    /// Sets the way the body can be read, once its first byte determines it.
    pub fn set_body(&mut self, body: Body) {
        self.answered(self.status, body);
    }

    /// Marks the rest of the body as unreadable: the counts so far are part of an unknown total.
    pub fn mark_unreadable(&mut self) {
        self.unreadable = true;
        self.became_unreadable = true;
    }

    /// Records body bytes read at `at`; the returned sink takes their events.
    pub fn read(&mut self, at: Tick) -> Reading<'_> {
        self.first_byte.get_or_insert(at);
        Reading { meter: self, at }
    }

    /// Records the end of the body at `at`; the returned sink takes the events of its tail.
    pub fn tail(&mut self, at: Tick) -> Reading<'_> {
        Reading { meter: self, at }
    }

    /// Records `ns` nanoseconds for which a frame was ready and the client's socket was not.
    pub fn add_client_wait(&mut self, ns: u64) {
        self.client_wait_ns = self.client_wait_ns.saturating_add(ns);
    }

    /// The best count of output tokens so far; the final one once the server reported it.
    pub fn live_output(&self) -> u64 {
        let reported = self.resolver.reported(self.choices, &self.request, self.is_finished());
        reported.and_then(|counts| counts.output).unwrap_or(if self.streamed { self.weight } else { 0 })
    }

    /// Returns true if every requested answer finished, or the end mark arrived.
    fn is_finished(&self) -> bool {
        self.done || !self.streamed || self.finished >= self.choices.max(self.request.answers)
    }

    fn running(&self) -> u64 {
        let timed = self.tracks().filter_map(|track| track.running);
        let untimed = self.untimed_running.iter().flat_map(|counts| counts.iter().copied());
        timed.chain(untimed).fold(0, u64::saturating_add)
    }

    fn tracks(&self) -> impl Iterator<Item = &Track> {
        std::iter::once(&self.track).chain(self.more.iter().flat_map(|more| more.iter()))
    }

    fn track(&mut self, choice: u32) -> Option<&mut Track> {
        match usize::try_from(choice).unwrap_or(usize::MAX) {
            0 => Some(&mut self.track),
            n if n < TIMED_CHOICES => {
                let more = self.more.get_or_insert_with(|| Box::new([Track::default(); TIMED_CHOICES - 1]));
                Some(&mut more[n - 1])
            }
            _ => None,
        }
    }

    fn note_choice(&mut self, choice: u32) {
        self.choices = self.choices.max(choice.saturating_add(1));
    }

    fn content(&mut self, piece: Piece, reasoning: bool, at: Tick) {
        self.content = true;
        self.first_token.get_or_insert(at);
        self.tokens_of(piece, true, reasoning);
    }

    fn tokens_of(&mut self, mut piece: Piece, content: bool, reasoning: bool) {
        self.note_choice(piece.choice);
        let echo = self.request.echo;
        let Some(track) = self.track(piece.choice) else {
            self.untimed(piece, content, reasoning);
            return;
        };
        if echo && track.first.is_none() {
            // The first frame may hold the prompt, whose log probabilities are no output.
            piece.tokens = None;
        }
        let repeated = track.frame.content;
        track.frame.content |= content;
        if let Some(tokens) = piece.tokens {
            track.frame.tokens = Some(track.frame.tokens.unwrap_or(0).saturating_add(tokens));
        }
        self.in_frame |= 1 << piece.choice;
        self.count_ids(piece, reasoning);
        if content && !repeated {
            self.count_frame(reasoning);
        }
    }

    /// Counts a piece of an untimed choice.
    fn untimed(&mut self, piece: Piece, content: bool, reasoning: bool) {
        self.count_ids(piece, reasoning);
        let repeated = self.untimed_in_frame.replace(piece.choice) == Some(piece.choice);
        if content && !repeated {
            self.count_frame(reasoning);
            self.inexact |= piece.tokens.is_none();
        }
        let least = u64::from(content && !repeated);
        self.weight = self.weight.saturating_add(u64::from(piece.tokens.unwrap_or(0)).max(least));
    }

    fn count_ids(&mut self, piece: Piece, reasoning: bool) {
        let ids = u64::from(piece.tokens.unwrap_or(0));
        self.resolver.ids = self.resolver.ids.saturating_add(ids);
        if reasoning {
            self.resolver.ids_reasoning = self.resolver.ids_reasoning.saturating_add(ids);
        }
    }

    fn count_frame(&mut self, reasoning: bool) {
        self.resolver.frames += 1;
        if reasoning {
            self.resolver.frames_reasoning += 1;
        }
    }

    fn usage(&mut self, usage: &Usage) {
        let usage = &Usage { scope: self.scope(usage.scope), ..*usage };
        let counts = self.resolver.usage(usage);
        let (Scope::Running(choice) | Scope::Choice(Some(choice))) = usage.scope else { return };
        let Some(output) = counts.output else { return };
        self.note_choice(choice);
        if let Some(track) = self.track(choice) {
            track.frame.running = Some(output);
            self.in_frame |= 1 << choice;
        } else if (choice as usize) < COUNTED_CHOICES {
            let counts = self.untimed_running.get_or_insert_with(|| Box::new([0; _]));
            let count = &mut counts[choice as usize - TIMED_CHOICES];
            *count = output.max(*count);
        }
    }

    /// Returns the scope of a count. A count after the finish of its choice is final, once: LiteLLM sends it
    /// in a frame of its own that still names the choice. In the frame of the finish the scanner decides:
    /// the `timings` of llama.cpp there are a running count.
    fn scope(&mut self, scope: Scope) -> Scope {
        let (Scope::Running(choice) | Scope::Choice(Some(choice))) = scope else { return scope };
        if choice as usize >= TIMED_CHOICES {
            return scope;
        }
        let bit = 1 << choice;
        let last = matches!(scope, Scope::Choice(_)) || self.finished_earlier & bit != 0;
        if last && self.counted_timed & bit == 0 {
            self.counted_timed |= bit;
            return Scope::Choice(Some(choice));
        }
        Scope::Running(choice)
    }

    /// Merges the server's report of its own work; the last value of each field counts.
    fn merge_report(&mut self, report: ServerReport) {
        let server = &mut self.server;
        server.queue_ns = report.queue_ns.or(server.queue_ns);
        server.prefill_ns = report.prefill_ns.or(server.prefill_ns);
        server.decode_ns = report.decode_ns.or(server.decode_ns);
        server.draft_tokens = report.draft_tokens.or(server.draft_tokens);
        server.accepted_draft_tokens = report.accepted_draft_tokens.or(server.accepted_draft_tokens);
    }

    fn finish(&mut self, choice: u32, reason: Finish) {
        self.note_choice(choice);
        let bit = if (choice as usize) < TIMED_CHOICES { 1 << choice } else { 0 };
        if let Some(slot) = self.finishes.get_mut(choice as usize) {
            // Old Gemini models send `STOP` in every frame; the last one has the reason.
            *slot = Some(reason);
        }
        if self.finished_timed & bit == 0 {
            self.finished_timed |= bit;
            self.finished = self.finished.saturating_add(1);
        }
        self.length |= reason == Finish::Length;
        self.aborted |= reason == Finish::Abort;
    }

    fn end_frame(&mut self, at: Tick) {
        self.untimed_in_frame = None;
        self.finished_earlier = self.finished_timed;
        while self.in_frame != 0 {
            let choice = self.in_frame.trailing_zeros();
            self.in_frame &= self.in_frame - 1;
            let Some(track) = self.track(choice) else { continue };
            if let Some(weight) = track.end_frame() {
                self.token_frame(choice, weight, at);
            }
        }
    }

    /// Times a frame with tokens of a timed choice.
    fn token_frame(&mut self, choice: u32, weight: FrameWeight, at: Tick) {
        self.first_token.get_or_insert(at);
        self.inexact |= !weight.exact;
        self.weight = self.weight.saturating_add(weight.tokens);
        self.timed_weight = self.timed_weight.saturating_add(weight.tokens);
        (self.last_token, self.client_wait_at_last_token_ns) = (at, self.client_wait_ns);
        let (waited, stall_ns) = (self.client_wait_ns, self.stall_ns);
        let Some(track) = self.track(choice) else { return };
        track.weight = track.weight.saturating_add(weight.tokens);
        let reached = track.weight;
        let gap = track.first.map(|_| (at.since(track.last), waited.saturating_sub(track.client_wait_ns)));
        track.first.get_or_insert(at);
        track.last = at;
        track.client_wait_ns = waited;
        let Some((gap, waited)) = gap else { return };
        self.chunk_gap.add(gap, 1);
        self.longest_gap_ns = self.longest_gap_ns.max(gap);
        let each = self.inter_token.add(gap, weight.tokens);
        self.longest_token_gap_ns = self.longest_token_gap_ns.max(each);
        let span = &mut self.position[POSITION.partition_point(|&end| end < reached)];
        span.tokens = span.tokens.saturating_add(weight.tokens);
        span.ns = span.ns.saturating_add(gap);
        // The client's wait is not part of the server's stall.
        let silent = gap.saturating_sub(waited);
        if silent > stall_ns {
            self.stalls += 1;
            self.stalled_ns = self.stalled_ns.saturating_add(silent);
        }
    }

    /// Counts a stall of a server that sent nothing more until the end.
    fn stall_at_end(&mut self, at: Tick) {
        if self.timed_weight == 0 || self.done || self.finished >= self.choices.max(1) || !self.streamed {
            return;
        }
        let waited = self.client_wait_ns.saturating_sub(self.client_wait_at_last_token_ns);
        let silent = at.since(self.last_token).saturating_sub(waited);
        if silent > self.stall_ns {
            self.stalls += 1;
            self.stalled_ns = self.stalled_ns.saturating_add(silent);
        }
    }
}

/// Takes the events of the bytes read at one tick.
#[derive(Debug)]
pub struct Reading<'a> {
    meter: &'a mut Meter,
    at: Tick,
}

impl Sink for Reading<'_> {
    #[inline]
    fn event(&mut self, event: Event) {
        let (meter, at) = (&mut *self.meter, self.at);
        if meter.first_chunk.is_none() && !matches!(event, Event::Ping | Event::Done) {
            meter.first_chunk = Some(at);
        }
        match event {
            Event::Text(piece) => {
                meter.visible_chars += u64::from(piece.chars);
                meter.last_visible = at;
                if meter.first_visible.is_none() {
                    meter.first_visible = Some(at);
                    meter.visible_chars_first = u64::from(piece.chars);
                }
                meter.content(piece, false, at);
            }
            Event::Reasoning(piece) => meter.content(piece, true, at),
            Event::Tool(piece) => {
                meter.first_tool.get_or_insert(at);
                meter.content(piece, false, at);
            }
            Event::Refusal(piece) | Event::Audio(piece) => meter.content(piece, false, at),
            Event::Empty(piece) => meter.tokens_of(piece, false, false),
            Event::Role { choice } => meter.note_choice(choice),
            Event::Usage(usage) => meter.usage(&usage),
            Event::Finish { choice, reason } => meter.finish(choice, reason),
            Event::Error => meter.error = true,
            Event::Done => meter.done = true,
            Event::Server(report) => meter.merge_report(report),
            Event::Progress | Event::Ping | Event::Meta | Event::Other => {}
        }
    }

    #[inline]
    fn frame(&mut self, _extent: Extent) {
        self.meter.end_frame(self.at);
    }
}
