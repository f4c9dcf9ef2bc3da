//! One metered exchange, whatever engine carries it. The engine hands in body slices in the order
//! they pass and then an end; an exchange that is dropped without one is a client that left. What
//! happens here looks at bytes in place and returns at once: it never holds them, never waits, and
//! cannot fail (law 2, law 3).

mod admission;
mod end;
mod gauges;
pub(crate) mod metered;
mod response;
mod rest;
pub(crate) mod trace;
mod usage_filter;

use std::rc::Rc;
use std::sync::Arc;

use exchange::header_facts;
use exchange::model::RequestedModel;
use exchange::request_reader::RequestReader;
use exchange::request_state::{RequestFacts, RequestState, SentRequest};
use exchange::response_reader::{self, Codings, Readable, ResponseReader};
use exchange::role::{self, ExchangeRole};
use exchange::route::{Route, Speaks};
use exchange::seal::is_sealed;
use exchange::{TenantResolution, usage_policy};
use http::HeaderMap;
use meter::{Body, Close, ExchangeId, Meter, Tick};
use scan::{Dialect, Framing, Links, Request};
use usage::{AddedOptions, Cuts, UsageFilter};

use self::gauges::Gauges;
use self::response::{Form, Response};
use self::trace::TracePosition;
use crate::request::tenant::resolve_by_body;
use crate::state::WorkerState;
use crate::{Dropped, Passthrough, Refusal, RoleSource, ServerKind, UpstreamProfile, clock, limits};

/// One metered exchange.
pub(crate) struct Exchange {
    worker: Rc<WorkerState>,
    upstream: usize,
    origin: Origin,
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
    gauges: Gauges,
    /// Nanoseconds that the proxy spent on it.
    overhead_ns: u64,
}

/// The facts of an exchange that are known when it begins.
struct Origin {
    id: ExchangeId,
    started_unix_ns: u64,
    request_id: Option<Arc<str>>,
    position: TracePosition,
}

/// The treatment of a response body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Head {
    /// The reason why the body is not read, if it is not.
    pub(crate) unread: Option<Passthrough>,
    /// The body may carry an answer to what was added to the request, which has to be taken out.
    pub(crate) edited: bool,
}

impl Exchange {
    /// A request head of an inference path arrived on `upstream`, an index into the plan; the tenant
    /// rules have said of it what its head says.
    pub(crate) fn begin(
        worker: &Rc<WorkerState>,
        upstream: usize,
        route: Route,
        headers: &HeaderMap,
        (tenant, role_source): (TenantResolution, RoleSource),
        at: Tick,
    ) -> Self {
        let plan = &worker.plan;
        let stall_ns = u64::try_from(plan.stall.as_nanos()).unwrap_or(u64::MAX);
        let dialect = match route.speaks {
            Speaks::Known(dialect) => dialect,
            _ => Dialect::Unknown,
        };
        let mut meter = Meter::new(dialect, at, stall_ns);
        meter.set_max_tokens(plan.tokens_max);
        let started_unix_ns = clock::wall_unix_ns();
        let kind = plan.upstreams[upstream].kind.or_else(|| worker.profiles[upstream].found_kind());
        let mut position = TracePosition::of(headers, plan.trace.as_ref(), &worker.ids);
        if matches!(route.speaks, Speaks::Anything | Speaks::Root) {
            position.leave_untouched();
        }
        let reader = RequestReader::new(dialect, kind, headers, tenant.selected_members());
        Self {
            worker: Rc::clone(worker),
            upstream,
            origin: Origin {
                id: ExchangeId::new(started_unix_ns, worker.ids.wide()),
                started_unix_ns,
                request_id: role::request_id(headers).map(Into::into),
                position,
            },
            speaks: route.speaks,
            dialect,
            request: RequestState::Reading(reader),
            model: RequestedModel::in_path(route.model),
            tenant,
            role: ExchangeRole::new(role_source),
            sent: SentRequest::default(),
            response: None,
            meter: Some(meter),
            overhead_ns: 0,
            gauges: Gauges::enter(worker, upstream, at),
        }
    }

    /// The request goes upstream with these fields: they say its place in a trace from now on.
    pub(crate) fn trace_onward(&self, headers: &mut HeaderMap) {
        self.origin.position.write(headers);
    }

