//! The times within which a client's connection has to bring its next request, and the worker's order to leave.

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

/// The action that a connection is due for.
pub(crate) enum Due {
    /// To end after the request it is at.
    Leave,
    /// To end.
    Cut,
}

/// The deadlines of one connection, and the worker's order to leave. Each is due once: first to
/// leave, then, if that did not end it, to be cut.
#[pin_project::pin_project]
pub(crate) struct Deadlines {
    worker: Rc<WorkerState>,
    client: Rc<Client>,
    #[pin]
    deadline: Sleep,
    /// The stage the deadline belongs to.
    turn: Option<u64>,
    #[pin]
    leaving: OwnedNotified,
    is_listening: bool,
    is_leaving: bool,
}

impl Deadlines {
    /// The deadlines of a client's connection to this worker.
    pub(crate) fn new(worker: &Rc<WorkerState>, client: &Rc<Client>) -> Self {
        Self {
            worker: Rc::clone(worker),
            client: Rc::clone(client),
            deadline: tokio::time::sleep(worker.plan.head_timeout),
            turn: None,
            leaving: worker.leaving.ordered(),
            is_listening: false,
            is_leaving: false,
        }
    }

    /// Ready when a connection that brought no request yet has to end.
    pub(crate) fn poll_waiting(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.poll_due(cx).map(|_due| ())
    }

    /// Ready when the connection has to leave or to end.
    pub(crate) fn poll_due(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Due> {
        let mut this = self.project();
        if !*this.is_listening {
            // Once is enough: it wakes this task, and the worker's flag stays set.
            *this.is_listening = true;
            let _ = this.leaving.as_mut().poll(cx);
        }
        if this.worker.leaving.is_ordered() && !*this.is_leaving {
            *this.is_leaving = true;
            return Poll::Ready(Due::Leave);
        }
        let (stage, turn) = this.client.stage();
        let limit: Duration = match stage {
            Stage::Busy => return Poll::Pending,
            Stage::Idle => limits::CLIENT_IDLE,
            Stage::Fresh | Stage::Head => this.worker.plan.head_timeout,
        };
        if *this.turn != Some(turn) {
            *this.turn = Some(turn);
            this.deadline.as_mut().reset(Instant::now() + limit);
        }
        if this.deadline.as_mut().poll(cx).is_pending() {
            return Poll::Pending;
        }
        *this.turn = None;
        // A head that does not come is cut; an idle connection is asked to leave first.
        if stage == Stage::Idle && !*this.is_leaving {
            *this.is_leaving = true;
            return Poll::Ready(Due::Leave);
        }
        Poll::Ready(Due::Cut)
    }
}
