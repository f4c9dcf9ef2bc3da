//! The object behind an exchange's handle: the metered exchange, and its part in the metrics of its meter.

use std::sync::Arc;

use bytes::Bytes;
use exchange::{CallerFacts, Edits, Exchange, Gauges, Route, TenantResolution};
use http::HeaderMap;
use meter::{Close, Dropped, EnginePrompt, EngineStep, ExchangeId, Observer, Tick, UsageStep};
use scan::{Dialect, Finish, Request};
use usage::{AddedOptions, Cuts, Editor, Injection, NotInjected, inject_usage};

use crate::finished::Finished;
use crate::host::Host;
use crate::status::{Fault, Status};

/// A running exchange.
pub(crate) struct Embedded {
    host: Arc<Host>,
    shard: usize,
    exchange: Exchange,
    id: ExchangeId,
    started_unix_ns: u64,
    request_id: Option<Arc<str>>,
    headers: HeaderMap,
    stage: Stage,
    gauges: Gauges,
    last: Tick,
    cuts: Cuts,
    /// True once the decision about the usage to request is in the metrics: a caller may ask again with a larger buffer.
    has_counted_usage: bool,
    /// Removes what was added to the request from the response.
    editor: Option<Editor>,
}

/// A request body with options that the client did not ask for.
pub(crate) struct EditedRequest {
    pub(crate) parts: Vec<Bytes>,
    pub(crate) added: AddedOptions,
}

/// The progress of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The request body passes.
    Request,
    /// The request is complete.
    Sent,
    /// The response's head was read.
    Response,
    /// The exchange has left the metrics.
    Over,
}

impl Embedded {
    /// Begins an exchange.
    pub(crate) fn begin(
        host: Arc<Host>,
        route: Route,
        (shard, tenant): (usize, TenantResolution),
        headers: HeaderMap,
        (at, started_unix_ns): (Tick, u64),
    ) -> Self {
        let exchange = Exchange::begin(route, &headers, tenant, host.settings.setup, at);
        let (id, gauges) = host.shard(shard, |shard| {
            let gauges = host.load(|load| Gauges::enter(&mut shard.cells, load, at));
            // After a fork, both processes draw the same numbers.
            let random = shard.ids.wide() ^ u128::from(std::process::id());
            (ExchangeId::new(started_unix_ns, random), gauges)
        });
        Self {
            request_id: exchange::request_id(&headers).map(Into::into),
            host,
            shard,
            exchange,
            id,
            started_unix_ns,
            headers,
            stage: Stage::Request,
            gauges,
            last: at,
            cuts: Cuts::default(),
            has_counted_usage: false,
            editor: None,
        }
    }

    /// Reads what the request's target and header fields say beside the route.
    pub(crate) fn asked_at(&mut self, path: &str, query: Option<&str>) {
        self.exchange.asked_at(path, query, &self.headers);
    }

    /// Takes the request's facts in place of its body: it is complete.
    pub(crate) fn describe(&mut self, facts: Request, request_id: Option<Arc<str>>) {
        self.stage = Stage::Sent;
        self.request_id = request_id;
        self.exchange.request_known(facts, self.last);
        self.exchange.sent();
        self.exchange.count_by_engine();
        self.admit(true);
    }

    /// Takes the counts from the engine.
    pub(crate) fn count_by_engine(&mut self) {
        self.exchange.count_by_engine();
    }

    /// Adds a prompt of the engine.
    pub(crate) fn engine_prompt(&mut self, prompt: EnginePrompt) {
        self.exchange.engine_prompt(prompt);
    }

    /// Adds the tokens of a step of the engine.
    #[inline]
    pub(crate) fn engine_step(&mut self, step: EngineStep, at: Tick) {
        self.last = at;
        if !self.gauges.is_admitted() {
            // An engine that generates has accepted the model, often before there is a response.
            self.admit(true);
        }
        let output = self.exchange.engine_step(step, at);
        self.raise_live(output);
    }

    /// Ends an answer of the engine.
    pub(crate) fn engine_finish(&mut self, choice: u32, reason: Finish) {
        self.exchange.engine_finish(choice, reason);
    }

    /// Gives the live counter the output so far.
    #[inline]
    fn raise_live(&mut self, output: Option<u64>) {
        if let Some(more) = output.and_then(|output| self.gauges.raise_live(output)) {
            self.host.shard(self.shard, |shard| shard.cells.live(self.gauges.slot(), more, 0));
        }
    }

