//! A task of a worker. Each poll of it is a turn, and a panic ends this task only.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use crate::state::WorkerState;
use crate::{Dropped, clock};

/// A future whose polls are turns. If it panics, it has ended, and the panic is counted (law 3).
#[pin_project::pin_project]
pub(crate) struct Contained<F> {
    worker: Rc<WorkerState>,
    #[pin]
    task: F,
}

impl<F: Future<Output = ()>> Contained<F> {
    /// A task of this worker.
    pub(crate) fn new(worker: &Rc<WorkerState>, task: F) -> Self {
        Self { worker: Rc::clone(worker), task }
    }
}

impl<F: Future<Output = ()>> Future for Contained<F> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.project();
        clock::begin_turn();
        let polled = catch_unwind(AssertUnwindSafe(|| this.task.poll(cx))).unwrap_or_else(|_panic| {
            this.worker.dropped(Dropped::Panic);
            Poll::Ready(())
        });
        clock::end_turn();
        polled
    }
}
