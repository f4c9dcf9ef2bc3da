//! One metered exchange, whatever engine carries it. The engine hands in body slices in the order
//! they pass and then an end; an exchange that is dropped without one is a client that left. What
//! happens here looks at bytes in place and returns at once: it never holds them, never waits, and
//! cannot fail (law 2, law 3).

mod admission;
mod guard;
mod header_facts;
pub(crate) mod metered;
mod model;
mod request_reader;
mod response;
mod response_reader;
mod rest;
pub(crate) mod trace;
mod usage_filter;

use std::rc::Rc;
use std::sync::{Arc, MutexGuard, PoisonError};

use http::HeaderMap;
use meter::{
    Body, Close, ExchangeId, Identity, Load, LoadReading, LoadSpan, Meter, Provenance, Record, Role, Tick,
};
use scan::{Dialect, Framing, Links, Request, Tier};
use usage::{Added, Cuts, UsageFilter};

use self::guard::InFlightGuard;
use self::model::RequestedModel;
use self::request_reader::RequestReader;
use self::response::{Form, Response};
use self::response_reader::{BodySummary, Readable, ResponseReader};
use self::trace::TracePosition;
use crate::outbox::Text;
use crate::request::headers::is_sealed;
use crate::request::route::{Route, Speaks};
use crate::request::tenant::TenantResolution;
use crate::request::usage_policy;
use crate::state::WorkerState;
use crate::{
    Class, Dropped, ModelSlot, Passthrough, Refusal, RoleSource, ServerKind, UpstreamProfile, clock, limits,
    role,
};

