//! A source of one event, which is polled again only after it has woken its task. A task polls all of its sources for
//! each frame of a stream, and most of them have nothing new.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll, Wake, Waker};

/// The waker of a source, which records whether the source must be polled.
pub(crate) struct Source {
    state: Arc<State>,
    waker: Waker,
}

struct State {
    /// True if the source was never polled, or has woken the task since its last poll.
    is_due: AtomicBool,
    task: Waker,
}

impl Wake for State {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_due.store(true, Relaxed);
        self.task.wake_by_ref();
    }
}

impl Source {
    /// Returns a source that wakes `task` for its whole life.
    pub(crate) fn new(task: Waker) -> Self {
        let state = Arc::new(State { is_due: AtomicBool::new(true), task });
        Self { waker: Waker::from(Arc::clone(&state)), state }
    }

    /// Calls `poll` if the source was never polled, or has woken the task since. `poll` must register the waker of its
    /// context, because nothing else leads to the next poll.
    pub(crate) fn poll<T>(&self, poll: impl FnOnce(&mut Context<'_>) -> Poll<T>) -> Poll<T> {
        if !self.state.is_due.swap(false, Relaxed) {
            return Poll::Pending;
        }
        poll(&mut Context::from_waker(&self.waker))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::net::wake_count::WakeCount;

    #[test]
    fn source_is_polled_once_for_each_wake() {
        let wakes = Arc::new(WakeCount::default());
        let source = Source::new(Waker::from(Arc::clone(&wakes)));
        let mut given = None;
        let pending = source.poll(|cx| {
            given = Some(cx.waker().clone());
            Poll::<()>::Pending
        });
        assert!(pending.is_pending());
        assert!(source.poll(|_| Poll::Ready(())).is_pending(), "it has not woken");
        given.expect("it was polled").wake();
        assert_eq!(wakes.get(), 1);
        assert_eq!(source.poll(|_| Poll::Ready(7)), Poll::Ready(7));
    }
}
