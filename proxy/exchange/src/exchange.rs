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
use crate::answer_form;
use crate::answered_ids::NamedIds;
use crate::head_models;
use crate::header_facts;
use crate::model::RequestedModel;
use crate::request_reader::RequestReader;
use crate::request_state::{RequestFacts, RequestState, SentRequest};
use crate::response::{Form, Response};
use crate::response_reader::{self, Label, Readable, ResponseReader};
use crate::role::{ExchangeRole, RoleSource};
use crate::route::{Route, Speaks};
use crate::seal::is_sealed;
use crate::tenant_resolution::TenantResolution;
use crate::usage_policy::has_stream_options;

/// One metered exchange.
pub struct Exchange {
    /// The response, from its head on.
    response: Option<Response>,
    speaks: Speaks,
    dialect: Dialect,
    request: RequestState,
    model: RequestedModel,
    tenant: TenantResolution,
    /// The ids that a request at an unknown path names.
    named_ids: Option<Box<NamedIds>>,
    /// The client chose a form of the answer that may lack its usage.
    may_lack_usage: bool,
    /// The request fetches the result of detached work.
    is_fetch: bool,
    sent: SentRequest,
    // Each frame uses it, the response and the role.
    /// Taken when the exchange has ended.
    meter: Option<Meter>,
    role: ExchangeRole,
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

/// The need to edit a response body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Edits {
    /// It passes as it is.
    #[default]
    None,
    /// It is edited.
    Stream,
    /// It is edited if it is a stream, which its content type denies: [`Exchange::is_edited`] tells by its first bytes.
    IfStream,
}

/// The treatment of a response body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// The reason why the body is not read, if it is not.
    pub unread: Option<Passthrough>,
    /// The need to edit the body: it may have effects of added options, which must be removed.
    pub edits: Edits,
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
        let dialect = route.speaks.expected();
        let mut meter = Meter::new(dialect, at, setup.stall_ns);
        meter.set_max_tokens(setup.tokens_max);
        meter.set_generates(route.generates);
        let reader = RequestReader::new(dialect, setup.kind, headers, tenant.selected_members());
        Self {
            speaks: route.speaks,
            dialect,
            request: RequestState::Reading(reader),
            model: RequestedModel::in_path(route.model, route.model_in_path),
            tenant,
            role: ExchangeRole::new(setup.role),
            named_ids: None,
            may_lack_usage: false,
            is_fetch: false,
            sent: SentRequest::default(),
            response: None,
            meter: Some(meter),
        }
    }

    /// Reads what the head says beside the route, before the body: the path, if it is unknown, may name an answer that was
    /// counted when it was generated, and query and header fields may name the model, or choose the form of the answer.
    pub fn asked_at(&mut self, path: &str, query: Option<&str>, headers: &HeaderMap) {
        if self.is_of_unknown_path() {
            self.named_ids = Some(Box::new(NamedIds::of(path, query)));
        }
        let mut models = head_models::of_target(path, query);
        self.may_lack_usage = answer_form::is_chosen(query) || answer_form::is_unread(path);
        for (name, value) in headers {
            let (name, value) = (name.as_str(), value.as_bytes());
            if head_models::may_name(name.as_bytes()) {
                head_models::add_field(name, value, &mut models);
            } else if answer_form::may_choose(name.as_bytes()) {
                self.may_lack_usage |= answer_form::is_chosen_by(name, value);
            }
        }
        self.model.add(models);
    }

    /// Records that the request fetches the result of detached work: its usage counts once.
    pub fn fetches_detached(&mut self) {
        self.is_fetch = true;
    }

    /// Reads the next slice of the request body, as the client sent it.
    #[inline]
    pub fn request_body(&mut self, bytes: &[u8]) {
        self.request.feed(bytes);
        if let Some(named_ids) = &mut self.named_ids {
            named_ids.read(bytes);
        }
    }

    /// Records that the request is complete at the caller: t0. Call it after the last slice, also of an empty body;
    /// [`end`](Self::end) does so for an exchange that ends before.
    pub fn request_complete(&mut self, at: Tick) {
        let Some(mut reader) = self.request.stop() else { return };
        let mut facts = reader.end();
        let is_certain = facts.whole && !facts.is_model_invalid;
        self.model.settle(facts.model.take(), facts.other_models.take(), is_certain);
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
        let (label, unread) = match readable {
            Readable::As(label) => (label, None),
            Readable::Not(reason) => (Label::Other, Some(reason)),
        };
        let body = label.framing().map_or(Body::Unknown, response_reader::body);
        let form = match body {
            Body::Frames => Form::Frames,
            _ => Form::Whole { is_generated: rest::is_generated(headers, codings) },
        };
        // An error has no effects of added options: its body is not edited, and keeps its length.
        let answers = status < 400;
        let added = self.sent.added;
        let editable = added.is_some()
            && unread.is_none()
            && answers
            && codings == Codings::Identity
            && !is_sealed(headers);
        let edits = match label {
            _ if !editable => Edits::None,
            Label::Of(Framing::Sse | Framing::Ndjson) => Edits::Stream,
            _ => Edits::IfStream,
        };
        if let Some(meter) = &mut self.meter {
            meter.set_dialect(self.dialect);
            meter.answered(status, body);
            if answers {
                header_facts::read(self.dialect, headers, meter.request().best_of, &mut meter.tail(at));
            }
        }
        // A stream also shows whether the server sends usage unasked.
        let is_stream = label == Label::Of(Framing::Sse) && has_stream_options(self.dialect);
        let has_filter = unread.is_none() && (is_stream || edits != Edits::None);
        let usage_filter =
            has_filter.then(|| self.usage_filter(added.filter(|_| edits != Edits::None), kind));
        let locates = usage_filter.as_ref().is_some_and(UsageFilter::locates);
        let reader = unread.is_none().then(|| ResponseReader::new(self.dialect, label, codings, locates));
        let keeps_added = added.is_some() && answers && !editable;
        // Whether it is a stream with such effects shows in the body.
        let is_shown = label != Label::Of(Framing::Json) || unread.is_some();
        self.response = Some(Response {
            reader,
            usage_filter,
            keeps_added: keeps_added && !is_shown,
            ..Response::new(form)
        });
        Some(Head { unread, edits, keeps_added: keeps_added && is_shown })
    }

    /// Returns true if a body of [`Edits::IfStream`] that begins with these bytes is a stream, and has to be edited. If
    /// the bytes do not show it, or there are none yet, it is edited if it `may_be`: the first lines of a stream look like
    /// a whole body, from which an edit removes nothing.
    pub fn is_edited(&mut self, beginning: &[u8], may_be: bool) -> bool {
        let Some(response) = &mut self.response else { return false };
        let shows_stream = response.reader.as_ref().is_some_and(|reader| reader.shows_stream(beginning));
        let is_edited = may_be || shows_stream;
        if !is_edited {
            response.usage_filter = None;
            response.keeps_added = true;
        }
        is_edited
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
            Ok(Some(framing)) => {
                meter.set_body(response_reader::body(framing));
                response.begin(framing);
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