    /// A slice of the request body is passing, as the client sent it.
    pub(crate) fn request_body(&mut self, bytes: &[u8]) {
        self.request.feed(bytes);
    }

    /// The request is complete at the proxy: t0.
    pub(crate) fn request_complete(&mut self, at: Tick) {
        let Some(facts) = self.settle() else { return };
        if let Some(meter) = &mut self.meter {
            meter.set_dialect(self.dialect);
            meter.requested(facts, at);
        }
    }

    /// Takes the facts of the whole request, as far as it was read. `None` if they were taken before.
    fn settle(&mut self) -> Option<Request> {
        let mut reader = self.request.stop()?;
        let facts = reader.end();
        self.model.settle(facts.model, reader.other_model(), facts.whole && !facts.is_model_invalid);
        if let Some(dialect) = self.speaks.settle(&facts) {
            self.dialect = dialect;
        }
        let links = if self.dialect == Dialect::OpenaiResponses { reader.links() } else { Links::default() };
        self.request = RequestState::Read(RequestFacts { tier: reader.service_tier(), links });
        self.role.settle(&facts, self.dialect);
        self.tenant.give_body(facts.whole.then_some(reader));
        resolve_by_body(&self.worker, &mut self.tenant);
        Some(facts)
    }

    /// The request went upstream with this in it that the client had not asked for and is not to see.
    pub(crate) fn asked_more(&mut self, added: Option<AddedOptions>) {
        self.sent.added = added.filter(|added| *added != AddedOptions::default());
    }

    /// The whole request was sent upstream, or was answered before that.
    pub(crate) fn sent(&mut self) {
        self.sent.attempts = self.sent.attempts.saturating_add(1);
    }

    /// The response head arrived. `None`: it is not an answer of a kind we meter, and the exchange
    /// is over without a record.
    pub(crate) fn response_head(&mut self, status: u16, headers: &HeaderMap, at: Tick) -> Option<Head> {
        if self.model.name.is_empty()
            && let Some(model) = self.request.model()
        {
            // A server may answer before it has read the whole request.
            self.model.name = model;
        }
        let (readable, codings) = Readable::of(self.dialect, headers);
        if self.dialect == Dialect::Unknown
            && self.speaks == Speaks::Invocations
            && header_facts::is_counted(headers)
        {
            self.dialect = Dialect::Embeddings;
        }
        if self.dialect == Dialect::Unknown && (status >= 400 || matches!(readable, Readable::Not(_))) {
            self.dismiss(at);
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
        self.response = Some(Response::new(form));
        let may_stream = unread.is_none() && matches!(framing, None | Some(Framing::Sse));
        // An error is no answer to the question for usage: it keeps its length, too.
        let answers = status < 400;
        let editable = may_stream && answers && codings == Codings::Identity && !is_sealed(headers);
        let edits = self.sent.added.filter(|_| editable);
        if let Some(meter) = &mut self.meter {
            meter.set_dialect(self.dialect);
            meter.answered(status, body);
            if status < 400 {
                header_facts::read(self.dialect, headers, meter.request().best_of, &mut meter.tail(at));
            }
        }
        let mut response = Response::new(form);
        if may_stream && (usage_policy::has_stream_options(self.dialect) || edits.is_some()) {
            response.usage_filter = Some(self.usage_filter(edits));
        }
        if unread.is_none() {
            let locates = response.usage_filter.as_ref().is_some_and(UsageFilter::locates);
            let mut reader = ResponseReader::new(self.dialect, framing, codings, locates);
            if status < 400
                && self.wants_text(at)
                && let Some(scanner) = reader.scanner()
            {
                response.text = self.worker.texts.room_for(limits::KEPT_TEXT_BYTES);
                if response.text.is_some() {
                    scanner.keep_text(limits::KEPT_TEXT_BYTES);
                }
            }
            response.reader = Some(reader);
        }
        self.response = Some(response);
        // An answer of no known dialect may turn out to be none of a model.
        let is_answer = self.dialect != Dialect::Unknown || form == Form::Frames;
        self.gauges.admit(&self.worker, &self.model.name, is_answer && status < 400);
        if let Some(added) = self.sent.added {
            if status < 300 {
                self.profile().accepts(added, at);
            }
            if answers && !editable && framing != Some(Framing::Json) {
                self.worker.dropped(Dropped::UsageEdit);
            }
        }
        Some(Head { unread, edited: edits.is_some() })
    }

    /// A slice of the response body was read at `at`. `cuts` takes what is to be cut out of it.
    pub(crate) fn response_body(&mut self, bytes: &[u8], at: Tick, cuts: &mut Cuts) {
        self.note_beginning(bytes);
        let (Some(meter), Some(response)) = (&mut self.meter, &mut self.response) else { return };
        // Bytes that are read without the client are no part of its time.
        let mut reading = if let Some(left) = response.left { meter.tail(left) } else { meter.read(at) };
        let Some(reader) = &mut response.reader else { return };
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
            Err(_) => {
                response.reader = None;
                meter.mark_unreadable();
                self.worker.dropped(Dropped::Decoding);
                return;
            }
        }
        if self.role.get().is_counted() {
            self.gauges.raise_live(&self.worker, meter.live_output());
        }
    }

