//! The waker of a task that reads a body, and of the connection from which it reads.
//!
//! An engine's channel between connection and body wakes the connection whenever a frame is taken from it. Here, both
//! belong to the same task, so that wake would poll the whole client connection once more per frame, after the frame
//! was sent.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Wake, Waker};

/// Forwards wakes to a task, except those that arrive while the body is polled.
pub(crate) struct BodyWaker {
    state: Arc<State>,
    /// The same at every poll, so that engines need not clone it.
    waker: Waker,
    /// A copy of the task's waker, which is compared without the lock.
    task: RefCell<Waker>,
}

struct State {
    task: Mutex<Waker>,
    polling: AtomicBool,
    /// A wake arrived while the body was polled.
    woken: AtomicBool,
}

impl Wake for State {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.polling.load(Relaxed) {
            self.woken.store(true, Relaxed);
        } else {
            self.task.lock().unwrap_or_else(PoisonError::into_inner).wake_by_ref();
        }
    }
}

impl Default for BodyWaker {
    fn default() -> Self {
        let state = Arc::new(State {
            task: Mutex::new(Waker::noop().clone()),
            polling: AtomicBool::new(false),
            woken: AtomicBool::new(false),
        });
        Self { waker: Waker::from(Arc::clone(&state)), state, task: RefCell::new(Waker::noop().clone()) }
    }
}

impl BodyWaker {
    /// Wakes the task of `cx` from now on.
    pub(crate) fn follow(&self, cx: &Context<'_>) {
        self.set_task(cx.waker());
    }

    /// Wakes no task from now on.
    pub(crate) fn leave(&self) {
        self.set_task(Waker::noop());
    }

    fn set_task(&self, waker: &Waker) {
        let mut task = self.task.borrow_mut();
        if !task.will_wake(waker) {
            task.clone_from(waker);
            self.state.task.lock().unwrap_or_else(PoisonError::into_inner).clone_from(waker);
        }
    }

    /// Returns the waker with which the connection is driven.
    pub(crate) fn waker(&self) -> &Waker {
        &self.waker
    }

    /// Polls the body. Also returns whether a wake was withheld: then the connection can go on, and has to be driven
    /// again before the task waits.
    pub(crate) fn poll<T>(&self, poll: impl FnOnce() -> T) -> (T, bool) {
        // Relaxed suffices: the connection and its body belong to one task, whose thread makes these wakes.
        self.state.polling.store(true, Relaxed);
        let polled = poll();
        self.state.polling.store(false, Relaxed);
        (polled, self.state.woken.swap(false, Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::net::wake_count::WakeCount;

    #[test]
    fn wakes_pass_except_while_body_is_polled() {
        let tasks = [Arc::new(WakeCount::default()), Arc::new(WakeCount::default())];
        let counts = || tasks.each_ref().map(|task| task.get());
        let waker_of_body = BodyWaker::default();
        // Without a task.
        waker_of_body.waker().wake_by_ref();
        waker_of_body.follow(&Context::from_waker(&Waker::from(Arc::clone(&tasks[0]))));
        waker_of_body.waker().wake_by_ref();
        assert_eq!(counts(), [1, 0]);
        assert_eq!(waker_of_body.poll(|| waker_of_body.waker().wake_by_ref()), ((), true));
        assert_eq!(waker_of_body.poll(|| 7), (7, false));
        assert_eq!(counts(), [1, 0]);
        waker_of_body.follow(&Context::from_waker(&Waker::from(Arc::clone(&tasks[1]))));
        waker_of_body.waker().wake_by_ref();
        assert_eq!(counts(), [1, 1]);
        waker_of_body.leave();
        waker_of_body.waker().wake_by_ref();
        assert_eq!(counts(), [1, 1]);
    }
}
