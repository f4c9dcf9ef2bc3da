//! One metered exchange: slices of both bodies in the order in which they pass, then an end. It looks at bytes in place
//! and returns at once: it never holds them, never waits, and cannot fail (law 2, law 3).

mod end;
mod engine;
mod facts;
mod rest;
mod session;
mod usage_filter;

use decode::{Codings, DecodeError};
use http::HeaderMap;
use meter::{Body, Meter, Passthrough, ServerKind, Tick};
use scan::{Dialect, Framing};
use usage::{AddedOptions, Cuts, UsageFilter};

pub use self::end::{CallerFacts, Ended, UsageHabits};
use crate::header_facts;
use crate::model::RequestedModel;
use crate::request_reader::RequestReader;
use crate::request_state::{RequestFacts, RequestState, SentRequest};
use crate::response::{Form, Response};
use crate::response_reader::{self, Readable, ResponseReader};
use crate::role::{ExchangeRole, RoleSource};
use crate::route::{Route, Speaks};
use crate::seal::is_sealed;
use crate::tenant_resolution::TenantResolution;
use crate::usage_policy::has_stream_options;

/// One metered exchange.
pub struct Exchange {
    speaks: Speaks,
    dialect: Dialect,
    request: RequestState,
    model: RequestedModel,
    tenant: TenantResolution,
    role: ExchangeRole,
    sent: SentRequest,
    /// The response, from its head on.
    response: Option<Response>,
    /// Taken when the exchange has ended.
    meter: Option<Meter>,
}

/// The settings of an exchange.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// The kind of its server, if it is known.
    pub kind: Option<ServerKind>,
    /// The source of its role.
    pub role: RoleSource,
    /// A gap of more nanoseconds between two tokens is a stall.
    pub stall_ns: u64,
    /// The maximum of each token count.
    pub tokens_max: u64,
}

impl Default for Setup {
    /// A server of an unknown kind that does prefill and decode; stalls from one second on.
    fn default() -> Self {
        Self {
            kind: None,
            role: RoleSource::default(),
            stall_ns: 1_000_000_000,
            tokens_max: meter::exchange::TOKENS_MAX,
        }
    }
}

/// The treatment of a response body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// The reason why the body is not read, if it is not.
    pub unread: Option<Passthrough>,
    /// True if the body may have effects of added options, which must be removed.
    pub edited: bool,
    /// True if the body may have such effects, which cannot be removed.
    pub keeps_added: bool,
}

impl Exchange {
    /// Begins an exchange when the head of its request is known; `at` is the tick at which the request began.
    pub fn begin(
        route: Route,
        headers: &HeaderMap,
        tenant: TenantResolution,
        setup: Setup,
        at: Tick,
    ) -> Self {
        let dialect = match route.speaks {
            Speaks::Known(dialect) => dialect,
            _ => Dialect::Unknown,
        };
        let mut meter = Meter::new(dialect, at, setup.stall_ns);
        meter.set_max_tokens(setup.tokens_max);
        let reader = RequestReader::new(dialect, setup.kind, headers, tenant.selected_members());
        Self {
            speaks: route.speaks,
            dialect,
            request: RequestState::Reading(reader),
            model: RequestedModel::in_path(route.model),
            tenant,
            role: ExchangeRole::new(setup.role),
            sent: SentRequest::default(),
            response: None,
            meter: Some(meter),
        }
    }

    /// Reads the next slice of the request body, as the client sent it.
    #[inline]
    pub fn request_body(&mut self, bytes: &[u8]) {
        self.request.feed(bytes);
    }

    /// Records that the request is complete at the caller: t0. Call it after the last slice, also of an empty body;
    /// [`end`](Self::end) does so for an exchange that ends before.
    pub fn request_complete(&mut self, at: Tick) {
        let Some(mut reader) = self.request.stop() else { return };
        let mut facts = reader.end();
        self.model.settle(facts.model.take(), reader.other_model(), facts.whole && !facts.is_model_invalid);
        if let Some(dialect) = self.speaks.settle(&facts) {
            self.dialect = dialect;
        }
        let links = if self.dialect.stores_answers() { reader.links() } else { None };
        self.request = RequestState::Read(RequestFacts { tier: reader.service_tier().shared(), links });
        self.role.settle(&facts, self.dialect);
        self.tenant.give_body(facts.whole.then_some(reader));
        if let Some(meter) = &mut self.meter {
            meter.set_dialect(self.dialect);
            meter.requested(facts, at);
        }
    }

    /// Returns the tenant, to be resolved once the request is complete or is read no further. [`end`](Self::end)
    /// resolves it if the caller did not.
    pub fn tenant_resolution(&mut self) -> &mut TenantResolution {
        &mut self.tenant
    }

    /// Lets the shape of the request's body decide the dialect, where the path is unknown. Call it before the request
    /// is complete.
    pub fn read_by_shape(&mut self) {
        if self.speaks == Speaks::Anything {
            self.speaks = Speaks::Shape;
        }
    }

    /// Records the options that were added to the request as it goes upstream, whose effects the client must not see.
    pub fn asked_more(&mut self, added: Option<AddedOptions>) {
        self.sent.added = added.filter(|added| *added != AddedOptions::default());
    }

    /// Records that the whole request was sent upstream, or was answered before that. Call it for each attempt.
    pub fn sent(&mut self) {
        self.sent.attempts = self.sent.attempts.saturating_add(1);
    }

