//! One request in flight: the state that its decisions, its pump and the sweep share. Its drop is the end of the request,
//! whatever the outcome.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use meter::{DEFAULT_TENANT, Tick};

use crate::claims::Progress;
use crate::conn::client::Client;
use crate::conn::pace::Pace;
use crate::conn::stream::Stream;
use crate::holder::{Holder, Key};
use crate::metering::metered::Metered;
use crate::state::WorkerState;
use crate::watched::Watched;
use crate::{Metering, Refusal, clock, limits};

/// The phase of a request: the event for which the proxy waits.
#[derive(Clone, Copy, Debug)]
enum Phase {
    /// The rest of its body is expected, and no response has begun.
    Uploading {
        /// True if its protocol lets the client be silent for any time, and it is not buffered.
        may_pause: bool,
        /// Its bytes that are buffered because a decision depends on all of it.
        gathered_bytes: usize,
    },
    /// Its body has ended, and no response has begun.
    Waiting(UploadEnd),
    /// Its response has begun. `None`: its body has not ended.
    Answering(Option<UploadEnd>),
}

/// The end of a request body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UploadEnd {
    /// All of it was received, at this tick.
    Complete(Tick),
    /// It is truncated, or invalid.
    Failed,
}

/// The connection to the upstream that a request has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Carrier {
    None,
    /// A stream of a connection that others share.
    Stream,
    /// A connection of its own.
    Socket,
}

/// One request.
pub(crate) struct InFlight {
    pub(crate) worker: Rc<WorkerState>,
    /// The index of its upstream in the plan.
    pub(crate) upstream: usize,
    // What each frame uses stands together.
    pub(crate) client: Rc<Client>,
    pub(crate) metered: RefCell<Metered>,
    /// Its stream, if the client uses HTTP/2; with HTTP/1.1, the client's socket carries this request alone.
    pub(crate) stream: Option<Rc<Stream>>,
    phase: Cell<Phase>,
    /// The holder that is charged for its resources; without one, no share limits it.
    pub(crate) holder: Option<Arc<Holder>>,
    /// The speed at which its client sends its body.
    pub(crate) uploading: Pace,
    watched: Rc<Watched<Self>>,
    /// Its index among the requests that the sweep checks.
    watched_at: Cell<Option<usize>>,
    pub(crate) carrier: Cell<Carrier>,
}

impl InFlight {
    /// Starts a request. `may_pause`: its protocol lets the client be silent.
    pub(crate) fn new(
        (worker, watched): (&Rc<WorkerState>, &Rc<Watched<Self>>),
        upstream: usize,
        client: &Rc<Client>,
        metered: Metered,
        (is_http1, may_pause): (bool, bool),
    ) -> Rc<Self> {
        worker.in_flight.fetch_add(1, Ordering::Relaxed);
        client.enter();
        if is_http1 {
            // The wait of the previous response does not belong to this one.
            client.writes.take_waited();
        }
        let tenant = || {
            let tenant = metered.metering()?.exchange.tenant()?;
            (**tenant != *DEFAULT_TENANT).then(|| Key::Tenant(Arc::clone(tenant)))
        };
        let of_tenant = || Some(worker.capacities.holders.of(tenant()?));
        Rc::new(Self {
            holder: client.holder().or_else(of_tenant),
            stream: if is_http1 { None } else { Stream::current() },
            uploading: Pace::default(),
            watched: Rc::clone(watched),
            watched_at: Cell::new(None),
            carrier: Cell::new(Carrier::None),
            worker: Rc::clone(worker),
            upstream,
            client: Rc::clone(client),
            metered: RefCell::new(metered),
            phase: Cell::new(Phase::Uploading { may_pause, gathered_bytes: 0 }),
        })
    }

    /// The name of its upstream.
    pub(crate) fn upstream_name(&self) -> &Arc<str> {
        &self.worker.plan.upstreams[self.upstream].name
    }

    /// Calls `show` with its metering, if it is metered. Returns the result, or `None` after a panic.
    pub(crate) fn meter<R>(&self, show: impl FnOnce(&mut Metering) -> R) -> Option<R> {
        self.metered.borrow_mut().with(show)
    }

    /// Adds it to the requests that the sweep checks.
    pub(crate) fn watch(self: &Rc<Self>) {
        if self.watched_at.get().is_none() {
            self.watched_at.set(Some(self.watched.add(Rc::downgrade(self))));
        }
    }

    /// Removes it from the requests that the sweep checks.
    pub(crate) fn unwatch(&self) {
        if let Some(place) = self.watched_at.take() {
            self.watched.remove(place);
        }
    }

    /// Returns true if the client uses HTTP/1.1 or HTTP/1.0: its socket carries this request alone.
    pub(crate) fn is_http1(&self) -> bool {
        self.stream.is_none()
    }

