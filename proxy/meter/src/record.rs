//! The immutable value that leaves the data plane when an exchange ends. All later stages (metrics, ledger,
//! OTLP, the page) read records and nothing else.

use std::sync::Arc;

use scan::{Dialect, Finish, Links, MemberName, Sampling, ServerReport};

use crate::edges::{DURATION_S, GAP_S, POSITION_NAMES};
use crate::{Disagreement, Ending, ExchangeId, LoadSpan, Provenance, Role, TokenType, Tokens, Trace};

/// The identity of an exchange, from its request and response heads.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The id of the exchange.
    pub exchange: ExchangeId,
    /// The tenant; `default` where no rule identifies one.
    pub tenant: Arc<str>,
    /// The key or account of the request: a configured name, or a keyed hash.
    pub principal: Option<Arc<str>>,
    /// The end user of the request, as a keyed hash.
    pub consumer: Option<Arc<str>>,
    /// The service tier: of the response, with its speed and geography if they are not the standard ones
    /// ([`scan::Names::price_tier`]), else of the request. At most four words of 32 bytes.
    pub service_tier: Option<Arc<str>>,
    /// True if the response states that tier. If not, only the client requested it, and no server confirmed
    /// it.
    pub is_tier_reported: bool,
    /// The service tier that the request asks for, at most 32 bytes.
    pub requested_tier: Option<Arc<str>>,
    /// Name of the upstream, as configured.
    pub upstream: Arc<str>,
    /// `gen_ai.provider.name` of that upstream.
    pub provider: Arc<str>,
    /// False if that name is assumed: the kind of the server is unknown, or was not detected yet. Its answers may repeat
    /// what the request says.
    pub is_provider_known: bool,
    /// The role of the exchange in its request.
    pub role: Role,
    /// The id that the client gave the request. The legs and repetitions of one request share it. Printable
    /// ASCII, at most [`MAX_REQUEST_ID_BYTES`] bytes.
    pub request_id: Option<Arc<str>>,
    /// The JSON shape of request and response.
    pub dialect: Dialect,
    /// The model of the request; else of the response; else `_unknown`. At most 128 bytes.
    pub model: Arc<str>,
    /// The further models that the request names, in other places or in lists. The server may use any of them, so the
    /// dearest is charged. Each at most 128 bytes.
    pub other_models: Box<[Arc<str>]>,
    /// The model of the response, if it has one. At most 128 bytes.
    pub response_model: Option<Arc<str>>,
    /// The id of the response, if it has one of at most 128 bytes.
    pub response_id: Option<Arc<str>>,
    /// The ids in the request of what the server keeps, if it has any. Boxed, since few requests have one.
    pub links: Option<Box<Links>>,
    /// Its position in a distributed trace, if it has one.
    pub trace: Option<Box<Trace>>,
    /// Wall time of the request's head, nanoseconds since 1970. The only duration from here is
    /// [`Timing::upload_ns`]; see [`Record::requested_unix_ns`].
    pub started_unix_ns: u64,
}

impl Identity {
    /// The identity of an exchange with no other known facts.
    pub fn new(
        upstream: impl Into<Arc<str>>,
        provider: impl Into<Arc<str>>,
        dialect: Dialect,
        model: impl Into<Arc<str>>,
    ) -> Self {
        Self {
            exchange: ExchangeId::default(),
            tenant: DEFAULT_TENANT.into(),
            principal: None,
            consumer: None,
            service_tier: None,
            is_tier_reported: false,
            requested_tier: None,
            upstream: upstream.into(),
            provider: provider.into(),
            is_provider_known: true,
            role: Role::Whole,
            request_id: None,
            dialect,
            model: model.into(),
            other_models: Box::default(),
            response_model: None,
            response_id: None,
            links: None,
            trace: None,
            started_unix_ns: 0,
        }
    }

    /// Returns true if the response states the tier, and is of a server that may have tiers.
    pub fn is_tier_its_own(&self) -> bool {
        self.is_tier_reported && self.is_provider_known
    }
}

/// The tenant where no rule identifies one.
pub const DEFAULT_TENANT: &str = "default";

