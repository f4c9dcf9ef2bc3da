//! One metered exchange, whatever engine carries it. The engine hands in body slices in the order
//! they pass and then an end; an exchange that is dropped without one is a client that left. What
//! happens here looks at bytes in place and returns at once: it never holds them, never waits, and
//! cannot fail (law 2, law 3).

use std::rc::Rc;
use std::sync::{Arc, MutexGuard, PoisonError};

use hyper::HeaderMap;
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE};
use meter::{Body, Close, Identity, Load, LoadReading, Meter, Tick};
use scan::{Dialect, Framing, Name, RequestScanner, Scanner};

use crate::worker::Worker;
use crate::{Dropped, ModelSlot, Passthrough, clock};

/// One metered exchange.
pub struct Exchange {
    worker: Rc<Worker>,
    upstream: usize,
    dialect: Dialect,
    started_unix_ns: u64,
    /// Taken when the exchange has ended.
    meter: Option<Meter>,
    /// Reads the request until it is complete.
    request: Option<Box<RequestScanner>>,
    model: Name,
    /// Reads the response, if it can be read.
    scanner: Option<Box<Scanner>>,
    slot: ModelSlot,
    admitted: bool,
    entered: LoadReading,
    /// Output tokens given to the live counter.
    live: u64,
    overhead_ns: u64,
    streamed: bool,
}

impl Exchange {
    /// A request head of a known inference path arrived on `upstream`, an index into the plan.
    pub fn begin(worker: &Rc<Worker>, upstream: usize, dialect: Dialect, at: Tick) -> Self {
        let slot = {
            let mut observer = worker.observer.borrow_mut();
            let slot = observer.unknown_model();
            observer.begin(slot);
            slot
        };
        let stall_ns = u64::try_from(worker.plan.stall.as_nanos()).unwrap_or(u64::MAX);
        Self {
            worker: Rc::clone(worker),
            upstream,
            dialect,
            started_unix_ns: clock::wall_unix_ns(),
            meter: Some(Meter::new(dialect, at, stall_ns)),
            request: Some(Box::default()),
            model: Name::default(),
            scanner: None,
            slot,
            admitted: false,
            entered: load(worker, upstream).enter(at),
            live: 0,
            overhead_ns: 0,
            streamed: false,
        }
    }

    /// A slice of the request body is passing.
    pub fn request_body(&mut self, bytes: &[u8]) {
        if let Some(request) = &mut self.request {
            request.feed(bytes);
        }
    }

    /// The request is complete at the proxy: t0.
    pub fn request_complete(&mut self, at: Tick) {
        if let (Some(mut request), Some(meter)) = (self.request.take(), &mut self.meter) {
            let facts = request.end();
            self.model = facts.model;
            meter.requested(facts, at);
        }
    }

    /// The response head arrived; says why the body cannot be read, if it cannot.
    pub fn response_head(&mut self, status: u16, headers: &HeaderMap, _at: Tick) -> Option<Passthrough> {
        if let Some(request) = &self.request
            && self.model.is_empty()
        {
            // A server may answer before it has read the whole request.
            self.model = *request.model();
        }
        let encoded = headers
            .get_all(CONTENT_ENCODING)
            .iter()
            .any(|value| !value.as_bytes().trim_ascii().eq_ignore_ascii_case(b"identity"));
        let framing = headers.get(CONTENT_TYPE).and_then(|v| Framing::from_content_type(v.as_bytes()));
        let (body, unmetered) = match framing {
            _ if encoded => (Body::Unseen, Some(Passthrough::Encoding)),
            Some(Framing::Json) => (Body::Whole, None),
            Some(_) => (Body::Frames, None),
            None => (Body::Unseen, Some(Passthrough::ContentType)),
        };
        if unmetered.is_none() {
            self.scanner = framing.map(|framing| Box::new(Scanner::new(self.dialect, framing)));
        }
        self.streamed = body == Body::Frames;
        if let Some(meter) = &mut self.meter {
            meter.answered(status, body);
        }
        self.admit(status < 400);
        unmetered
    }

    /// A slice of the response body was read at `at`.
    pub fn response_body(&mut self, bytes: &[u8], at: Tick) {
        let Some(meter) = &mut self.meter else { return };
        let mut reading = meter.read(at);
        let Some(scanner) = &mut self.scanner else { return };
        scanner.feed(bytes, &mut reading);
        let live = meter.live_output();
        if live > self.live {
            self.worker.observer.borrow_mut().live(self.slot, live - self.live, 0);
            self.live = live;
        }
    }

    /// A frame was ready for `ns` nanoseconds while the client's socket was not.
    pub fn client_waited(&mut self, ns: u64) {
        if let Some(meter) = &mut self.meter {
            meter.client_waited(ns);
        }
    }

