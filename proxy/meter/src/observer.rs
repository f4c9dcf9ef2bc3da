//! The events that the data plane reports while it works. Each worker owns one observer and calls it on its own
//! thread, so an implementation needs no lock: it writes plain cells that a scrape reads.

use std::sync::Arc;

use crate::{RateLimits, Record, RuleKind, TokenRejection};

/// A model's slot in one worker's cells; cheap to copy, valid on that worker only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ModelSlot(pub u32);

scan::listed_enum! {
    /// The reason why a request was forwarded without being metered.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Passthrough {
        /// Not a known inference path.
        Path = "path",
        /// A known path with a method that infers nothing (`GET`, `HEAD`, `OPTIONS`).
        Method = "method",
        /// The response has an unsupported content coding.
        Encoding = "encoding",
        /// The response is neither SSE, NDJSON nor JSON.
        ContentType = "content_type",
        /// The connection became a tunnel of unknown use.
        Upgrade = "upgrade",
        /// A WebSocket of an inference endpoint with messages that cannot be read: compressed, in broken frames, of an
        /// API that is not read, or of more answers at a time than are metered.
        Socket = "socket",
        /// The request reads a stored answer again, or polls for one, which is counted where it was generated.
        Replay = "replay",
    }
    /// The label value.
    pub fn name(self);
}

scan::listed_enum! {
    /// The reason why the proxy itself answered a request with an error.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Refusal {
        /// Framing that two readers could understand differently.
        Framing = "framing",
        /// `Host` missing, repeated or invalid.
        Host = "host",
        /// The request target is invalid, or the method is not forwarded.
        Target = "target",
        /// No connection to the upstream.
        UpstreamUnreachable = "upstream_unreachable",
        /// The upstream closed the connection before a response head.
        UpstreamBroken = "upstream_broken",
        /// The upstream's response head violates HTTP (an unrequested 101, …).
        UpstreamInvalid = "upstream_invalid",
        /// The proxy has reached one of its own limits.
        Overload = "overload",
        /// The tenant's budget is exhausted.
        Budget = "budget",
        /// The tenant may use only models with a price, and this model has none.
        Unpriced = "unpriced",
        /// The tenant may not use unknown paths.
        UnknownPath = "unknown_path",
        /// The tenant may send only readable requests, and the model of this one cannot be read.
        Unreadable = "unreadable",
        /// The tenant may request only streams in which usage can be requested, and this one is not.
        Uncountable = "uncountable",
        /// The client sent the request body too slowly.
        SlowBody = "slow_body",
        /// The upstream has its maximum of connections, or the client has its share of them.
        UpstreamFull = "upstream_full",
        /// The request body must be buffered, and there is no memory for it.
        GatherRoom = "gather_room",
        /// The work would continue after the client left, and could not be counted.
        Detached = "detached",
    }
    /// The label value.
    pub fn name(self);
}

scan::listed_enum! {
    /// A step taken to obtain usage in the response, where the dialect lets a client request it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum UsageStep {
        /// The proxy requested usage, and removes it from the response.
        Injected = "injected",
        /// The proxy requested running usage, too.
        Continuous = "continuous",
        /// The client requested usage itself.
        ClientAsked = "client_asked",
        /// None: the response is one body, which contains usage anyway.
        NotStreamed = "not_streamed",
        /// None: this server sends usage without a request for it.
        SentUnasked = "sent_unasked",
        /// None: this server rejects the usage option.
        Refused = "refused",
        /// None: the request is too large to be buffered, or there is no memory for it.
        TooLarge = "too_large",
        /// None: the request is compressed, protected by a digest, or not valid JSON.
        Unreadable = "unreadable",
        /// None, as configured.
        Observed = "observed",
    }
    /// The label value.
    pub fn name(self);
}

scan::listed_enum! {
    /// A kind of lost telemetry or work; each is counted.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Dropped {
        /// A record that did not fit in the outbox.
        Record = "record",
        /// An implausible count in a response.
        UsageRejected = "usage_rejected",
        /// A frame that could not be parsed to its end (too deep).
        FrameUnparsed = "frame_unparsed",
        /// A connection that panicked.
        Panic = "panic",
        /// An accept that failed, or of a connection that was not redirected as the plan says.
        Accept = "accept",
        /// A client connection without TLS where TLS is expected, or with a handshake that failed or took too long.
        Handshake = "handshake",
        /// A connection without the header of the PROXY protocol that its listener expects, or with one of a peer that
        /// is not trusted.
        ProxyHeader = "proxy_header",
        /// A compressed body that is no longer decoded: damaged, or above the limits of a decompression bomb.
        Decoding = "decoding",
        /// A local token count that failed, or for which there was no memory.
        Tokenizing = "tokenizing",
        /// An option added to a request whose effect could not be removed from the response.
        UsageEdit = "usage_edit",
        /// The report of a rejection that did not fit in the outbox: it is counted, and has no line in the access log.
        Refusal = "refusal",
        /// A client connection that was closed to make place for another.
        Connection = "connection",
        /// A silent request body that is no longer buffered, to make memory for another.
        Gathering = "gathering",
        /// A response that its client was too slow to read.
        SlowClient = "slow_client",
    }
    /// The label value.
    pub fn name(self);
}

scan::listed_enum! {
    /// The content type of a response whose body is SSE, NDJSON or JSON, and not what the type says.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Stated {
        /// `text/event-stream`.
        Sse = "sse",
        /// NDJSON, by any of its names.
        Ndjson = "ndjson",
        /// JSON.
        Json = "json",
        /// Another type.
        Other = "other",
    }
    /// The label value.
    pub fn name(self);
}

scan::listed_enum! {
    /// The kind of response for which the proxy's own time was spent.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Class {
        /// The response came in frames.
        Stream = "stream",
        /// The response came as one body.
        Body = "body",
    }
    /// The label value.
    pub fn name(self);
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
    /// The body of a metered response was not what its content type says.
    fn mislabelled(&mut self, stated: Stated);
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
