//! The metering of one request, which may fail without an effect on traffic (law 3): a panic in it is counted and ends
//! it, and the bytes are forwarded unmetered.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use crate::state::WorkerState;
use crate::{Dropped, Metering, clock};

/// The metering of one request; empty if the request is not metered, or after a panic.
pub(crate) struct Metered {
    worker: Rc<WorkerState>,
    /// Boxed: it is large, and moves from one future to the next.
    metering: Option<Box<Metering>>,
}

impl Metered {
    /// Begins the metering of a request by `begin`.
    pub(crate) fn begin(worker: &Rc<WorkerState>, begin: impl FnOnce() -> Box<Metering>) -> Self {
        let begin = AssertUnwindSafe(begin);
        let metering = catch_unwind(begin).map_err(|_panic| worker.dropped(Dropped::Panic)).ok();
        Self { worker: Rc::clone(worker), metering }
    }

    /// The empty metering of a request that is forwarded unmetered.
    pub(crate) fn not(worker: &Rc<WorkerState>) -> Self {
        Self { worker: Rc::clone(worker), metering: None }
    }

    /// Returns the metering, if there is one.
    pub(crate) fn metering(&self) -> Option<&Metering> {
        self.metering.as_deref()
    }

    /// Returns true if the request is metered.
    pub(crate) fn is_watching(&self) -> bool {
        self.metering.is_some()
    }

    /// Calls `show` with the metering, if there is one. Returns the result, or `None` after a panic.
    pub(crate) fn with<R>(&mut self, show: impl FnOnce(&mut Metering) -> R) -> Option<R> {
        let metering = self.metering.as_mut()?;
        match catch_unwind(AssertUnwindSafe(|| show(metering))) {
            Ok(shown) => Some(shown),
            Err(_panic) => {
                self.worker.dropped(Dropped::Panic);
                if let Some(mut metering) = self.metering.take() {
                    // If this panics, too, the exchange has left the gauges before.
                    let _ = catch_unwind(AssertUnwindSafe(|| metering.meter_failed(clock::now())));
                }
                None
            }
        }
    }

    /// Ends the exchange, whose record is made of the facts so far.
    pub(crate) fn finish(&mut self) {
        let Some(metering) = self.metering.take() else { return };
        if catch_unwind(AssertUnwindSafe(|| drop(metering))).is_err() {
            self.worker.dropped(Dropped::Panic);
        }
    }
}

impl Drop for Metered {
    fn drop(&mut self) {
        self.finish();
    }
}
