//! A source of one event, polled again only after it has woken its task: a task polls all of its sources for each frame
//! of a stream, and most of them have nothing new.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll, Wake, Waker};

/// Polls a source only if it may be ready.
pub(crate) struct Source {
    state: Arc<State>,
    waker: Waker,
}

struct State {
    /// True until the source is polled: it was never polled, or it has woken the task since.
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
    /// A source that wakes `task`, always the same.
    pub(crate) fn new(task: Waker) -> Self {
        let state = Arc::new(State { is_due: AtomicBool::new(true), task });
        Self { waker: Waker::from(Arc::clone(&state)), state }
    }

    /// Polls the source if it has woken the task since the last poll. It must keep the waker that it gets until then.
    pub(crate) fn poll<T>(&self, poll: impl FnOnce(&mut Context<'_>) -> Poll<T>) -> Poll<T> {
        if !self.state.is_due.swap(false, Relaxed) {
            return Poll::Pending;
        }
        poll(&mut Context::from_waker(&self.waker))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use super::*;

    #[derive(Default)]
    struct Count(AtomicU32);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Relaxed);
        }
    }

    #[test]
    fn source_is_polled_once_for_each_wake() {
        let wakes = Arc::new(Count::default());
        let source = Source::new(Waker::from(Arc::clone(&wakes)));
        let mut given = None;
        let pending = source.poll(|cx| {
            given = Some(cx.waker().clone());
            Poll::<()>::Pending
        });
        assert!(pending.is_pending());
        assert!(source.poll(|_| Poll::Ready(())).is_pending(), "it has not woken");
        given.expect("it was polled").wake();
        assert_eq!(wakes.0.load(Relaxed), 1);
        assert_eq!(source.poll(|_| Poll::Ready(7)), Poll::Ready(7));
    }
}
