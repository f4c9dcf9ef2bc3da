//! The events that the data plane reports while it works. Each worker owns one observer and calls it on its own
//! thread, so an implementation needs no lock: it writes plain cells that a scrape reads.

use std::sync::Arc;

use crate::{RateLimits, Record, RuleKind, TokenRejection};

/// A model's slot in one worker's cells; cheap to copy, valid on that worker only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ModelSlot(pub u32);

/// The reason why a request was forwarded without being metered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passthrough {
    /// Not a known inference path.
    Path,
    /// A known path with a method that infers nothing (`GET`, `HEAD`, `OPTIONS`).
    Method,
    /// The response has an unsupported content coding.
    Encoding,
    /// The response is neither SSE, NDJSON nor JSON.
    ContentType,
    /// The connection became a tunnel of unknown use.
    Upgrade,
    /// A WebSocket of an inference endpoint with messages that cannot be read: compressed, in broken frames, of an API
    /// that is not read, or of more answers at a time than are metered.
    Socket,
    /// The request replays a stream that was counted when it was generated.
    Replay,
}

impl Passthrough {
    /// Every reason.
    pub const ALL: [Self; 7] = [
        Self::Path,
        Self::Method,
        Self::Encoding,
        Self::ContentType,
        Self::Upgrade,
        Self::Socket,
        Self::Replay,
    ];

    /// The label value.
    pub fn name(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Method => "method",
            Self::Encoding => "encoding",
            Self::ContentType => "content_type",
            Self::Upgrade => "upgrade",
            Self::Socket => "socket",
            Self::Replay => "replay",
        }
    }
}

/// The reason why the proxy itself answered a request with an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Framing that two readers could understand differently.
    Framing,
    /// `Host` missing, repeated or invalid.
    Host,
    /// The request target is invalid, or the method is not forwarded.
    Target,
    /// No connection to the upstream.
    UpstreamUnreachable,
    /// The upstream closed the connection before a response head.
    UpstreamBroken,
    /// The upstream's response head violates HTTP (an unrequested 101, …).
    UpstreamInvalid,
    /// The proxy has reached one of its own limits.
    Overload,
    /// The tenant's budget is exhausted.
    Budget,
    /// The tenant may use only models with a price, and this model has none.
    Unpriced,
    /// The tenant may not use unknown paths.
    UnknownPath,
    /// The tenant may send only readable requests, and the model of this one cannot be read.
    Unreadable,
    /// The tenant may request only streams in which usage can be requested, and this one is not.
    Uncountable,
    /// The client sent the request body too slowly.
    SlowBody,
    /// The upstream has its maximum of connections, or the client has its share of them.
    UpstreamFull,
    /// The request body must be buffered, and there is no memory for it.
    GatherRoom,
    /// The work would continue after the client left, and could not be counted.
    Detached,
}

impl Refusal {
    /// Every reason.
    pub const ALL: [Self; 16] = [
        Self::Framing,
        Self::Host,
        Self::Target,
        Self::UpstreamUnreachable,
        Self::UpstreamBroken,
        Self::UpstreamInvalid,
        Self::Overload,
        Self::Budget,
        Self::Unpriced,
        Self::UnknownPath,
        Self::Unreadable,
        Self::Uncountable,
        Self::SlowBody,
        Self::UpstreamFull,
        Self::GatherRoom,
        Self::Detached,
    ];

    /// The label value.
    pub fn name(self) -> &'static str {
        match self {
            Self::Framing => "framing",
            Self::Host => "host",
            Self::Target => "target",
            Self::UpstreamUnreachable => "upstream_unreachable",
            Self::UpstreamBroken => "upstream_broken",
            Self::UpstreamInvalid => "upstream_invalid",
            Self::Overload => "overload",
            Self::Budget => "budget",
            Self::Unpriced => "unpriced",
            Self::UnknownPath => "unknown_path",
            Self::Unreadable => "unreadable",
            Self::Uncountable => "uncountable",
            Self::SlowBody => "slow_body",
            Self::UpstreamFull => "upstream_full",
            Self::GatherRoom => "gather_room",
            Self::Detached => "detached",
        }
    }
}

/// A step taken to obtain usage in the response, where the dialect lets a client request it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UsageStep {
    /// The proxy requested usage, and removes it from the response.
    Injected,
    /// The proxy requested running usage, too.
    Continuous,
    /// The client requested usage itself.
    ClientAsked,
    /// None: the response is one body, which contains usage anyway.
    NotStreamed,
    /// None: this server sends usage without a request for it.
    SentUnasked,
    /// None: this server rejects the usage option.
    Refused,
    /// None: the request is too large to be buffered, or there is no memory for it.
    TooLarge,
    /// None: the request is compressed, protected by a digest, or not valid JSON.
    Unreadable,
    /// None, as configured.
    Observed,
}

impl UsageStep {
    /// Every step.
    pub const ALL: [Self; 9] = [
        Self::Injected,
        Self::Continuous,
        Self::ClientAsked,
        Self::NotStreamed,
        Self::SentUnasked,
        Self::Refused,
        Self::TooLarge,
        Self::Unreadable,
        Self::Observed,
    ];

    /// The label value.
    pub fn name(self) -> &'static str {
        match self {
            Self::Injected => "injected",
            Self::Continuous => "continuous",
            Self::ClientAsked => "client_asked",
            Self::NotStreamed => "not_streamed",
            Self::SentUnasked => "sent_unasked",
            Self::Refused => "refused",
            Self::TooLarge => "too_large",
            Self::Unreadable => "unreadable",
            Self::Observed => "observed",
        }
    }
}

