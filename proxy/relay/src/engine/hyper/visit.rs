//! One request on its way: what its upload, its upstream connection and its response body share.
//! Its drop is the request's end, whichever way it ended.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use meter::Tick;

use super::Engine;
use super::client::Client;
use crate::clock;
use crate::metered::Metered;

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
    /// Whether the client's socket carries this request alone.
    pub(super) alone: bool,
}

impl Visit {
    pub(super) fn new(engine: &Rc<Engine>, client: &Rc<Client>, metered: Metered, alone: bool) -> Rc<Self> {
        engine.request_began();
        client.enter();
        if alone {
            // What the last response waited is not this one's.
            client.take_waited();
        }
        Rc::new(Self {
            engine: Rc::clone(engine),
            client: Rc::clone(client),
            metered: RefCell::new(metered),
            upload: Cell::new(Upload::Open),
            alone,
        })
    }

    /// The request body was handed on to its end.
    pub(super) fn complete(&self, at: Tick) {
        self.upload.set(Upload::Complete(at));
        self.metered.borrow_mut().with(|exchange| exchange.request_complete(at));
    }

    pub(super) fn is_complete(&self) -> bool {
        matches!(self.upload.get(), Upload::Complete(_))
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
        self.waited();
        if !self.is_complete() {
            self.client.leave_unread();
        }
        self.client.leave();
        self.engine.request_ended();
    }
}
