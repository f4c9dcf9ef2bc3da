//! Takes an exchange that ends out of the in-flight gauge, even if the meter fails at the end.

use std::rc::Rc;

use crate::ModelSlot;
use crate::state::WorkerState;

/// Takes an exchange out of the in-flight gauge when it is dropped, unless that was done.
pub(super) struct InFlightGuard {
    pub(super) worker: Rc<WorkerState>,
    pub(super) slot: ModelSlot,
    pub(super) taken: bool,
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        if self.taken
            && let Ok(mut observer) = self.worker.observer.try_borrow_mut()
        {
            observer.abandon(self.slot);
        }
    }
}
