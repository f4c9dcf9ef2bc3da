//! Removes an ending exchange from the in-flight gauge, even if the meter fails at the end.

use std::rc::Rc;

use crate::ModelSlot;
use crate::state::WorkerState;

/// Removes an exchange from the in-flight gauge when it is dropped.
pub(super) struct InFlightGuard {
    pub(super) worker: Rc<WorkerState>,
    pub(super) slot: ModelSlot,
    /// True while the exchange is in the gauge.
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
