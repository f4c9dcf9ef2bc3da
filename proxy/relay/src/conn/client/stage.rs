//! The stage of a client connection, and the requests in flight on it.

use std::task::{Context, Poll};

use meter::Tick;
use tokio::task::AbortHandle;

use super::Client;
use crate::clock;

/// The stage of a connection: the event it waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Its first request.
    Fresh,
    /// Its next request.
    Idle,
    /// The rest of a head whose first bytes arrived.
    Head,
    /// The end of at least one request.
    Busy,
    /// Its end: no further request is read.
    Ended,
}

/// The stage of one connection.
#[derive(Clone, Copy)]
pub(super) struct Stages {
    stage: Stage,
    since: Tick,
    requests: usize,
    /// Under HTTP/2 bytes may arrive without a request after them.
    is_http2: bool,
    /// True once the end of the connection is to be announced.
    is_leaving: bool,
}

impl Stages {
    /// The stage of a new connection.
    pub(super) fn new(at: Tick) -> Self {
        Self { stage: Stage::Fresh, since: at, requests: 0, is_http2: false, is_leaving: false }
    }

    fn set(&mut self, stage: Stage) {
        *self = Self { stage, since: clock::now(), ..*self };
    }
}

impl Client {
    /// Records that a request begins.
    pub(crate) fn enter(&self) {
        self.change(|stages| {
            stages.requests += 1;
            stages.set(Stage::Busy);
        });
    }

    /// Records that a request ended.
    pub(crate) fn leave(&self) {
        self.change(|stages| {
            stages.requests -= 1;
            if stages.requests == 0 && stages.stage == Stage::Busy {
                stages.set(Stage::Idle);
            }
        });
    }

    /// Records that no further request is read.
    pub(crate) fn end(&self) {
        self.change(|stages| stages.set(Stage::Ended));
    }

    /// Ends the connection, which this task serves, at once. Its requests that have not begun never do.
    pub(crate) fn cut(&self, task: &AbortHandle) {
        self.end();
        task.abort();
    }

    /// Begins the stage of the next head, if the connection was idle.
    pub(super) fn begin_head(&self) {
        let Stages { stage, is_http2, .. } = self.stages.get();
        if stage == Stage::Idle && !is_http2 {
            self.change(|stages| stages.set(Stage::Head));
        }
    }

    /// Records whether the client uses HTTP/2.
    pub(super) fn set_http2(&self, is_http2: bool) {
        self.change(|stages| stages.is_http2 = is_http2);
    }

    fn change(&self, change: impl FnOnce(&mut Stages)) {
        let mut stages = self.stages.get();
        change(&mut stages);
        self.stages.set(stages);
    }

    /// The number of requests in flight on it.
    pub(crate) fn requests(&self) -> usize {
        self.stages.get().requests
    }

    /// Returns true once the client has spoken HTTP/2.
    pub(crate) fn is_http2(&self) -> bool {
        self.stages.get().is_http2
    }

    /// Wakes the task of a connection whose protocol can announce its end, HTTP/2 or a session, for that. If the connection
    /// is idle, its time begins anew. Returns false if the task was woken before.
    pub(crate) fn announce_end(&self) -> bool {
        let Stages { stage, is_leaving, .. } = self.stages.get();
        if is_leaving {
            return false;
        }
        self.change(|stages| {
            stages.is_leaving = true;
            if stage == Stage::Idle {
                stages.set(stage);
            }
        });
        self.task.wake();
        true
    }

    /// Ready once the end of the connection is to be announced.
    pub(crate) fn poll_leaving(&self, cx: &mut Context<'_>) -> Poll<()> {
        if self.stages.get().is_leaving {
            return Poll::Ready(());
        }
        self.task.set(cx.waker());
        Poll::Pending
    }

    /// Returns the stage.
    pub(crate) fn stage(&self) -> Stage {
        self.stages.get().stage
    }

    /// The tick at which its stage began.
    pub(crate) fn since(&self) -> Tick {
        self.stages.get().since
    }
}
