//! The deadlines of a client's HTTP/2 connection for its next request, and the worker's signal to end.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::sync::futures::OwnedNotified;
use tokio::time::{Instant, Sleep};

use crate::conn::client::{Client, Stage};
use crate::limits;
use crate::state::WorkerState;

/// The action that is due for a connection.
pub(super) enum Due {
    /// End after the current requests.
    Leave,
    /// End now.
    Cut,
}

/// The deadlines of one connection, and the worker's signal to end. Each end is due once: first to end after the
/// current requests, then, if the connection is still open, to be closed.
#[pin_project::pin_project]
pub(super) struct Deadlines {
    worker: Rc<WorkerState>,
    client: Rc<Client>,
    #[pin]
    deadline: Deadline,
    #[pin]
    leaving: OwnedNotified,
    is_listening: bool,
    is_leaving: bool,
}

impl Deadlines {
    /// The deadlines of a client connection of this worker.
    pub(super) fn new(worker: &Rc<WorkerState>, client: &Rc<Client>) -> Self {
        Self {
            worker: Rc::clone(worker),
            client: Rc::clone(client),
            deadline: Deadline::new(),
            leaving: worker.leaving.ordered(),
            is_listening: false,
            is_leaving: false,
        }
    }

    /// Ready when the connection must end, after its requests or now.
    pub(super) fn poll_due(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Due> {
        let mut this = self.project();
        if !*this.is_listening {
            // One poll is enough: it wakes this task, and the worker's flag stays set.
            *this.is_listening = true;
            let _ = this.leaving.as_mut().poll(cx);
        }
        let is_ordered = this.worker.leaving.is_ordered();
        // The end is announced, so no request is lost.
        if is_ordered && !std::mem::replace(this.is_leaving, true) {
            return Poll::Ready(Due::Leave);
        }
        let (stage, stage_number) = this.client.stage();
        let (limit, due) = match stage {
            Stage::Busy | Stage::Ended => return Poll::Pending,
            Stage::Fresh | Stage::Idle if is_ordered => (limits::LAST_IDLE, Due::Cut),
            Stage::Idle => (limits::CLIENT_IDLE, Due::Leave),
            Stage::Fresh | Stage::Head => (this.worker.plan.head_timeout, Due::Cut),
        };
        ready!(this.deadline.poll(cx, stage_number, limit));
        Poll::Ready(match due {
            // An idle connection ends gracefully first.
            Due::Leave if std::mem::replace(this.is_leaving, true) => Due::Cut,
            due => due,
        })
    }
}

/// The deadline of a stage. It begins anew if the limit of the stage changes: the worker may end while a connection is
/// idle.
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
            advance(limits::CLIENT_IDLE - limits::LAST_IDLE).await;
            assert!(poll(limits::CLIENT_IDLE).is_pending());
            // The worker ends, so another limit applies.
            assert!(poll(limits::LAST_IDLE).is_pending());
            advance(limits::LAST_IDLE).await;
            assert!(poll(limits::LAST_IDLE).is_ready());
            // Afterwards, it is another deadline.
            assert!(poll(limits::LAST_IDLE).is_pending());
        });
    }
}