    /// Reads the next slice of the request body.
    pub(crate) fn request_body(&mut self, bytes: &[u8]) -> Result<Status, Fault> {
        self.require(self.stage == Stage::Request, "the request is complete already")?;
        self.exchange.request_body(bytes);
        Ok(Status::Ok)
    }

    /// Records that the request is complete.
    pub(crate) fn request_complete(&mut self, at: Tick) -> Result<Status, Fault> {
        self.require(self.stage == Stage::Request, "the request is complete already")?;
        self.stage = Stage::Sent;
        self.exchange.request_complete(at);
        self.exchange.sent();
        self.last = at;
        let rule = self.exchange.tenant_resolution().resolve();
        self.host.shard(self.shard, |shard| rule.into_iter().for_each(|rule| shard.cells.tenant(rule)));
        Ok(Status::Ok)
    }

    /// Returns the request body with the usage option, if usage is to be requested. [`Self::request_edited`] records that
    /// the caller has this body.
    pub(crate) fn edit_request(&mut self, body: &[u8]) -> Result<Option<EditedRequest>, Fault> {
        self.require(self.stage == Stage::Sent, "the request is edited after tm_exchange_request_complete")?;
        let settings = &self.host.settings;
        let facts = exchange::UpstreamFacts {
            kind: settings.kind,
            usage: settings.usage,
            ..exchange::UpstreamFacts::default()
        };
        let dialect = self.exchange.dialect();
        let options = match facts.question(dialect, &self.headers) {
            Some(Ok(options)) if self.exchange.asks_for_frames() => options,
            Some(Ok(_)) => return self.unchanged(UsageStep::NotStreamed),
            Some(Err(step)) => return self.unchanged(step),
            None => return Ok(None),
        };
        match inject_usage(body, options) {
            Injection::Edit { edit, added, .. } => {
                let parts: Vec<_> = edit.apply(&Bytes::copy_from_slice(body)).collect();
                Ok(Some(EditedRequest { parts, added }))
            }
            Injection::Nothing(NotInjected::NotStreamed) => self.unchanged(UsageStep::NotStreamed),
            Injection::Nothing(NotInjected::AlreadyRequested) => self.unchanged(UsageStep::ClientAsked),
            Injection::Nothing(NotInjected::NotJson | NotInjected::UnexpectedType) => {
                self.unchanged(UsageStep::Unreadable)
            }
        }
    }

    /// Records that the caller has the edited body and sends it.
    pub(crate) fn request_edited(&mut self, added: AddedOptions) {
        self.exchange.asked_more(Some(added));
        self.editor = Some(Editor::new());
        let step = if added.is_running() { UsageStep::Continuous } else { UsageStep::Injected };
        self.count_usage(step);
    }

    fn unchanged<T>(&mut self, step: UsageStep) -> Result<Option<T>, Fault> {
        self.count_usage(step);
        Ok(None)
    }

    fn count_usage(&mut self, step: UsageStep) {
        if !std::mem::replace(&mut self.has_counted_usage, true) {
            self.host.shard(self.shard, |shard| shard.cells.usage(step));
        }
    }

    /// Reads the head of the response. Returns false if it is not one of a model: the exchange is over without a record.
    pub(crate) fn response_head(
        &mut self,
        status: u16,
        headers: &HeaderMap,
        at: Tick,
    ) -> Result<bool, Fault> {
        self.require(self.stage != Stage::Response, "the response has a head already")?;
        if self.stage == Stage::Request {
            // A server may answer before it has read the whole request.
            self.request_complete(at)?;
        }
        self.stage = Stage::Response;
        self.last = at;
        let Some(head) = self.exchange.response_head(status, headers, self.host.settings.kind, at) else {
            return Ok(false);
        };
        if head.edits == Edits::None {
            self.editor = None;
        }
        if head.keeps_added {
            self.count_dropped(Dropped::UsageEdit, 1);
        }
        // An answer of no known dialect may turn out to be none of a model.
        let is_answer = self.exchange.dialect() != Dialect::Unknown || self.exchange.is_streamed();
        self.admit(is_answer && status < 400);
        Ok(true)
    }

