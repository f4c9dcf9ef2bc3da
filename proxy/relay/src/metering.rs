//! The metering of one exchange by a worker, for all protocols. It has the exchange itself, which knows no worker, and the
//! worker's part: gauges, the upstream's profile, the trace, the text budget and the outbox. It receives the slices of the
//! body in the order in which they are forwarded, and then an end. A drop without an end means that the client left.

mod admission;
mod detached;
mod end;
mod in_flight_guard;
pub(crate) mod metered;
mod session;
pub(crate) mod trace;
pub(crate) mod work;

use std::rc::Rc;
use std::sync::Arc;

use exchange::{Gauges, Head, RoleSource, Route, Setup, Speaks, TenantResolution, rate_limits, request_id};
use http::{HeaderMap, StatusCode};
use meter::{Close, ExchangeId, Tick};
use scan::Dialect;
use usage::Cuts;

use self::trace::{Received, TracePosition};
use self::work::Work;
use crate::capacity::Permit;
use crate::request::tenant::resolve_by_body;
use crate::state::WorkerState;
use crate::{Dropped, Refusal, ServerKind, UpstreamProfile, clock, limits};

/// The metering of one exchange.
pub(crate) struct Metering {
    upstream: usize,
    origin: Origin,
    /// The capacity taken for the answer's text, if that is kept.
    text: Option<Permit>,
    work: Work,
    /// Nanoseconds that the proxy spent on it.
    overhead_ns: u64,
    // Last what each frame uses, so that it is in few cache lines.
    gauges: Gauges,
    worker: Rc<WorkerState>,
    /// The exchange without the worker.
    pub(crate) exchange: exchange::Exchange,
}

/// The facts of an exchange that are known when it begins.
struct Origin {
    id: ExchangeId,
    started_unix_ns: u64,
    request_id: Option<Arc<str>>,
    position: TracePosition,
}

impl Metering {
    /// Begins the exchange of a request on an inference path, whose head arrived at this tick and wall time, for the
    /// upstream with this index in the plan. The tenant rules have been applied to the head.
    pub(crate) fn begin(
        worker: &Rc<WorkerState>,
        upstream: usize,
        route: Route,
        headers: &HeaderMap,
        received: Received,
        (tenant, role): (TenantResolution, RoleSource),
        (at, started_unix_ns): (Tick, u64),
    ) -> Self {
        let plan = &worker.plan;
        let stall_ns = u64::try_from(plan.stall.as_nanos()).unwrap_or(u64::MAX);
        let setup = Setup { kind: worker.kind(upstream), role, stall_ns, tokens_max: plan.tokens_max };
        let exchange = exchange::Exchange::begin(route, headers, tenant, setup, at);
        let mut position = TracePosition::of(headers, received, plan.trace.as_ref(), &worker.ids);
        if matches!(route.speaks, Speaks::Anything | Speaks::Root) {
            position.leave_untouched();
        }
        Self {
            exchange,
            worker: Rc::clone(worker),
            upstream,
            origin: Origin {
                id: ExchangeId::new(started_unix_ns, worker.ids.wide()),
                started_unix_ns,
                request_id: request_id(headers).map(Into::into),
                position,
            },
            gauges: Gauges::enter(&mut **worker.observer.borrow_mut(), &mut worker.load(upstream), at),
            text: None,
            overhead_ns: 0,
            work: Work::MayStart(0),
        }
    }

    /// Writes the request's position in its trace into the fields for the upstream.
    pub(crate) fn trace_onward(&self, headers: &mut HeaderMap) {
        self.origin.position.write(headers);
    }

    /// Records that the request is complete at the proxy: t0.
    pub(crate) fn request_complete(&mut self, at: Tick) {
        self.exchange.request_complete(at);
        self.resolve_tenant();
    }

    /// Resolves the tenant by the body, as far as it was read.
    pub(crate) fn resolve_tenant(&mut self) {
        resolve_by_body(&self.worker, self.exchange.tenant_resolution());
    }

