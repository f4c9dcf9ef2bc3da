//! A task that events of other tasks wake.

use std::cell::RefCell;
use std::task::Waker;

/// The task to wake, once it is known.
#[derive(Debug, Default)]
pub(crate) struct Task(RefCell<Option<Waker>>);

impl Task {
    /// Sets the task; it clones the waker only if it changes.
    pub(crate) fn set(&self, task: &Waker) {
        let mut known = self.0.borrow_mut();
        if !known.as_ref().is_some_and(|known| known.will_wake(task)) {
            *known = Some(task.clone());
        }
    }

    /// Wakes the task.
    pub(crate) fn wake(&self) {
        if let Some(task) = &*self.0.borrow() {
            task.wake_by_ref();
        }
    }
}