    /// Returns true while the request is incomplete and there is no answer yet.
    pub(crate) fn is_sending(&self) -> bool {
        matches!(self.phase.get(), Phase::Uploading { .. })
    }

    /// Returns true once its response has begun.
    pub(crate) fn is_answering(&self) -> bool {
        matches!(self.phase.get(), Phase::Answering(_))
    }

    /// Records that its response begins.
    pub(crate) fn answer(&self) {
        self.phase.set(Phase::Answering(self.upload_end()));
    }

    /// The pause between two attempts to reserve capacity: a connection with many requests leaves it to others.
    pub(crate) fn retry_pause(&self) -> Duration {
        let requests = u32::try_from(self.client.requests()).unwrap_or(u32::MAX);
        limits::CAPACITY_RETRY_PAUSE.saturating_mul(requests).min(limits::PLACE_PAUSE_MAX)
    }

    /// The progress of its client: with its upload, then with its response.
    pub(crate) fn progress(&self) -> Progress {
        match self.phase.get() {
            Phase::Uploading { .. } => self.uploading.progress(),
            Phase::Waiting(_) => Progress::Flowing,
            Phase::Answering(_) => self.downloading().progress(),
        }
    }

    /// The speed at which its client takes its response: that of its stream, or of the socket.
    pub(crate) fn downloading(&self) -> &Pace {
        self.stream.as_ref().map_or(&self.client.writes.taking, |stream| &stream.taking)
    }

    /// Returns true if its client may be silent without limit.
    pub(crate) fn may_pause(&self) -> bool {
        matches!(self.phase.get(), Phase::Uploading { may_pause: true, .. })
    }

    /// Returns the bytes of its body that are buffered, while more are expected.
    pub(crate) fn gathered_bytes(&self) -> usize {
        match self.phase.get() {
            Phase::Uploading { gathered_bytes, .. } => gathered_bytes,
            Phase::Waiting(_) | Phase::Answering(_) => 0,
        }
    }

    /// Records that so many bytes of its body are buffered. The time for that is limited for any protocol.
    pub(crate) fn gather(&self, gathered_bytes: usize) {
        if self.is_sending() {
            self.phase.set(Phase::Uploading { may_pause: false, gathered_bytes });
        }
    }

    /// Records that the whole request body was received.
    pub(crate) fn complete(&self, at: Tick) {
        self.end_upload(UploadEnd::Complete(at));
        self.meter(|metering| metering.request_complete(at));
    }

    /// Records that the request body ended before it was complete.
    pub(crate) fn fail_upload(&self) {
        self.end_upload(UploadEnd::Failed);
    }

    fn end_upload(&self, end: UploadEnd) {
        self.phase.set(match self.phase.get() {
            Phase::Uploading { .. } | Phase::Waiting(_) => Phase::Waiting(end),
            Phase::Answering(_) => Phase::Answering(Some(end)),
        });
    }

    fn upload_end(&self) -> Option<UploadEnd> {
        match self.phase.get() {
            Phase::Uploading { .. } => None,
            Phase::Waiting(end) => Some(end),
            Phase::Answering(end) => end,
        }
    }

    /// Returns true if the whole request body was received.
    pub(crate) fn is_complete(&self) -> bool {
        self.completed_at().is_some()
    }

    /// The tick at which the whole request body was received.
    pub(crate) fn completed_at(&self) -> Option<Tick> {
        match self.upload_end()? {
            UploadEnd::Complete(at) => Some(at),
            UploadEnd::Failed => None,
        }
    }

    /// Returns true if the request body ended before it was complete.
    pub(crate) fn has_failed(&self) -> bool {
        self.upload_end() == Some(UploadEnd::Failed)
    }

    /// Adds the proxy's own time for one step, since `from`.
    pub(crate) fn spent(&self, from: Tick) {
        self.meter(|metering| metering.spent(clock::read().since(from)));
    }

    /// Reports to the exchange how long the client's socket made the proxy wait since the last call.
    pub(crate) fn waited(&self) {
        if self.is_http1() {
            let ns = self.client.writes.take_waited();
            if ns > 0 {
                self.meter(|metering| metering.exchange.add_client_wait(ns));
            }
        }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.unwatch();
        self.waited();
        if self.uploading.is_over() && self.is_sending() {
            // Its connection was closed to make place for another; its client did not leave.
            let ended = |metering: &mut Metering| {
                metering.answered_locally(Refusal::UpstreamFull, 503, clock::now());
            };
            self.meter(ended);
        }
        if !self.is_complete() {
            self.client.leave_unread();
        }
        self.client.leave();
        self.worker.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}
