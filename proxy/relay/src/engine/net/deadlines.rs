//! The deadlines of a client connection for its next request, and the worker's signal to end.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
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
    deadline: Deadline,
    /// The number of the last stage in which the connection released its buffers.
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
            deadline: Deadline::new(),
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
        let (stage, stage_number) = this.client.stage();
        let holds_buffers = *this.released_in != Some(stage_number)
            && !this.client.is_http2()
            && !this.client.writes.is_blocked();
        let (limit, due) = match stage {
            Stage::Busy => return Poll::Pending,
            Stage::Fresh if is_ordered => (limits::LAST_IDLE, Due::Cut),
            Stage::Idle if is_ordered => (limits::LAST_IDLE, Due::Leave),
            Stage::Idle if holds_buffers => (limits::RELEASE_AFTER, Due::Release),
            Stage::Idle => (limits::CLIENT_IDLE, Due::Leave),
            Stage::Fresh | Stage::Head => (this.worker.plan.head_timeout, Due::Cut),
        };
        ready!(this.deadline.poll(cx, stage_number, limit));
        Poll::Ready(match due {
            Due::Release => {
                *this.released_in = Some(stage_number);
                due
            }
            // A connection with an incomplete head is closed; an idle one ends gracefully first.
            Due::Leave if std::mem::replace(this.is_leaving, true) => Due::Cut,
            due => due,
        })
    }
}

/// The deadline of a stage. It begins anew if the limit of the stage changes: a connection may be blocked when it
/// becomes idle, and accept bytes again later.
#[pin_project::pin_project]
struct Deadline {
    #[pin]
    sleep: Sleep,
    /// The number of the stage, and its limit; `None` before the first deadline and after one has passed.
    of: Option<(u64, Duration)>,
}

impl Deadline {
    fn new() -> Self {
        Self { sleep: tokio::time::sleep(Duration::ZERO), of: None }
    }

    /// Ready once the stage has had this limit for the time of the limit. The next call begins another deadline.
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>, stage_number: u64, limit: Duration) -> Poll<()> {
        let mut this = self.project();
        if *this.of != Some((stage_number, limit)) {
            *this.of = Some((stage_number, limit));
            this.sleep.as_mut().reset(Instant::now() + limit);
        }
        ready!(this.sleep.poll(cx));
        *this.of = None;
        Poll::Ready(())
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::Waker;

    use tokio::time::advance;

    use super::*;

    #[test]
    fn deadline_begins_anew_with_its_limit() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.unwrap().block_on(async {
            let mut deadline = pin!(Deadline::new());
            let mut poll = |limit| deadline.as_mut().poll(&mut Context::from_waker(Waker::noop()), 1, limit);
            assert!(poll(limits::CLIENT_IDLE).is_pending());
            // The connection was blocked. It accepts bytes again, so another limit applies.
            advance(limits::CLIENT_IDLE / 2).await;
            assert!(poll(limits::RELEASE_AFTER).is_pending());
            advance(limits::RELEASE_AFTER).await;
            assert!(poll(limits::RELEASE_AFTER).is_ready());
            // From the release on, it is idle for the whole time.
            assert!(poll(limits::CLIENT_IDLE).is_pending());
            advance(limits::CLIENT_IDLE - limits::RELEASE_AFTER).await;
            assert!(poll(limits::CLIENT_IDLE).is_pending());
            advance(limits::RELEASE_AFTER).await;
            assert!(poll(limits::CLIENT_IDLE).is_ready());
        });
    }
}
