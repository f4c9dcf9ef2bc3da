//! The place of an exchange in the in-flight gauge.

use std::rc::Rc;

use crate::ModelSlot;
use crate::state::WorkerState;

/// An exchange's place in the in-flight gauge: given back even if the meter fails at the end.
pub(crate) struct InFlightGuard {
    pub(crate) worker: Rc<WorkerState>,
    pub(crate) slot: ModelSlot,
    pub(crate) taken: bool,
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