/// One metered exchange.
pub(crate) struct Exchange {
    worker: Rc<WorkerState>,
    upstream: usize,
    speaks: Speaks,
    dialect: Dialect,
    id: ExchangeId,
    place: TracePosition,
    started_unix_ns: u64,
    /// Taken when the exchange has ended.
    meter: Option<Meter>,
    /// Reads the request until it is complete.
    request: Option<RequestReader>,
    model: RequestedModel,
    tenant: TenantResolution,
    /// The service tier the request asks for.
    tier: Tier,
    /// The source of its role.
    role_source: RoleSource,
    role: Role,
    request_id: Option<Arc<str>>,
    /// The ids by which the request continues earlier ones, where its dialect has them.
    links: Links,
    /// Times that the whole request was sent upstream, or answered there.
    upstream_attempts: u8,
    /// The response, from its head on.
    response: Option<Response>,
    /// The members that were added to the request.
    added: Option<Added>,
    slot: ModelSlot,
    admitted: bool,
    entered: LoadReading,
    /// Output tokens given to the live counter.
    live: u64,
    overhead_ns: u64,
    /// The reason of the proxy's own answer, if there is one.
    refusal: Option<Refusal>,
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
        let slot = {
            let mut observer = worker.observer.borrow_mut();
            let slot = observer.unknown_model();
            observer.begin(slot);
            slot
        };
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
        let mut place = TracePosition::of(headers, plan.trace.as_ref(), &worker.ids);
        if matches!(route.speaks, Speaks::Anything | Speaks::Root) {
            place.leave_untouched();
        }
        Self {
            worker: Rc::clone(worker),
            upstream,
            speaks: route.speaks,
            dialect,
            id: ExchangeId::new(started_unix_ns, worker.ids.wide()),
            place,
            started_unix_ns,
            meter: Some(meter),
            request: Some(RequestReader::new(dialect, kind, headers, tenant.selected_members())),
            model: RequestedModel::in_path(route.model),
            tenant,
            tier: Tier::default(),
            role_source,
            role: role_source.first(),
            request_id: role::request_id(headers).map(Into::into),
            links: Links::default(),
            upstream_attempts: 0,
            response: None,
            added: None,
            slot,
            admitted: false,
            entered: load(worker, upstream).enter(at),
            live: 0,
            overhead_ns: 0,
            refusal: None,
        }
    }

    /// The request goes upstream with these fields: they say its place in a trace from now on.
    pub(crate) fn trace_onward(&self, headers: &mut HeaderMap) {
        self.place.write(headers);
    }

    /// A slice of the request body is passing, as the client sent it.
    pub(crate) fn request_body(&mut self, bytes: &[u8]) {
        if let Some(request) = &mut self.request {
            request.feed(bytes);
        }
    }

    /// The request is complete at the proxy: t0.
    pub(crate) fn request_complete(&mut self, at: Tick) {
        let Some(mut request) = self.request.take() else { return };
        let facts = self.settle(&mut request);
        if let Some(meter) = &mut self.meter {
            meter.set_dialect(self.dialect);
            meter.requested(facts, at);
        }
    }

    /// Takes the facts of the whole request, as far as it was read.
    fn settle(&mut self, request: &mut RequestReader) -> Request {
        let facts = request.end();
        self.tier = request.service_tier();
        self.tenant.body(&self.worker, request.values().filter(|_| facts.whole));
        self.model.settle(facts.model, request.other_model(), facts.whole && !facts.is_model_invalid);
        if let Some(dialect) = self.speaks.settle(&facts) {
            self.dialect = dialect;
        }
        if self.dialect == Dialect::OpenaiResponses {
            self.links = request.links();
        }
        self.role = self.role_source.role(&facts, self.dialect);
        facts
    }

    /// The request went upstream with this in it that the client had not asked for and is not to see.
    pub(crate) fn asked_more(&mut self, added: Option<Added>) {
        self.added = added.filter(|added| *added != Added::default());
    }

    /// The whole request was sent upstream, or was answered before that.
    pub(crate) fn sent(&mut self) {
        self.upstream_attempts = self.upstream_attempts.saturating_add(1);
    }

    /// The response head arrived. `None`: it is not an answer of a kind we meter, and the exchange
    /// is over without a record.
    pub(crate) fn response_head(&mut self, status: u16, headers: &HeaderMap, at: Tick) -> Option<Head> {
        if let Some(request) = &self.request
            && self.model.name.is_empty()
        {
            // A server may answer before it has read the whole request.
            self.model.name = request.model();
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
        let editable = may_stream && answers && codings == decode::Codings::Identity && !is_sealed(headers);
        let edits = self.added.filter(|_| editable);
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
        self.admit(is_answer && status < 400);
        if let Some(added) = self.added {
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
        let live = meter.live_output();
        if live > self.live && self.role.is_counted() {
            self.worker.observer.borrow_mut().live(self.slot, live - self.live, 0);
            self.live = live;
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
        self.end(Close::Clean { whole: false }, at);
    }

    /// The upstream's body broke off.
    pub(crate) fn upstream_cut(&mut self, at: Tick) {
        self.end(Close::Cut, at);
    }

    /// The proxy answered with `status` itself: no upstream could.
    pub(crate) fn answered_locally(&mut self, reason: Refusal, status: u16, at: Tick) {
        self.refusal = Some(reason);
        if let Some(meter) = &mut self.meter {
            meter.answered(status, Body::Unknown);
        }
        self.end(Close::Local, at);
    }

    /// The meter failed on what it was shown: nothing is known of the answer any more.
    pub(crate) fn meter_failed(&mut self, at: Tick) {
        if let Some(response) = &mut self.response {
            response.reader = None;
        }
        self.request = None;
        self.end(Close::Local, at);
    }

    /// It was no exchange after all: its seats are given back, and there will be no record.
    fn dismiss(&mut self, at: Tick) {
        if self.meter.take().is_some() {
            load(&self.worker, self.upstream).leave(at, &self.entered);
            self.worker.observer.borrow_mut().abandon(self.slot);
        }
    }

    /// Gives the exchange the label of its model. Names are believed once a server has accepted
    /// them; before, only names already known count, so that no client can fill the labels with noise.
    fn admit(&mut self, accepted: bool) {
        if self.admitted || self.model.name.is_empty() {
            return;
        }
        let mut observer = self.worker.observer.borrow_mut();
        let name = admission::recorded(self.model.name.as_str());
        let slot = if accepted { Some(observer.model(name)) } else { observer.known_model(name) };
        if let Some(slot) = slot {
            observer.admit(self.slot, slot);
            self.slot = slot;
            self.admitted = true;
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

    /// Notes in the upstream's profile if a stream that ended had counts, and if it had them without being asked.
    fn learn(&self, record: &Record, at: Tick) {
        let usage_filter = self.response.as_ref().and_then(|response| response.usage_filter.as_ref());
        let sends_unrequested = usage_filter.is_some_and(UsageFilter::sends_unrequested);
        if sends_unrequested {
            self.profile().sends_usage(at);
        }
        let counted = record.tokens.output_provenance;
        if !record.streamed
            || !record.ending.is_success()
            || !self.dialect.generates()
            || counted == Provenance::None
        {
            return;
        }
        self.profile().reports(counted != Provenance::Frames, at);
        let asked = usage_filter.is_none_or(UsageFilter::asked);
        if !sends_unrequested && !asked && counted != Provenance::Reported {
            self.profile().sends_no_usage();
        }
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
            && self.role.is_counted()
            && self.worker.plan.tokenized.contains(self.model.name.as_str())
            && self.meter.as_ref().is_some_and(|meter| meter.request().answers <= 1 && !meter.request().echo)
    }

    fn end(&mut self, close: Close, at: Tick) {
        if self.dialect == Dialect::Unknown && self.response.is_none() {
            // Nothing of inference was seen.
            return self.dismiss(at);
        }
        let Some(mut meter) = self.meter.take() else { return };
        // First of all, so that nothing that fails below can leave them behind.
        let left = load(&self.worker, self.upstream).leave(at, &self.entered);
        let mut guard = InFlightGuard { worker: Rc::clone(&self.worker), slot: self.slot, taken: true };
        if let Some(mut request) = self.request.take() {
            // It ended before its request was complete.
            let facts = self.settle(&mut request);
            meter.set_dialect(self.dialect);
            meter.requested(facts, at);
        }
        let (mut close, mut over) = (close, BodySummary::default());
        if let Some(response) = &mut self.response
            && let Some(reader) = response.reader.take()
        {
            let mut reading = meter.tail(at);
            over = match &mut response.usage_filter {
                Some(usage_filter) => reader.end(&mut usage_filter.listen(&mut reading)),
                None => reader.end(&mut reading),
            };
            if let Close::Clean { whole } | Close::ClientGone { whole } = &mut close {
                *whole = over.tail.whole;
            }
        }
        let BodySummary { model: response_model, id, tier, unparsed, text, answered, .. } = over;
        let was_unknown = self.dialect == Dialect::Unknown;
        let is_tentative = was_unknown && !self.is_streamed();
        if is_tentative && let Some(dialect) = answered {
            self.dialect = dialect;
            meter.set_dialect(dialect);
        }
        // Of two readings of the request, the answer says which was the server's.
        let is_other = self.model.is_other(&response_model);
        let says_model = self.model.name.is_empty() && !response_model.is_empty();
        if is_other || says_model {
            self.model.name = response_model;
            self.admitted = false;
        }
        let (provider, upstream) = self.place();
        let who = self.tenant.take(&self.worker);
        let is_tier_reported = !tier.is_empty();
        let tier = [tier, self.tier].into_iter().find(|tier| !tier.is_empty());
        let identity = Identity {
            exchange: self.id,
            tenant: who.tenant,
            principal: who.principal,
            consumer: who.consumer,
            service_tier: tier.map(|tier| tier.as_str().into()),
            is_tier_reported,
            upstream,
            provider,
            role: self.role,
            request_id: self.request_id.take(),
            dialect: self.dialect,
            model: admission::recorded(self.model.name.as_str()).into(),
            response_model: (!response_model.is_empty())
                .then(|| admission::recorded(response_model.as_str()).into()),
            response_id: admission::named(&id),
            previous_response_id: admission::named(&self.links.previous_response),
            conversation_id: admission::named(&self.links.conversation),
            trace: self.place.trace.take(),
            started_unix_ns: self.started_unix_ns,
        };
        let load = LoadSpan { entered: self.entered, left };
        let mut record = meter.end(identity, close, load, at);
        record.upstream_attempts = self.upstream_attempts;
        let tokens = &record.tokens;
        self.role = self.role_source.of_ended(self.role, tokens.output());
        record.identity.role = self.role;
        if is_tentative && (tokens.input_provenance, tokens.output_provenance) == UNCOUNTED {
            // Nothing of inference was seen: the seat is given back, and there is no record.
            return self.worker.passthrough(Passthrough::Path);
        }
        if was_unknown || is_other || says_model {
            self.admit(true);
            guard.slot = self.slot;
        }
        self.learn(&record, at);
        let is_estimate = record.tokens.output_provenance == Provenance::Frames;
        let is_unstated = !record.streamed && record.tokens.output_provenance == Provenance::None;
        let kept = self.response.as_mut().and_then(|response| response.text.take());
        let text = text.filter(|text| is_estimate || is_unstated && !text.is_empty()).zip(kept);
        let text = text.map(|(bytes, share)| Text::new(bytes, share));

        let mut observer = self.worker.observer.borrow_mut();
        if let Some(reason) = self.refusal {
            observer.reject(&record.identity.tenant, reason);
        }
        let output = if self.role.is_counted() { record.tokens.output() } else { 0 };
        if output != self.live {
            let (more, overcounted) = (output.saturating_sub(self.live), self.live.saturating_sub(output));
            observer.live(self.slot, more, overcounted);
        }
        // A record whose text will be counted elsewhere is booked there, with that count.
        let counted_elsewhere = text.is_some();
        if !counted_elsewhere {
            observer.end(self.slot, &record);
            guard.taken = false;
        }
        observer.overhead(if self.is_streamed() { Class::Stream } else { Class::Body }, self.overhead_ns);
        for (what, count) in [
            (Dropped::UsageRejected, u64::from(record.usage_rejected)),
            (Dropped::FrameUnparsed, unparsed),
            (Dropped::CachedExcess, u64::from(record.cached_excess > 0)),
        ] {
            if count > 0 {
                observer.dropped(what, count);
            }
        }
        match self.worker.outbox.put(record, text) {
            Ok(()) if counted_elsewhere => observer.abandon(self.slot),
            Ok(()) => {}
            Err(back) => {
                if counted_elsewhere {
                    observer.end(self.slot, &back.record);
                }
                observer.dropped(Dropped::Record, 1);
            }
        }
        guard.taken = false;
    }
}

/// The provenances of an answer that carries no count.
const UNCOUNTED: (Provenance, Provenance) = (Provenance::None, Provenance::None);

/// The upstream's load cell. A thread that panicked while it held it cannot have left it half
/// changed in a way that matters: it is a few numbers.
fn load(worker: &WorkerState, upstream: usize) -> MutexGuard<'_, Load> {
    worker.loads[upstream].lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Exchange {
    fn drop(&mut self) {
        let left = self.response.as_ref().and_then(|response| response.left);
        let is_cut = left.is_none() && self.worker.cutting.get();
        let close = if is_cut { Close::Local } else { Close::ClientGone { whole: false } };
        self.end(close, left.unwrap_or_else(clock::now));
    }
}
