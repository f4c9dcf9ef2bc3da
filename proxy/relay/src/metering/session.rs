//! The metering of one answer of a session.

use std::rc::Rc;

use exchange::{RoleSource, Route, Speaks, TenantResolution, checked_request_id};
use http::{HeaderMap, Method, StatusCode};
use meter::{Close, Tick};
use scan::{Dialect, Event, Extent, Links, Name, OtherModels};

use super::Metering;
use super::trace::Received;
use crate::clock;
use crate::state::WorkerState;

impl Metering {
    /// Begins the exchange of an answer of a session, whose handshake has these fields and came with or without TLS.
    pub(crate) fn begin_in_session(
        worker: &Rc<WorkerState>,
        upstream: usize,
        dialect: Dialect,
        (headers, is_tls): (&HeaderMap, bool),
        tenancy: (TenantResolution, RoleSource),
        at: Tick,
    ) -> Self {
        let route = Route::new(Speaks::Known(dialect));
        let received = Received::new(&Method::GET, is_tls);
        Self::begin(worker, upstream, route, headers, received, tenancy, (at, clock::wall_unix_ns()))
    }

    /// Records that the client requested the answer, by the message with the id `request`, or that the server began it.
    pub(crate) fn asked_in_session(
        mut self,
        models: (Name, Option<Box<OtherModels>>),
        links: Links,
        request: &Name,
        at: Tick,
    ) -> Self {
        self.origin.request_id = checked_request_id(request.as_str().as_bytes()).map(Into::into);
        let status = StatusCode::SWITCHING_PROTOCOLS.as_u16();
        self.exchange.request_in_session(models, links, status, at);
        self.exchange.sent();
        self.gauges.admit(&mut **self.worker.observer.borrow_mut(), self.exchange.model_name(), false);
        self
    }

    /// Records that the server began the answer, so it accepted the model.
    pub(crate) fn accept(&mut self) {
        self.gauges.admit(&mut **self.worker.observer.borrow_mut(), self.exchange.model_name(), true);
    }

    /// Reads a message of the answer, which was received at `at`.
    pub(crate) fn message(&mut self, events: &[Event], extent: Option<Extent>, at: Tick) {
        if let Some(output) = extent.and_then(|extent| self.exchange.message(events, extent, at))
            && let Some(more) = self.gauges.raise_live(output)
        {
            self.worker.observer.borrow_mut().live(self.gauges.slot(), more, 0);
        }
    }

    /// Ends the exchange: the client or the speaker broke the answer off.
    pub(crate) fn cancelled(&mut self, at: Tick) {
        self.end(Close::ClientGone { whole: false }, None, at);
    }
}
