//! The one immutable value that leaves the data plane when an exchange ends. Everything after it
//! (metrics, ledger, OTLP, the page) reads records and nothing else.

use std::sync::Arc;

use scan::{Dialect, Finish, Sampling, ServerReport};

use crate::edges::{GAP_S, POSITION_NAMES};
use crate::{Ending, ExchangeId, LoadSpan, Provenance, Role, TokenType, Tokens, Trace};

/// Who and what an exchange was, known from its request and response heads.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The exchange's own name.
    pub exchange: ExchangeId,
    /// Whose exchange it is; `default` where nobody is told apart.
    pub tenant: Arc<str>,
    /// The key or account it was made with: a name of ours, or a keyed hash.
    pub principal: Option<Arc<str>>,
    /// The end user it was made for, as a keyed hash.
    pub consumer: Option<Arc<str>>,
    /// The service tier: what the response says, else what the request asked for. At most 32 bytes.
    pub service_tier: Option<Arc<str>>,
    /// Whether the response says that tier. If not, it is a client's word that no server confirmed.
    pub tier_said: bool,
    /// Name of the upstream, as configured.
    pub upstream: Arc<str>,
    /// `gen_ai.provider.name` of that upstream.
    pub provider: Arc<str>,
    /// The part of a request that it is.
    pub role: Role,
    /// The id that the client gave the request, which the legs and the repetitions of one request share.
    /// Printable ASCII, at most [`MAX_REQUEST_ID_BYTES`] bytes.
    pub request_id: Option<Arc<str>>,
    /// The JSON shape spoken.
    pub dialect: Dialect,
    /// The model the request named; else the response's; else `_unknown`. At most 128 bytes.
    pub model: Arc<str>,
    /// The model the response named, if it did. At most 128 bytes.
    pub response_model: Option<Arc<str>>,
    /// The response's own id, if it has one of at most 128 bytes.
    pub response_id: Option<Arc<str>>,
    /// The id of the response that the request continues, of at most 128 visible characters.
    pub previous_response_id: Option<Arc<str>>,
    /// The id of the conversation that the request is part of, of at most 128 visible characters.
    pub conversation_id: Option<Arc<str>>,
    /// Its place in a distributed trace, if it has one.
    pub trace: Option<Box<Trace>>,
    /// Wall time of the request's head, nanoseconds since 1970. No duration counts from here but
    /// [`Timing::upload_ns`]: see [`Record::requested_unix_ns`].
    pub started_unix_ns: u64,
}

impl Identity {
    /// An exchange of which nothing else is known.
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
            tier_said: false,
            upstream: upstream.into(),
            provider: provider.into(),
            role: Role::Whole,
            request_id: None,
            dialect,
            model: model.into(),
            response_model: None,
            response_id: None,
            previous_response_id: None,
            conversation_id: None,
            trace: None,
            started_unix_ns: 0,
        }
    }
}

/// Whose an exchange is where nobody is told apart.
pub const DEFAULT_TENANT: &str = "default";

/// The length of the longest request id that is kept, bytes.
pub const MAX_REQUEST_ID_BYTES: usize = 128;

/// One finished exchange.
#[derive(Clone, Debug)]
pub struct Record {
    /// Who and what.
    pub identity: Identity,
    /// Whether the request asked for frames, or got some.
    pub asked_stream: bool,
    /// Whether the answer came in frames.
    pub streamed: bool,
    /// HTTP status of the answer; 0 if there was none.
    pub status: u16,
    /// Answers that were asked for.
    pub answers: u32,
    /// Answers that were seen.
    pub choices: u32,
    /// How the first eight answers ended, by index; `None` is "never said".
    pub finishes: [Option<Finish>; FINISHES],
    /// How the request asked for its answers to be drawn, where it said so.
    pub sampling: Sampling,
    /// How it ended.
    pub ending: Ending,
    /// What it cost in tokens.
    pub tokens: Tokens,
    /// How long each part took.
    pub timing: Timing,
    /// The upstream's load cell when the exchange began and when it ended.
    pub load: LoadSpan,
    /// Characters of visible text.
    pub visible_chars: u64,
    /// Counts the server sent that could not be counts and were refused.
    pub usage_rejected: u32,
    /// Cached prompt tokens that the server reported beyond the prompt itself; they are no part of
    /// `tokens`.
    pub cached_excess: u64,
    /// Times that the whole request was sent to the upstream, or answered there: 0 where it never got that far, 2 where
    /// the upstream refused the question for usage and got the client's own request after it.
    pub upstream_attempts: u8,
}

