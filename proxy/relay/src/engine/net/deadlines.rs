//! The deadlines of a client connection for its next request, and the worker's signal to end.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::sync::futures::OwnedNotified;
use tokio::time::{Instant, Sleep};

use super::client::{Client, Stage};
use crate::limits;
use crate::state::WorkerState;

/// The action that is due for a connection.
pub(crate) enum Due {
    /// Release the engine's buffers until the client sends its next request.
    Release,
    /// End after the current request.
    Leave,
    /// End now.
    Cut,
}

/// The deadlines of one connection, and the worker's signal to end. Each end is due once: first to end after the
/// current request, then, if the connection is still open, to be closed. An HTTP/1 connection releases its buffers once
/// after each request, when it has been idle for [`limits::RELEASE_AFTER`].
#[pin_project::pin_project]
pub(crate) struct Deadlines {
    worker: Rc<WorkerState>,
    client: Rc<Client>,
    #[pin]
    deadline: Sleep,
    /// The stage that the deadline belongs to, and true if the worker's signal was sent.
    turn: Option<(u64, bool)>,
    /// The last stage in which the connection released its buffers.
    released_in: Option<u64>,
    #[pin]
    leaving: OwnedNotified,
    is_listening: bool,
    is_leaving: bool,
}

impl Deadlines {
    /// The deadlines of a client connection of this worker.
    pub(crate) fn new(worker: &Rc<WorkerState>, client: &Rc<Client>) -> Self {
        Self {
            worker: Rc::clone(worker),
            client: Rc::clone(client),
            deadline: tokio::time::sleep(worker.plan.head_timeout),
            turn: None,
            released_in: None,
            leaving: worker.leaving.ordered(),
            is_listening: false,
            is_leaving: false,
        }
    }

    /// Ready when a connection without any request so far must end.
    pub(crate) fn poll_waiting(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.poll_due(cx).map(|_due| ())
    }

    /// Ready when the connection must end, after its request or now.
    pub(crate) fn poll_due(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Due> {
        let mut this = self.project();
        if !*this.is_listening {
            // One poll is enough: it wakes this task, and the worker's flag stays set.
            *this.is_listening = true;
            let _ = this.leaving.as_mut().poll(cx);
        }
        let is_ordered = this.worker.leaving.is_ordered();
        // HTTP/2 announces its end, so no request is lost. An HTTP/1 client may send its next one just now.
        if is_ordered && this.client.is_http2() && !*this.is_leaving {
            *this.is_leaving = true;
            return Poll::Ready(Due::Leave);
        }
        let (stage, turn) = this.client.stage();
        let holds_buffers =
            *this.released_in != Some(turn) && !this.client.is_http2() && !this.client.is_blocked();
        let limit: Duration = match stage {
            Stage::Busy => return Poll::Pending,
            Stage::Fresh | Stage::Idle if is_ordered => limits::LAST_IDLE,
            Stage::Idle if holds_buffers => limits::RELEASE_AFTER,
            Stage::Idle => limits::CLIENT_IDLE,
            Stage::Fresh | Stage::Head => this.worker.plan.head_timeout,
        };
        if *this.turn != Some((turn, is_ordered)) {
            *this.turn = Some((turn, is_ordered));
            this.deadline.as_mut().reset(Instant::now() + limit);
        }
        if this.deadline.as_mut().poll(cx).is_pending() {
            return Poll::Pending;
        }
        *this.turn = None;
        if stage == Stage::Idle && holds_buffers && !is_ordered {
            *this.released_in = Some(turn);
            return Poll::Ready(Due::Release);
        }
        // A connection with an incomplete head is closed; an idle one ends gracefully first.
        if stage == Stage::Idle && !*this.is_leaving {
            *this.is_leaving = true;
            return Poll::Ready(Due::Leave);
        }
        Poll::Ready(Due::Cut)
    }
}
