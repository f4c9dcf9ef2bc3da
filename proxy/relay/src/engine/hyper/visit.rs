//! One request on its way: what its upload, its upstream connection and its response body share.
//! Its drop is the request's end, whichever way it ended.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use meter::{DEFAULT_TENANT, Tick};

use super::Engine;
use super::client::Client;
use super::pace::Pace;
use super::stream::Stream;
use crate::exchange::metered::Metered;
use crate::holder::{Holder, Key};
use crate::{Exchange, Refusal, UsageStep, clock};

/// How far the request body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Upload {
    /// More may come.
    Open,
    /// All of it was handed to the upstream connection.
    Complete(Tick),
    /// It broke off.
    Failed,
}

/// One request.
pub(super) struct Visit {
    pub(super) engine: Rc<Engine>,
    pub(super) client: Rc<Client>,
    pub(super) metered: RefCell<Metered>,
    pub(super) upload: Cell<Upload>,
    /// The last step taken about its usage.
    pub(super) usage_step: Cell<Option<UsageStep>>,
    /// Whether the client's socket carries this request alone.
    pub(super) alone: bool,
    /// The holder that is charged for what it takes; `None` is bound by no share.
    pub(super) holder: Option<Arc<Holder>>,
    /// Its stream, under HTTP/2.
    pub(super) stream: Option<Rc<Stream>>,
    pub(super) uploading: Pace,
    pub(super) downloading: Pace,
    /// True if its protocol lets the client be silent for any time, and its body is not gathered.
    may_pause: Cell<bool>,
    /// Its place among those that the sweep looks at.
    watched: Cell<Option<usize>>,
    /// Bytes of its body that are gathered, while more of them are awaited.
    pub(super) gathering: Cell<usize>,
    /// The upstream of which it has a connection.
    pub(super) carried: Cell<Option<usize>>,
    /// True once the head of its answer has come.
    pub(super) answering: Cell<bool>,
}

impl Visit {
    /// A request that begins. `may_pause`: its protocol lets the client be silent.
    pub(super) fn new(
        engine: &Rc<Engine>,
        client: &Rc<Client>,
        metered: Metered,
        alone: bool,
        may_pause: bool,
    ) -> Rc<Self> {
        engine.request_began();
        client.enter();
        if alone {
            // What the last response waited is not this one's.
            client.take_waited();
        }
        let tenant = || {
            let tenant = metered.exchange()?.tenant()?;
            (**tenant != *DEFAULT_TENANT).then(|| Key::Tenant(Arc::clone(tenant)))
        };
        let of_tenant = || Some(engine.worker.common.holders.of(tenant()?));
        Rc::new(Self {
            holder: client.holder.clone().or_else(of_tenant),
            stream: if alone { None } else { Stream::current() },
            uploading: Pace::default(),
            downloading: Pace::default(),
            may_pause: Cell::new(may_pause),
            watched: Cell::new(None),
            gathering: Cell::new(0),
            carried: Cell::new(None),
            answering: Cell::new(false),
            engine: Rc::clone(engine),
            client: Rc::clone(client),
            metered: RefCell::new(metered),
            upload: Cell::new(Upload::Open),
            usage_step: Cell::new(None),
            alone,
        })
    }

    /// Has the sweep look at it from now on.
    pub(super) fn watch(self: &Rc<Self>) {
        if self.watched.get().is_none() {
            self.watched.set(Some(self.engine.watched.add(Rc::downgrade(self))));
        }
    }

    /// The sweep need not look at it any more.
    pub(super) fn unwatch(&self) {
        if let Some(place) = self.watched.take() {
            self.engine.watched.remove(place);
        }
    }

    /// Returns true while more of the request is to come, and nothing of the answer has.
    pub(super) fn is_sending(&self) -> bool {
        self.upload.get() == Upload::Open && !self.answering.get()
    }

    /// Returns true if no limit is set to the silence of its client.
    pub(super) fn may_pause(&self) -> bool {
        self.may_pause.get()
    }

    /// Its body is gathered, which is bounded whatever its protocol.
    pub(super) fn must_not_pause(&self) {
        self.may_pause.set(false);
    }

    /// Ends the stream that carries it.
    pub(super) fn cut(&self) {
        if let Some(stream) = &self.stream {
            stream.cut();
        }
    }

    /// The request body was handed on to its end.
    pub(super) fn complete(&self, at: Tick) {
        self.upload.set(Upload::Complete(at));
        self.metered.borrow_mut().with(|exchange| exchange.request_complete(at));
    }

    pub(super) fn is_complete(&self) -> bool {
        matches!(self.upload.get(), Upload::Complete(_))
    }

    /// Counts what was done about its usage.
    pub(super) fn usage(&self, step: UsageStep) {
        self.usage_step.set(Some(step));
        self.engine.worker().usage(step);
    }

    /// Our own time on one step, since `from`.
    pub(super) fn spent(&self, from: Tick) {
        let mut metered = self.metered.borrow_mut();
        if metered.is_watching() {
            metered.with(|exchange| exchange.spent(clock::now().since(from)));
        }
    }

    /// Tells the exchange how long the client's socket held us up since the last call.
    pub(super) fn waited(&self) {
        if self.alone {
            let ns = self.client.take_waited();
            if ns > 0 {
                self.metered.borrow_mut().with(|exchange| exchange.client_waited(ns));
            }
        }
    }
}

impl Drop for Visit {
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
        self.engine.request_ended();
    }
}