    /// A frame was ready for `ns` nanoseconds while the client's socket was not.
    pub(crate) fn add_client_wait(&mut self, ns: u64) {
        if let Some(meter) = &mut self.meter {
            meter.add_client_wait(ns);
        }
    }

    /// The proxy spent `ns` nanoseconds of its own on a step of this exchange.
    pub(crate) fn spent(&mut self, ns: u64) {
        self.overhead_ns = self.overhead_ns.saturating_add(ns);
    }

    /// The response body ended cleanly.
    pub(crate) fn response_end(&mut self, at: Tick) {
        self.end(Close::Clean { whole: false }, None, at);
    }

    /// The upstream's body broke off.
    pub(crate) fn upstream_cut(&mut self, at: Tick) {
        self.end(Close::Cut, None, at);
    }

    /// The proxy answered with `status` itself: no upstream could.
    pub(crate) fn answered_locally(&mut self, reason: Refusal, status: u16, at: Tick) {
        if let Some(meter) = &mut self.meter {
            meter.answered(status, Body::Unknown);
        }
        self.end(Close::Local, Some(reason), at);
    }

    /// The meter failed on what it was shown: nothing is known of the answer any more.
    pub(crate) fn meter_failed(&mut self, at: Tick) {
        if let Some(response) = &mut self.response {
            response.reader = None;
        }
        self.request.stop();
        self.end(Close::Local, None, at);
    }

    /// It was no exchange after all: it leaves the gauges without a record.
    fn dismiss(&mut self, at: Tick) {
        if self.meter.take().is_some() {
            self.gauges.leave(&self.worker, self.upstream, at);
            self.worker.observer.borrow_mut().abandon(self.gauges.slot());
        }
    }

    fn is_streamed(&self) -> bool {
        self.response.as_ref().is_some_and(Response::is_streamed)
    }

    fn profile(&self) -> &UpstreamProfile {
        &self.worker.profiles[self.upstream]
    }

    /// The upstream's kind, as configured or found out.
    fn kind(&self) -> Option<ServerKind> {
        self.worker.plan.upstreams[self.upstream].kind.or_else(|| self.profile().found_kind())
    }

    /// Returns true if the answer's text is worth keeping until its end: there is a tokenizer for it, and the
    /// server does not count it, by its habit or by what the request asks for. Several answers' texts would be
    /// mixed, and the streams of other dialects say theirs twice, or have counts always.
    fn wants_text(&self, at: Tick) -> bool {
        let is_hidden = !self.is_streamed() && self.may_hide_counts();
        let keeps = match self.dialect {
            Dialect::OpenaiChat
            | Dialect::OpenaiCompletions
            | Dialect::OllamaChat
            | Dialect::OllamaGenerate
            | Dialect::Triton => is_hidden || self.profile().says_nothing(at),
            Dialect::LlamacppCompletion | Dialect::Tgi => is_hidden,
            _ => false,
        };
        keeps
            && self.role.get().is_counted()
            && self.worker.plan.tokenized.contains(self.model.name.as_str())
            && self.meter.as_ref().is_some_and(|meter| meter.request().answers <= 1 && !meter.request().echo)
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        let left = self.response.as_ref().and_then(|response| response.left);
        let is_cut = left.is_none() && self.worker.cutting.get();
        let close = if is_cut { Close::Local } else { Close::ClientGone { whole: false } };
        self.end(close, None, left.unwrap_or_else(clock::now));
    }
}