    /// Reads the head of the response that the client gets, from a server of this kind. `None`: it is not an answer of
    /// a kind that is metered, and the exchange is over without a record.
    pub fn response_head(
        &mut self,
        status: u16,
        headers: &HeaderMap,
        kind: Option<ServerKind>,
        at: Tick,
    ) -> Option<Head> {
        if self.model.name.is_none() {
            // A server may answer before it has read the whole request.
            self.model.name = self.request.model();
        }
        let (readable, codings) = Readable::of(self.dialect, headers);
        if self.dialect == Dialect::Unknown
            && self.speaks == Speaks::Invocations
            && header_facts::is_counted(headers)
        {
            self.dialect = Dialect::Embeddings;
        }
        let is_foreign = self.dialect == Dialect::Unknown && !self.is_counted_by_engine();
        if is_foreign && (status >= 400 || matches!(readable, Readable::Not(_))) {
            return None;
        }
        let (framing, body, unread) = match readable {
            Readable::As(framing) => (Some(framing), response_reader::body(framing), None),
            Readable::Sniffed => (None, Body::Unknown, None),
            Readable::Not(reason) => (None, Body::Unknown, Some(reason)),
        };
        let form = match body {
            Body::Frames => Form::Frames,
            _ => Form::Whole { is_generated: rest::is_generated(headers, codings) },
        };
        let may_stream = unread.is_none() && matches!(framing, None | Some(Framing::Sse));
        // An error has no effects of added options: its body is not edited, and keeps its length.
        let answers = status < 400;
        let editable = may_stream && answers && codings == Codings::Identity && !is_sealed(headers);
        let edits = self.sent.added.filter(|_| editable);
        self.response = Some(Response::new(form));
        if let Some(meter) = &mut self.meter {
            meter.set_dialect(self.dialect);
            meter.answered(status, body);
            if answers {
                header_facts::read(self.dialect, headers, meter.request().best_of, &mut meter.tail(at));
            }
        }
        let has_filter = may_stream && (has_stream_options(self.dialect) || edits.is_some());
        let usage_filter = has_filter.then(|| self.usage_filter(edits, kind));
        let locates = usage_filter.as_ref().is_some_and(UsageFilter::locates);
        let reader = unread.is_none().then(|| ResponseReader::new(self.dialect, framing, codings, locates));
        self.response = Some(Response { reader, usage_filter, ..Response::new(form) });
        let is_kept = answers && !editable && framing != Some(Framing::Json);
        Some(Head { unread, edited: edits.is_some(), keeps_added: self.sent.added.is_some() && is_kept })
    }

    /// Lets the text of the answer be kept until the end, up to this number of bytes: it is part of [`Ended`] if the
    /// record has no better count than the text. Call it between the response's head and its body, if
    /// [`wants_text`](Self::wants_text) is true.
    pub fn keep_text(&mut self, max_bytes: usize) {
        let reader = self.response.as_mut().and_then(|response| response.reader.as_mut());
        if let Some(scanner) = reader.and_then(ResponseReader::scanner) {
            scanner.keep_text(max_bytes);
        }
    }

    /// Reads a slice of the response body that was received at `at`. `cuts` takes the parts to remove from it. Returns
    /// the output tokens so far, if the body is read and the exchange is counted. After an error no more is read.
    #[inline]
    pub fn response_body(
        &mut self,
        bytes: &[u8],
        at: Tick,
        cuts: &mut Cuts,
    ) -> Result<Option<u64>, DecodeError> {
        self.note_beginning(bytes);
        let (Some(meter), Some(response)) = (&mut self.meter, &mut self.response) else { return Ok(None) };
        // Bytes that are read without the client are not part of its time.
        let mut reading = if let Some(left) = response.left { meter.tail(left) } else { meter.read(at) };
        let Some(reader) = &mut response.reader else { return Ok(None) };
        let fed = match &mut response.usage_filter {
            Some(usage_filter) => {
                let fed = reader.feed(bytes, &mut usage_filter.listen(&mut reading));
                if let Some(scanner) = reader.scanner() {
                    std::mem::swap(usage_filter.cuts(scanner), cuts);
                }
                fed
            }
            None => reader.feed(bytes, &mut reading),
        };
        match fed {
            Ok(None) => {}
            Ok(Some(body)) => {
                meter.set_body(body);
                if body == Body::Frames {
                    response.form = Form::Frames;
                } else {
                    response.usage_filter = None;
                }
            }
            Err(error) => {
                response.reader = None;
                meter.mark_unreadable();
                return Err(error);
            }
        }
        Ok(self.role.get().is_counted().then(|| meter.live_output()))
    }

    /// Adds `ns` nanoseconds for which a frame was ready while the client was not.
    #[inline]
    pub fn add_client_wait(&mut self, ns: u64) {
        if let Some(meter) = &mut self.meter {
            meter.add_client_wait(ns);
        }
    }

    /// Records that the caller answered with `status` itself: no upstream could. Its [`end`](Self::end) is
    /// [`Close::Local`](meter::Close::Local).
    pub fn answered_locally(&mut self, status: u16) {
        if let Some(meter) = &mut self.meter {
            meter.answered(status, Body::Unknown);
        }
    }

    /// Reads no more of either body: nothing is known of the answer any more.
    pub fn stop_reading(&mut self) {
        if let Some(response) = &mut self.response {
            response.reader = None;
        }
        self.request.stop();
    }

    /// Ends the exchange without a record.
    pub fn dismiss(&mut self) {
        self.meter = None;
    }
}