    /// Reads the head of the response. `None`: it is not an answer of a kind that is metered, and the exchange is over
    /// without a record.
    pub(crate) fn response_head(&mut self, status: u16, headers: &HeaderMap, at: Tick) -> Option<Head> {
        let kind = self.kind();
        let is_tunnel = status == StatusCode::SWITCHING_PROTOCOLS.as_u16();
        let head = (!is_tunnel).then(|| self.exchange.response_head(status, headers, kind, at)).flatten();
        let Some(head) = head else {
            self.dismiss(at);
            return None;
        };
        let is_success = status < 400;
        if is_success
            && self.exchange.wants_text(kind, self.profile().says_nothing(at))
            && self.worker.plan.tokenized.contains(self.exchange.model_name())
        {
            self.text = self.worker.texts.room_for(limits::KEPT_TEXT_BYTES);
            if self.text.is_some() {
                self.exchange.keep_text(limits::KEPT_TEXT_BYTES);
            }
        }
        // An unstreamed answer in an unknown dialect may not be that of a model.
        let is_answer = self.exchange.dialect() != Dialect::Unknown || self.exchange.is_streamed();
        let is_accepted = is_answer && is_success;
        self.gauges.admit(&mut **self.worker.observer.borrow_mut(), self.exchange.model_name(), is_accepted);
        if let Some(limits) = rate_limits(headers, || clock::wall_unix_ns() / 1_000_000) {
            let upstream = &self.worker.plan.upstreams[self.upstream].name;
            self.worker.observer.borrow_mut().rate_limits(self.gauges.slot(), upstream, &limits);
        }
        if status < 300
            && let Some(added) = self.exchange.added()
        {
            self.profile().accepts(added, at);
        }
        if head.keeps_added {
            self.worker.dropped(Dropped::UsageEdit);
        }
        Some(head)
    }

    /// Reads a slice of the response body, which was received at `at`. `cuts` takes the parts to remove from it.
    pub(crate) fn response_body(&mut self, bytes: &[u8], at: Tick, cuts: &mut Cuts) {
        match self.exchange.response_body(bytes, at, cuts) {
            Ok(Some(output)) => {
                if let Some(more) = self.gauges.raise_live(output) {
                    self.worker.observer.borrow_mut().live(self.gauges.slot(), more, 0);
                }
            }
            Ok(None) => {}
            Err(_) => self.worker.dropped(Dropped::Decoding),
        }
    }

    /// Adds `ns` nanoseconds of the proxy's own time.
    pub(crate) fn spent(&mut self, ns: u64) {
        self.overhead_ns = self.overhead_ns.saturating_add(ns);
    }

    /// Records that the client left at `at`, the time of the exchange's end. Returns true if the exchange needs the rest
    /// of the answer; it then ends when it is dropped.
    pub(crate) fn client_left(&mut self, at: Tick) -> bool {
        self.exchange.client_left(!self.worker.cutting.get(), at)
    }

    /// Records that the client left at `at`, when all of the answer was read.
    pub(crate) fn client_left_at_end(&mut self, at: Tick) {
        self.exchange.client_left(false, at);
    }

    /// Ends the exchange after a complete response body.
    pub(crate) fn response_end(&mut self, at: Tick) {
        self.end(Close::Clean { whole: false }, None, at);
    }

    /// Ends the exchange after a truncated response body.
    pub(crate) fn upstream_cut(&mut self, at: Tick) {
        self.end(Close::Cut, None, at);
    }

    /// Ends the exchange after the proxy's own answer with `status`: no upstream could answer.
    pub(crate) fn answered_locally(&mut self, reason: Refusal, status: u16, at: Tick) {
        self.exchange.answered_locally(status);
        self.end(Close::Local, Some(reason), at);
    }

    /// Ends the exchange after a failure of the meter: nothing more is known of the answer.
    pub(crate) fn meter_failed(&mut self, at: Tick) {
        self.exchange.stop_reading();
        self.end(Close::Local, None, at);
    }

    /// Ends the exchange without a record: it leaves the gauges.
    fn dismiss(&mut self, at: Tick) {
        self.exchange.dismiss();
        if self.gauges.leave(&mut self.worker.load(self.upstream), at).is_some() {
            self.gauges.abandon(&mut **self.worker.observer.borrow_mut());
        }
    }

    fn profile(&self) -> &UpstreamProfile {
        &self.worker.profiles[self.upstream]
    }

    /// Returns the upstream's kind, as configured or detected.
    fn kind(&self) -> Option<ServerKind> {
        self.worker.kind(self.upstream)
    }
}

impl Drop for Metering {
    fn drop(&mut self) {
        let left = self.exchange.left();
        let is_cut = left.is_none() && self.worker.cutting.get();
        let close = if is_cut { Close::Local } else { Close::ClientGone { whole: false } };
        self.end(close, None, left.unwrap_or_else(clock::now));
    }
}

#[cfg(test)]
mod tests {
    /// The allocations of the exchange and of its scanner are most of the memory that a metered stream needs.
    #[test]
    fn exchange_meter_and_scanner_are_small() {
        let (metering, scanner) = (size_of::<super::Metering>(), size_of::<scan::Scanner>());
        assert!(metering + scanner <= 1632, "{metering} and {scanner} bytes");
    }
}