impl Record {
    /// Wall time of t0, the complete request, nanoseconds since 1970: what every duration counts
    /// from.
    pub fn requested_unix_ns(&self) -> u64 {
        self.identity.started_unix_ns.saturating_add(self.timing.upload_ns)
    }

    /// Wall time of the end, nanoseconds since 1970.
    pub fn ended_unix_ns(&self) -> u64 {
        self.requested_unix_ns().saturating_add(self.timing.duration_ns)
    }

    /// The answer has `output` tokens by a local tokenizer's count, where there was only an estimate:
    /// the counts, and the speeds made of them. Gaps stay those between frames.
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

/// Returns whether an upstream may have worked on a request that was sent to it `attempts` times, whole, and answered with
/// `status` (0 for none): it did not refuse it.
pub fn is_processed(status: u16, attempts: u8) -> bool {
    attempts > 0 && status < 400
}

/// Answers whose ends are kept: those that are timed too.
pub const FINISHES: usize = 8;

/// The times of one exchange. Nanoseconds unless said otherwise; `None` is "did not happen". What
/// came before the request was complete came at t0.
#[derive(Clone, Debug, Default)]
pub struct Timing {
    /// From the request's head to t0, the complete request. Of a request that never became complete
    /// all its time: then t0 is its end.
    pub upload_ns: u64,
    /// From the complete request to the end.
    pub duration_ns: u64,
    /// To the response's first body byte.
    pub first_byte_ns: Option<u64>,
    /// To the first frame that is more than a sign of life, whatever it holds. Streams only.
    pub first_chunk_ns: Option<u64>,
    /// To the first token of any kind. Streams only.
    pub first_token_ns: Option<u64>,
    /// To the first visible text. Streams only.
    pub first_visible_ns: Option<u64>,
    /// To the first part of a tool call. Streams only.
    pub first_tool_ns: Option<u64>,
    /// From the first to the last token, summed over the timed choices. Streams only.
    pub generation_ns: u64,
    /// Tokens that `generation_ns` produced: output less the first token of each choice.
    pub generation_tokens: u64,
    /// Time per output token by the semantic convention: (duration − TTFT) ÷ (output − 1).
    pub per_output_token_ns: Option<u64>,
    /// (output − 1) ÷ (last token − first token), tokens per second: the speed a user sees.
    pub output_rate: Option<f64>,
    /// (input − cached) ÷ TTFT, tokens per second.
    pub input_rate: Option<f64>,
    /// Visible characters per second between the first and the last token.
    pub visible_chars_rate: Option<f64>,
    /// Gap to the previous token-bearing frame ÷ tokens in the frame, once per token.
    pub inter_token: Gaps,
    /// Raw gaps between token-bearing frames.
    pub chunk_gap: Gaps,
    /// The longest of them; 0 without any.
    pub longest_gap_ns: u64,
    /// The longest observation in `inter_token`; 0 without any, and where they are spread.
    pub longest_token_gap_ns: u64,
    /// Whether every frame's tokens were known (`exact`) or the total was spread over them.
    pub weight: Weight,
    /// Tokens and time by output position.
    pub position: [Span; POSITION_NAMES.len()],
    /// Gaps over the stall limit.
    pub stalls: u32,
    /// Time in such gaps.
    pub stalled_ns: u64,
    /// Time a frame was ready and the client's socket was not.
    pub client_wait_ns: u64,
    /// Mean number of exchanges in flight at the upstream during this one.
    pub concurrency: f64,
    /// The server's report of its own work: its times, and the drafts of speculative decoding.
    pub server: ServerReport,
}

/// How the tokens in a frame were known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Weight {
    /// From ids, log probabilities or a running count, or proven to be one each by the total.
    Exact,
    /// One per frame, scaled to the total.
    #[default]
    Spread,
}

impl Weight {
    /// The label value.
    pub fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Spread => "spread",
        }
    }
}

/// A histogram of gaps in the buckets of [`GAP_S`], the last one open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gaps {
    /// Observations per bucket, not cumulated.
    pub buckets: [u64; GAP_S.len() + 1],
    /// Sum of all observations.
    pub sum_ns: u64,
}

/// Tokens made in a span of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// Tokens.
    pub tokens: u64,
    /// Nanoseconds.
    pub ns: u64,
}