/// The longest request id that is kept, bytes.
pub const MAX_REQUEST_ID_BYTES: usize = 128;

/// One finished exchange.
#[derive(Clone, Debug)]
pub struct Record {
    /// The identity.
    pub identity: Identity,
    /// True if the request asked for a stream, or the answer was one.
    pub asked_stream: bool,
    /// True if the answer came in frames.
    pub streamed: bool,
    /// HTTP status of the answer; 0 if there was none.
    pub status: u16,
    /// Requested answers.
    pub answers: u32,
    /// Answers that arrived.
    pub choices: u32,
    /// The finish reasons of the first eight answers, by index; `None` if the server sent none.
    pub finishes: [Option<Finish>; FINISHES],
    /// The sampling parameters that the request set.
    pub sampling: Sampling,
    /// The ending.
    pub ending: Ending,
    /// The token counts.
    pub tokens: Tokens,
    /// The times.
    pub timing: Timing,
    /// The upstream's load at the start and at the end of the exchange.
    pub load: LoadSpan,
    /// Characters of visible text.
    pub visible_chars: u64,
    /// Counts of the server that exceeded the limit and were rejected.
    pub usage_rejected: u32,
    /// Cached prompt tokens that the server reported beyond the prompt itself; `tokens` does not include
    /// them.
    pub cached_excess: u64,
    /// The way in which the server's counts contradict one another, if they do.
    pub disagreement: Option<Disagreement>,
    /// Members of the server's usage with numbers of tokens, above zero, that are not read.
    pub unknown_counts: Vec<MemberName>,
    /// True if the server compacted the conversation ([`scan::Names::is_compacted`]).
    pub is_compacted: bool,
    /// Times that the complete request was sent to the upstream, or answered there: 0 if it never got that
    /// far, 2 if the upstream refused the injected usage option and then got the client's own request.
    pub upstream_attempts: u8,
}

impl Record {
    /// Wall time of t0, the complete request, nanoseconds since 1970. Every duration counts from it.
    pub fn requested_unix_ns(&self) -> u64 {
        self.identity.started_unix_ns.saturating_add(self.timing.upload_ns)
    }

    /// Wall time of the end, nanoseconds since 1970.
    pub fn ended_unix_ns(&self) -> u64 {
        self.requested_unix_ns().saturating_add(self.timing.duration_ns)
    }

    /// Sets the output to `output` tokens, counted by a local tokenizer in place of an estimate, and updates
    /// the speeds. Gaps remain those between frames.
    pub fn recount(&mut self, output: u64) {
        let tokens = &mut self.tokens;
        let before = tokens.output();
        tokens.output_provenance = Provenance::Tokenized;
        for kind in TokenType::ALL.into_iter().filter(|kind| !kind.is_input()) {
            tokens.by_type[kind as usize] = 0;
        }
        tokens.by_type[TokenType::Output as usize] = output;
        let timing = &mut self.timing;
        if timing.generation_tokens > 0 && output > 1 {
            timing.generation_tokens = output - 1;
            timing.output_rate = Some(timing.generation_tokens as f64 * 1e9 / timing.generation_ns as f64);
        }
        if let (Some(first), true) = (timing.first_token_ns, before > 1 && output > 1) {
            timing.per_output_token_ns = Some(timing.duration_ns.saturating_sub(first) / (output - 1));
        }
    }
}

/// Returns true if an upstream may have worked on a request that was sent to it completely `attempts` times
/// and answered with `status` (0 for none): it did not refuse it.
pub fn is_processed(status: u16, attempts: u8) -> bool {
    attempts > 0 && status < 400
}

/// Answers whose finish reasons are kept: the timed ones.
pub const FINISHES: usize = 8;