/// A kind of lost telemetry or work; each is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dropped {
    /// A record that did not fit in the outbox.
    Record,
    /// An implausible count in a response.
    UsageRejected,
    /// A frame that could not be parsed to its end (too deep).
    FrameUnparsed,
    /// A connection that panicked.
    Panic,
    /// An accept that failed, or of a connection that was not redirected as the plan says.
    Accept,
    /// A client connection without TLS where TLS is expected, or with a handshake that failed or took too long.
    Handshake,
    /// A connection without the header of the PROXY protocol that its listener expects, or with one of a peer that is
    /// not trusted.
    ProxyHeader,
    /// A compressed body that is no longer decoded: damaged, or above the limits of a decompression bomb.
    Decoding,
    /// A local token count that failed, or for which there was no memory.
    Tokenizing,
    /// An option added to a request whose effect could not be removed from the response.
    UsageEdit,
    /// The report of a rejection that did not fit in the outbox: it is counted, and has no line in the access log.
    Refusal,
    /// A client connection that was closed to make place for another.
    Connection,
    /// A silent request body that is no longer buffered, to make memory for another.
    Gathering,
    /// A response that its client did not read.
    SlowClient,
    /// Cached tokens that the server reported beyond the prompt.
    CachedExcess,
}

impl Dropped {
    /// Every kind.
    pub const ALL: [Self; 15] = [
        Self::Record,
        Self::UsageRejected,
        Self::FrameUnparsed,
        Self::Panic,
        Self::Accept,
        Self::Handshake,
        Self::ProxyHeader,
        Self::Decoding,
        Self::Tokenizing,
        Self::UsageEdit,
        Self::Refusal,
        Self::Connection,
        Self::Gathering,
        Self::SlowClient,
        Self::CachedExcess,
    ];

    /// The label value.
    pub fn name(self) -> &'static str {
        match self {
            Self::Record => "record",
            Self::UsageRejected => "usage_rejected",
            Self::FrameUnparsed => "frame_unparsed",
            Self::Panic => "panic",
            Self::Accept => "accept",
            Self::Handshake => "handshake",
            Self::ProxyHeader => "proxy_header",
            Self::Decoding => "decoding",
            Self::Tokenizing => "tokenizing",
            Self::UsageEdit => "usage_edit",
            Self::Refusal => "refusal",
            Self::Connection => "connection",
            Self::Gathering => "gathering",
            Self::SlowClient => "slow_client",
            Self::CachedExcess => "cached_excess",
        }
    }
}

/// The kind of response for which the proxy's own time was spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// The response came in frames.
    Stream,
    /// The response came as one body.
    Body,
}

impl Class {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Stream, Self::Body];

    /// The label value.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stream => "stream",
            Self::Body => "body",
        }
    }
}

/// Receives the events of one worker. Called on that worker's thread only.
pub trait Observer {
    /// Returns the slot of a model; creates it below the cap, else returns the slot of `_other`.
    fn model(&mut self, name: &str) -> ModelSlot;
    /// Returns the slot of a model that already has one.
    fn known_model(&mut self, name: &str) -> Option<ModelSlot>;
    /// Returns the slot for exchanges without a known model (`_unknown`).
    fn unknown_model(&mut self) -> ModelSlot;
    /// An exchange began.
    fn begin(&mut self, model: ModelSlot);
    /// The model of an exchange became known: the exchange moves to another in-flight gauge.
    fn admit(&mut self, from: ModelSlot, to: ModelSlot);
    /// Counts output tokens since the last call for this exchange: the live counter. `overcounted` is the excess of an
    /// ended exchange; it is subtracted from the next tokens.
    fn live(&mut self, model: ModelSlot, tokens: u64, overcounted: u64);
    /// An upstream reported the rate limits of a model.
    fn rate_limits(&mut self, model: ModelSlot, upstream: &Arc<str>, limits: &RateLimits);
    /// An exchange ended; its in-flight slot is released.
    fn end(&mut self, model: ModelSlot, record: &Record);
    /// The meter of an exchange failed: its in-flight slot is released, nothing else is known.
    fn abandon(&mut self, model: ModelSlot);
    /// A request was forwarded unmetered.
    fn passthrough(&mut self, reason: Passthrough);
    /// The proxy answered a request with an error.
    fn refuse(&mut self, reason: Refusal);
    /// The tenant of a request that is also reported to [`Self::refuse`], if the tenant is known.
    fn reject(&mut self, tenant: &str, reason: Refusal);
    /// A rule of this kind resolved the tenant of a request on a metered path.
    fn tenant(&mut self, rule: RuleKind);
    /// An untrusted peer sent a header field that names a tenant.
    fn untrusted_header(&mut self);
    /// A request has tokens that name a tenant, and none of them is trusted.
    fn untrusted_token(&mut self, reason: TokenRejection);
    /// A step was taken, or omitted, to have usage in a response.
    fn usage(&mut self, step: UsageStep);
    /// Telemetry or work was lost.
    fn dropped(&mut self, kind: Dropped, count: u64);
    /// The proxy's own time for one exchange: from the complete request to its sent head, plus each time from a read to
    /// the hand-over.
    fn overhead(&mut self, class: Class, ns: u64);
}
