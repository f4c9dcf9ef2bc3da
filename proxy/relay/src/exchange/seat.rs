//! The place of an exchange in the in-flight gauge.

use std::rc::Rc;

use crate::ModelSlot;
use crate::worker::Worker;

/// An exchange's place in the in-flight gauge: given back even if the meter fails at the end.
pub(super) struct Seat {
    pub(super) worker: Rc<Worker>,
    pub(super) slot: ModelSlot,
    pub(super) taken: bool,
}

impl Drop for Seat {
    fn drop(&mut self) {
        if self.taken
            && let Ok(mut observer) = self.worker.observer.try_borrow_mut()
        {
            observer.abandon(self.slot);
        }
    }
}