    /// The proxy spent `ns` nanoseconds of its own on a step of this exchange.
    pub fn spent(&mut self, ns: u64) {
        self.overhead_ns = self.overhead_ns.saturating_add(ns);
    }

    /// The response body ended cleanly.
    pub fn response_end(&mut self, at: Tick) {
        self.end(Close::Clean { whole: false }, at);
    }

    /// The upstream's body broke off.
    pub fn upstream_cut(&mut self, at: Tick) {
        self.end(Close::Cut, at);
    }

    /// The proxy answered with `status` itself: no upstream could.
    pub fn answered_locally(&mut self, status: u16, at: Tick) {
        if let Some(meter) = &mut self.meter {
            meter.answered(status, Body::Unseen);
        }
        self.end(Close::Local, at);
    }

    /// The meter failed on what it was shown: nothing is known of the answer any more.
    pub fn meter_failed(&mut self, at: Tick) {
        self.scanner = None;
        self.request = None;
        self.end(Close::Local, at);
    }

    /// Gives the exchange the label of its model. Names are believed once a server has accepted
    /// them; before, only names already known count, so that nobody can fill the labels with noise.
    fn admit(&mut self, accepted: bool) {
        if self.admitted || self.model.is_empty() {
            return;
        }
        let mut observer = self.worker.observer.borrow_mut();
        let name = self.model.as_str();
        let slot = if accepted { Some(observer.model(name)) } else { observer.known_model(name) };
        if let Some(slot) = slot {
            observer.admit(self.slot, slot);
            self.slot = slot;
            self.admitted = true;
        }
    }

    fn end(&mut self, close: Close, at: Tick) {
        let Some(mut meter) = self.meter.take() else { return };
        // First of all, so that nothing that fails below can leave them behind.
        let left = load(&self.worker, self.upstream).leave(at);
        let mut seat = Seat { worker: Rc::clone(&self.worker), slot: self.slot, taken: true };
        if let Some(mut request) = self.request.take() {
            self.model = *request.model();
            meter.requested(request.end(), at);
        }
        let (mut close, mut response_model, mut unparsed) = (close, Name::default(), 0);
        if let Some(mut scanner) = self.scanner.take() {
            let tail = scanner.end(&mut meter.tail(at));
            if let Close::Clean { whole } = &mut close {
                *whole = tail.whole;
            }
            response_model = *scanner.model();
            unparsed = scanner.work().unparsed;
        }
        if self.model.is_empty() && !response_model.is_empty() {
            self.model = response_model;
            self.admit(true);
            seat.slot = self.slot;
        }
        let upstream = &self.worker.plan.upstreams[self.upstream];
        let identity = Identity {
            upstream: Arc::clone(&upstream.name),
            provider: Arc::clone(&upstream.provider),
            dialect: self.dialect,
            model: if self.model.is_empty() { "_unknown".into() } else { self.model.as_str().into() },
            response_model: (!response_model.is_empty()).then(|| response_model.as_str().into()),
            started_unix_ns: self.started_unix_ns,
        };
        let record = meter.end(identity, close, left.mean_since(&self.entered), at);

        let mut observer = self.worker.observer.borrow_mut();
        let output = record.tokens.output();
        if output != self.live {
            let (more, owed) = (output.saturating_sub(self.live), self.live.saturating_sub(output));
            observer.live(self.slot, more, owed);
        }
        observer.end(self.slot, &record);
        seat.taken = false;
        observer.overhead(if self.streamed { "stream" } else { "body" }, self.overhead_ns);
        for (what, count) in
            [(Dropped::UsageRejected, u64::from(record.usage_rejected)), (Dropped::FrameUnparsed, unparsed)]
        {
            if count > 0 {
                observer.lose(what, count);
            }
        }
        if !self.worker.outbox.put(record) {
            observer.lose(Dropped::Record, 1);
        }
    }
}

/// The upstream's load cell. A thread that panicked while it held it cannot have left it half
/// changed in a way that matters: it is a few numbers.
fn load(worker: &Worker, upstream: usize) -> MutexGuard<'_, Load> {
    worker.loads[upstream].lock().unwrap_or_else(PoisonError::into_inner)
}

/// An exchange's place in the in-flight gauge: given back even if the meter fails at the end.
struct Seat {
    worker: Rc<Worker>,
    slot: ModelSlot,
    taken: bool,
}

impl Drop for Seat {
    fn drop(&mut self) {
        if self.taken
            && let Ok(mut observer) = self.worker.observer.try_borrow_mut()
        {
            observer.abandon(self.slot);
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        let close = if self.worker.cutting.get() { Close::Local } else { Close::ClientGone };
        self.end(close, clock::now());
    }
}
