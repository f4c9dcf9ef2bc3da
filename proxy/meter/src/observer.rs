//! The events that the data plane reports while it works. Each worker owns one observer and calls it on its own
//! thread, so an implementation needs no lock: it writes plain cells that a scrape reads.

use crate::{Record, RuleKind, TokenRejection};

/// A model's slot in one worker's cells; cheap to copy, valid on that worker only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ModelSlot(pub u32);

/// The reason why a request was forwarded without being metered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passthrough {
    /// Not a known inference path.
    Path,
    /// A known path, but not a request that infers (`GET`, `HEAD`, `OPTIONS`).
    Method,
    /// The response is compressed in a way we do not know.
    Encoding,
    /// The response is neither SSE, NDJSON nor JSON.
    ContentType,
    /// The connection became a tunnel.
    Upgrade,
    /// A stream is played again; it was counted when it was made.
    Replay,
}

impl Passthrough {
    /// Every reason.
    pub const ALL: [Self; 6] =
        [Self::Path, Self::Method, Self::Encoding, Self::ContentType, Self::Upgrade, Self::Replay];

    /// The label value.
    pub fn name(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Method => "method",
            Self::Encoding => "encoding",
            Self::ContentType => "content_type",
            Self::Upgrade => "upgrade",
            Self::Replay => "replay",
        }
    }
}

/// The reason why a request was answered by the proxy itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Framing that two readers could understand differently.
    Framing,
    /// `Host` missing, repeated or invalid.
    Host,
    /// A request target that is not one, or a method we do not forward.
    Target,
    /// No connection to the upstream.
    UpstreamUnreachable,
    /// The upstream broke before a response head.
    UpstreamBroken,
    /// The upstream's head breaks HTTP (an unasked 101, …).
    UpstreamInvalid,
    /// The proxy is at a limit of its own.
    Overload,
    /// Its tenant may not spend at the moment.
    Budget,
    /// Its tenant may ask only for models that have a price, and this one has none.
    Unpriced,
    /// Its tenant may not ask for paths that tokenmeter does not know.
    UnknownPath,
    /// Its tenant may ask only for what can be read, and this cannot.
    Unreadable,
    /// Its tenant may ask only for streams whose usage can be asked for, and this is none.
    Uncountable,
    /// Its body came too slowly.
    SlowBody,
    /// The upstream has as many connections as it may, or its client has its share of them.
    UpstreamFull,
    /// Its body has to be gathered, and there is no room.
    GatherRoom,
    /// Its work would go on after its client left, and could not be counted.
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

/// A step taken about a request's usage, where the dialect lets a client ask for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UsageStep {
    /// It was asked for, and is taken out of the answer again.
    Injected,
    /// Running usage was asked for too.
    Continuous,
    /// The client asked for it itself.
    ClientAsked,
    /// Nothing: the answer will be one body, which holds its usage anyway.
    NotStreamed,
    /// Nothing: this server sends usage unasked.
    SentUnasked,
    /// Nothing: this server refuses the question.
    Refused,
    /// Nothing: the request is too large to be gathered, or there is no room.
    TooLarge,
    /// Nothing: the request is compressed, sealed by a digest, or not the JSON it should be.
    Unreadable,
    /// Nothing, as configured.
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

/// A kind of loss; each is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dropped {
    /// A record that the outbox had no room for.
    Record,
    /// A count in a response that could not be one.
    UsageRejected,
    /// A frame that could not be read to its end (depth).
    FrameUnparsed,
    /// A connection that panicked.
    Panic,
    /// An accept that failed.
    Accept,
    /// A compressed body that was given up: broken, or far larger than it looked.
    Decoding,
    /// A local count that could not be made: no room, or the tokenizer failed.
    Tokenizing,
    /// An addition to a request that could not be taken out of its answer again.
    UsageEdit,
    /// Word of a refusal that the outbox had no room for: it is counted, and has no line in the access log.
    Refusal,
    /// A client's connection that was closed so that another one is served.
    Connection,
    /// A silent request body that is no longer gathered, so that another one is.
    Gathering,
    /// An answer that its client did not take.
    SlowClient,
    /// Cached tokens of an exchange beyond its prompt, which its server reported.
    CachedExcess,
}

impl Dropped {
    /// Every kind.
    pub const ALL: [Self; 13] = [
        Self::Record,
        Self::UsageRejected,
        Self::FrameUnparsed,
        Self::Panic,
        Self::Accept,
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

/// The kind of answer on which the proxy's own time was spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// It came in frames.
    Stream,
    /// It came as one body.
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

/// One worker's view of its own work. Called on that worker's thread only.
pub trait Observer {
    /// The slot of a model, making one if there is room; `_other` beyond the cap.
    fn model(&mut self, name: &str) -> ModelSlot;
    /// The slot of a model that already has one.
    fn known_model(&mut self, name: &str) -> Option<ModelSlot>;
    /// The slot for exchanges whose model is not known yet (`_unknown`).
    fn unknown_model(&mut self) -> ModelSlot;
    /// An exchange begins.
    fn begin(&mut self, model: ModelSlot);
    /// An exchange's model became known: it moves from one in-flight gauge to another.
    fn admit(&mut self, from: ModelSlot, to: ModelSlot);
    /// Output tokens seen since the last call for this exchange: the live counter. `overcounted` is
    /// what an ended exchange had counted too many; it is held against the next tokens.
    fn live(&mut self, model: ModelSlot, tokens: u64, overcounted: u64);
    /// An exchange ended; its in-flight slot is given back.
    fn end(&mut self, model: ModelSlot, record: &Record);
    /// An exchange's meter failed: its in-flight slot is given back, nothing else is known.
    fn abandon(&mut self, model: ModelSlot);
    /// A request passed unmetered.
    fn passthrough(&mut self, reason: Passthrough);
    /// A request was answered by the proxy.
    fn refuse(&mut self, reason: Refusal);
    /// It was this tenant's: told besides [`Self::refuse`], where that is known.
    fn reject(&mut self, tenant: &str, reason: Refusal);
    /// It was decided, by a rule of this kind, whose a request is that may be metered.
    fn tenant(&mut self, rule: RuleKind);
    /// A peer that is not trusted sent a field that says whose its request is.
    fn untrusted_header(&mut self);
    /// A request has tokens that say whose it is, and none of them was believed.
    fn untrusted_token(&mut self, why: TokenRejection);
    /// Something was done, or left, about a request's usage.
    fn usage(&mut self, step: UsageStep);
    /// Something was lost.
    fn dropped(&mut self, what: Dropped, count: u64);
    /// The proxy's own time for one exchange: from the request complete to its head sent, and
    /// from each read to the hand-over, summed.
    fn overhead(&mut self, class: Class, ns: u64);
}
