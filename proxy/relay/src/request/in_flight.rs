//! One request on its way: what its upload, its upstream connection and its response body share.
//! Its drop is the request's end, whichever way it ended.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use meter::{DEFAULT_TENANT, Tick};

use crate::engine::net::client::Client;
use crate::engine::net::pace::Pace;
use crate::engine::net::stream::Stream;
use crate::exchange::metered::Metered;
use crate::holder::{Holder, Key};
use crate::state::WorkerState;
use crate::watched::Watched;
use crate::{Exchange, Refusal, UsageStep, clock};

/// The state of a request body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UploadState {
    /// More may come.
    Open,
    /// All of it was handed to the upstream connection.
    Complete(Tick),
    /// It broke off.
    Failed,
}

/// One request.
pub(crate) struct InFlight {
    pub(crate) worker: Rc<WorkerState>,
    /// Its upstream's index in the plan.
    pub(crate) upstream: usize,
    pub(crate) client: Rc<Client>,
    pub(crate) metered: RefCell<Metered>,
    pub(crate) upload: Cell<UploadState>,
    /// The last step taken about its usage.
    pub(crate) usage_step: Cell<Option<UsageStep>>,
    /// True if the client speaks HTTP/1: its socket carries this request alone.
    pub(crate) is_http1: bool,
    /// The holder that is charged for what it takes; `None` is bound by no share.
    pub(crate) holder: Option<Arc<Holder>>,
    /// Its stream, under HTTP/2.
    pub(crate) stream: Option<Rc<Stream>>,
    pub(crate) uploading: Pace,
    pub(crate) downloading: Pace,
    /// True if its protocol lets the client be silent for any time, and its body is not gathered.
    may_pause: Cell<bool>,
    watched: Rc<Watched<Self>>,
    /// Its place among those that the sweep looks at.
    watched_at: Cell<Option<usize>>,
    /// Bytes of its body that are gathered, while more of them are awaited.
    pub(crate) gathering: Cell<usize>,
    /// True once it has a connection to its upstream.
    pub(crate) is_carried: Cell<bool>,
    /// True once the head of its answer has come.
    pub(crate) answering: Cell<bool>,
}

impl InFlight {
    /// A request that begins. `may_pause`: its protocol lets the client be silent.
    pub(crate) fn new(
        (worker, watched): (&Rc<WorkerState>, &Rc<Watched<Self>>),
        upstream: usize,
        client: &Rc<Client>,
        metered: Metered,
        (is_http1, may_pause): (bool, bool),
    ) -> Rc<Self> {
        worker.request_began();
        client.enter();
        if is_http1 {
            // The time that the last response waited is not this one's.
            client.take_waited();
        }
        let tenant = || {
            let tenant = metered.exchange()?.tenant()?;
            (**tenant != *DEFAULT_TENANT).then(|| Key::Tenant(Arc::clone(tenant)))
        };
        let of_tenant = || Some(worker.capacities.holders.of(tenant()?));
        Rc::new(Self {
            holder: client.holder.clone().or_else(of_tenant),
            stream: if is_http1 { None } else { Stream::current() },
            uploading: Pace::default(),
            downloading: Pace::default(),
            may_pause: Cell::new(may_pause),
            watched: Rc::clone(watched),
            watched_at: Cell::new(None),
            gathering: Cell::new(0),
            is_carried: Cell::new(false),
            answering: Cell::new(false),
            worker: Rc::clone(worker),
            upstream,
            client: Rc::clone(client),
            metered: RefCell::new(metered),
            upload: Cell::new(UploadState::Open),
            usage_step: Cell::new(None),
            is_http1,
        })
    }

    /// The name of its upstream.
    pub(crate) fn upstream_name(&self) -> &Arc<str> {
        &self.worker.plan.upstreams[self.upstream].name
    }

    /// Has the sweep look at it from now on.
    pub(crate) fn watch(self: &Rc<Self>) {
        if self.watched_at.get().is_none() {
            self.watched_at.set(Some(self.watched.add(Rc::downgrade(self))));
        }
    }

    /// The sweep need not look at it any more.
    pub(crate) fn unwatch(&self) {
        if let Some(place) = self.watched_at.take() {
            self.watched.remove(place);
        }
    }

    /// Returns true while more of the request is to come, and nothing of the answer has.
    pub(crate) fn is_sending(&self) -> bool {
        self.upload.get() == UploadState::Open && !self.answering.get()
    }

    /// Returns true if no limit is set to the silence of its client.
    pub(crate) fn may_pause(&self) -> bool {
        self.may_pause.get()
    }

    /// Its body is gathered, which is bounded whatever its protocol.
    pub(crate) fn must_not_pause(&self) {
        self.may_pause.set(false);
    }

    /// Ends the stream that carries it.
    pub(crate) fn cut(&self) {
        if let Some(stream) = &self.stream {
            stream.cut();
        }
    }

    /// The request body was handed on to its end.
    pub(crate) fn complete(&self, at: Tick) {
        self.upload.set(UploadState::Complete(at));
        self.metered.borrow_mut().with(|exchange| exchange.request_complete(at));
    }

    pub(crate) fn is_complete(&self) -> bool {
        matches!(self.upload.get(), UploadState::Complete(_))
    }

    /// Counts what was done about its usage.
    pub(crate) fn usage(&self, step: UsageStep) {
        self.usage_step.set(Some(step));
        self.worker.usage(step);
    }

    /// Our own time on one step, since `from`.
    pub(crate) fn spent(&self, from: Tick) {
        let mut metered = self.metered.borrow_mut();
        if metered.is_watching() {
            metered.with(|exchange| exchange.spent(clock::now().since(from)));
        }
    }

    /// Tells the exchange how long the client's socket held us up since the last call.
    pub(crate) fn waited(&self) {
        if self.is_http1 {
            let ns = self.client.take_waited();
            if ns > 0 {
                self.metered.borrow_mut().with(|exchange| exchange.add_client_wait(ns));
            }
        }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.unwatch();
        self.waited();
        if self.uploading.is_over() && self.is_sending() {
            // Its connection was ended for another one, which is not its client's leaving.
            let ended = |exchange: &mut Exchange| {
                exchange.answered_locally(Refusal::UpstreamFull, 503, clock::now());
            };
            self.metered.borrow_mut().with(ended);
        }
        if !self.is_complete() {
            self.client.leave_unread();
        }
        self.client.leave();
        self.worker.request_ended();
    }
}