    /// Labels the exchange with its model.
    fn admit(&mut self, is_accepted: bool) {
        let Self { gauges, exchange, host, shard, .. } = self;
        host.shard(*shard, |shard| gauges.admit(&mut shard.cells, exchange.model_name(), is_accepted));
    }

    /// Reads a slice of the response body that the client gets as it is.
    #[inline]
    pub(crate) fn response_body(&mut self, bytes: &[u8], at: Tick) -> Result<Status, Fault> {
        let status = self.read_response(bytes, at)?;
        if self.editor.is_some() {
            // Positions after a slice that the editor did not see are not its own.
            self.cuts = Cuts::default();
            self.editor.take_if(|editor| !editor.is_holding());
        }
        Ok(status)
    }

    #[inline]
    fn read_response(&mut self, bytes: &[u8], at: Tick) -> Result<Status, Fault> {
        self.require(self.stage == Stage::Response, "the response has no head yet")?;
        self.last = at;
        match self.exchange.response_body(bytes, at, &mut self.cuts) {
            Ok(output) => {
                self.raise_live(output);
                Ok(Status::Ok)
            }
            Err(_) => {
                self.count_dropped(Dropped::Decoding, 1);
                Err(Status::Decoding.into())
            }
        }
    }

    /// Reads a slice of the response body and returns what the client is to see of it now.
    pub(crate) fn edit_response(&mut self, bytes: &[u8], at: Tick) -> Result<Option<Bytes>, Fault> {
        self.read_response(bytes, at)?;
        let Some(editor) = &mut self.editor else { return Ok(None) };
        let missed = editor.missed();
        let shown = editor.edit(Bytes::copy_from_slice(bytes), &mut self.cuts);
        let missed = editor.missed() - missed;
        if missed > 0 {
            self.count_dropped(Dropped::UsageEdit, missed);
        }
        Ok(Some(shown))
    }

    #[cold]
    fn count_dropped(&self, item: Dropped, count: u64) {
        self.host.shard(self.shard, |shard| shard.cells.dropped(item, count));
    }

    /// Returns the bytes that wait for the rest of their event.
    pub(crate) fn release(&mut self) -> Bytes {
        self.editor.as_mut().map_or_else(Bytes::new, Editor::release)
    }

    /// Adds time for which bytes were ready and the client was not.
    pub(crate) fn add_client_wait(&mut self, ns: u64) {
        self.exchange.add_client_wait(ns);
    }

    /// Ends the exchange. `None` if nothing of inference was seen.
    pub(crate) fn end(&mut self, close: Close, at: Tick) -> Option<Finished> {
        let host = Arc::clone(&self.host);
        let load = host.load(|load| self.gauges.leave(load, at))?;
        let caller = CallerFacts {
            id: self.id,
            started_unix_ns: self.started_unix_ns,
            request_id: self.request_id.take(),
            upstream: Arc::clone(&host.settings.upstream),
            provider: Arc::clone(&host.settings.provider),
            is_provider_known: true,
            trace: None,
        };
        let Some(ended) = self.exchange.end(close, load, at, caller) else {
            self.abandon();
            return None;
        };
        if ended.is_renamed {
            self.gauges.unlabel();
        }
        if ended.was_unknown || ended.is_renamed {
            self.admit(true);
        }
        self.stage = Stage::Over;
        host.shard(self.shard, |shard| {
            self.gauges.settle_live(&mut shard.cells, &ended.record);
            shard.cells.end(self.gauges.slot(), &ended.record);
            ended.count_losses(&mut shard.cells);
        });
        let charge = host.charge(&ended.record);
        Some(Finished { record: ended.record, charge })
    }

    /// Ends the exchange without a record, unless it is over.
    pub(crate) fn discard(&mut self) {
        self.host.load(|load| self.gauges.leave(load, self.last));
        self.abandon();
    }

    /// Takes the exchange out of the metrics, once.
    fn abandon(&mut self) {
        if std::mem::replace(&mut self.stage, Stage::Over) == Stage::Over {
            return;
        }
        self.host.shard(self.shard, |shard| self.gauges.abandon(&mut shard.cells));
    }

    fn require(&self, holds: bool, message: &'static str) -> Result<(), Fault> {
        if holds { Ok(()) } else { Err(Fault::new(Status::Order, message)) }
    }
}