/// The times of one exchange, in nanoseconds unless stated otherwise; `None` if the event did not happen.
/// Events before t0 count as at t0. Where the engine counts the tokens, its steps are the token-bearing frames
/// ([`crate::Meter::count_by_engine`]).
#[derive(Clone, Debug, Default)]
pub struct Timing {
    /// From the request's head to t0, the complete request. If the request never became complete, t0 is its
    /// end.
    pub upload_ns: u64,
    /// From the complete request to the end.
    pub duration_ns: u64,
    /// To the response's first body byte.
    pub first_byte_ns: Option<u64>,
    /// To the first frame other than a keep-alive, whatever it holds. Streams only.
    pub first_chunk_ns: Option<u64>,
    /// To the first token of any kind. Streams only.
    pub first_token_ns: Option<u64>,
    /// To the first visible text. Streams only.
    pub first_visible_ns: Option<u64>,
    /// To the first part of a tool call. Streams only.
    pub first_tool_ns: Option<u64>,
    /// From the first to the last token, summed over the timed choices. Streams only.
    pub generation_ns: u64,
    /// Tokens produced in `generation_ns`: output less the first token of each choice.
    pub generation_tokens: u64,
    /// Time per output token by the semantic convention: (duration − TTFT) ÷ (output − 1).
    pub per_output_token_ns: Option<u64>,
    /// (output − 1) ÷ (last token − first token), tokens per second: the speed a user sees.
    pub output_rate: Option<f64>,
    /// (input − cached) ÷ TTFT, tokens per second.
    pub input_rate: Option<f64>,
    /// Visible characters per second between the first and the last token.
    pub visible_chars_rate: Option<f64>,
    /// The gaps, and the tokens and times by output position. Boxed, since most unstreamed answers have none.
    pub pace: Option<Box<StreamPace>>,
    /// The longest of [`StreamPace::chunk_gap`]; 0 if there is none.
    pub longest_gap_ns: u64,
    /// The longest observation in [`StreamPace::inter_token`]; 0 if there is none, and where they are spread.
    pub longest_token_gap_ns: u64,
    /// `exact` if the tokens of every frame were known, `spread` if the total was spread over the frames.
    pub weight: Weight,
    /// Gaps above the stall limit.
    pub stalls: u32,
    /// Total time of those stalls.
    pub stalled_ns: u64,
    /// Time for which a frame was ready and the client's socket was not.
    pub client_wait_ns: u64,
    /// Mean number of exchanges in flight at the upstream during this one.
    pub concurrency: f64,
    /// The server's report of its own work: its times, and the drafts of speculative decoding. Boxed, since few servers
    /// have one.
    pub server: Option<Box<ServerReport>>,
}

/// The gaps between the frames of an answer, and its tokens by their position.
#[derive(Clone, Debug, Default)]
pub struct StreamPace {
    /// Gap to the previous token-bearing frame ÷ tokens in the frame, once per token.
    pub inter_token: Gaps,
    /// Raw gaps between token-bearing frames.
    pub chunk_gap: Gaps,
    /// Gaps between successive frames other than keep-alives and the end mark, whatever they hold, in the buckets of
    /// [`DURATION_S`]. Streams only.
    pub output_chunk: Gaps<{ DURATION_S.len() + 1 }>,
    /// Tokens and time by output position.
    pub position: [Span; POSITION_NAMES.len()],
}

impl Timing {
    /// Returns the gaps and positions; without values if there are none.
    pub fn pace(&self) -> StreamPace {
        self.pace.as_deref().cloned().unwrap_or_default()
    }

    /// Returns the server's report; one without values if there is none.
    pub fn server(&self) -> ServerReport {
        self.server.as_deref().copied().unwrap_or_default()
    }
}

scan::listed_enum! {
    /// The source of the number of tokens in a frame.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum Weight {
        /// Ids, log probabilities, a running count or a step of the engine, or proven to be one each by the total.
        Exact = "exact",
        /// One per frame, scaled to the total.
        #[default]
        Spread = "spread",
    }
    /// The label value.
    pub fn name(self);
}

/// A histogram of gaps in the buckets of [`GAP_S`], or of other edges; the last bucket is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gaps<const BUCKETS: usize = { GAP_S.len() + 1 }> {
    /// Observations per bucket, not cumulated.
    pub buckets: [u64; BUCKETS],
    /// Sum of all observations.
    pub sum_ns: u64,
}

/// Tokens produced in a span of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// Tokens.
    pub tokens: u64,
    /// Nanoseconds.
    pub ns: u64,
}
