//! An exchange that may fail without the traffic noticing (law 3): a panic in the meter drops the
//! exchange and is counted, and the bytes pass on unmetered.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use crate::state::WorkerState;
use crate::{Dropped, Metering, clock};

/// The exchange of one request, if it is metered and its meter still stands.
pub(crate) struct Metered {
    worker: Rc<WorkerState>,
    /// In its own allocation: it is moved from one future to the next, and is large.
    metering: Option<Box<Metering>>,
}

impl Metered {
    /// A request for an inference path begins: `begin` makes its exchange.
    pub(crate) fn begin(worker: &Rc<WorkerState>, begin: impl FnOnce() -> Metering) -> Self {
        let begin = AssertUnwindSafe(|| Box::new(begin()));
        let metering = catch_unwind(begin).map_err(|_panic| worker.dropped(Dropped::Panic)).ok();
        Self { worker: Rc::clone(worker), metering }
    }

    /// A request that passes unmetered.
    pub(crate) fn not(worker: &Rc<WorkerState>) -> Self {
        Self { worker: Rc::clone(worker), metering: None }
    }

    /// The exchange, if it is metered.
    pub(crate) fn metering(&self) -> Option<&Metering> {
        self.metering.as_deref()
    }

    /// Returns true if an exchange is shown what passes.
    pub(crate) fn is_watching(&self) -> bool {
        self.metering.is_some()
    }

    /// Shows the exchange something.
    pub(crate) fn with<R>(&mut self, show: impl FnOnce(&mut Metering) -> R) -> Option<R> {
        let metering = self.metering.as_mut()?;
        match catch_unwind(AssertUnwindSafe(|| show(metering))) {
            Ok(said) => Some(said),
            Err(_panic) => {
                self.worker.dropped(Dropped::Panic);
                if let Some(mut metering) = self.metering.take() {
                    // Should this fail too, the exchange's seat is given back all the same.
                    let _ = catch_unwind(AssertUnwindSafe(|| metering.meter_failed(clock::now())));
                }
                None
            }
        }
    }

    /// Lets go of the exchange: what it knows becomes its record.
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
