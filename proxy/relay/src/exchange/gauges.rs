//! The gauges in which an exchange counts until its end: the worker's, by model, and the load of its upstream.

use std::rc::Rc;
use std::sync::{MutexGuard, PoisonError};

use exchange::recorded;
use meter::{Load, LoadReading, LoadSpan, Tick};

use crate::state::WorkerState;
use crate::{ModelSlot, Observer};

/// The part of an exchange in the gauges.
pub(super) struct Gauges {
    /// The slot of its label.
    slot: ModelSlot,
    label: Label,
    /// True once it has left the upstream's load.
    has_left: bool,
    /// The upstream's load at the begin.
    entered: LoadReading,
    /// Output tokens given to the live counter.
    live: u64,
}

/// The label by which an exchange is counted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Label {
    /// That of unknown models, or of another one than the exchange turned out to have.
    Provisional,
    /// That of its model.
    Admitted,
}

impl Gauges {
    /// Counts an exchange that begins on `upstream`.
    pub(super) fn enter(worker: &WorkerState, upstream: usize, at: Tick) -> Self {
        let slot = {
            let mut observer = worker.observer.borrow_mut();
            let slot = observer.unknown_model();
            observer.begin(slot);
            slot
        };
        let entered = load(worker, upstream).enter(at);
        Self { slot, label: Label::Provisional, has_left: false, entered, live: 0 }
    }

    /// The slot of its label.
    pub(super) fn slot(&self) -> ModelSlot {
        self.slot
    }

    /// Labels the exchange with its model, if it is not. A name becomes a label once a server has accepted it;
    /// before, only a known one does, so that no client can fill the labels with noise.
    pub(super) fn admit(&mut self, worker: &WorkerState, model: &str, is_accepted: bool) {
        if self.label == Label::Admitted || model.is_empty() {
            return;
        }
        let mut observer = worker.observer.borrow_mut();
        let name = recorded(model);
        let slot = if is_accepted { Some(observer.model(name)) } else { observer.known_model(name) };
        if let Some(slot) = slot {
            observer.admit(self.slot, slot);
            (self.slot, self.label) = (slot, Label::Admitted);
        }
    }

    /// The model turned out to be another one.
    pub(super) fn unlabel(&mut self) {
        self.label = Label::Provisional;
    }

    /// Gives the live counter the output up to `output`.
    pub(super) fn raise_live(&mut self, worker: &WorkerState, output: u64) {
        if output > self.live {
            worker.observer.borrow_mut().live(self.slot(), output - self.live, 0);
            self.live = output;
        }
    }

    /// Corrects the live counter by the final `output`.
    pub(super) fn settle_live(&self, observer: &mut dyn Observer, output: u64) {
        if output != self.live {
            let (more, overcounted) = (output.saturating_sub(self.live), self.live.saturating_sub(output));
            observer.live(self.slot(), more, overcounted);
        }
    }

    /// Leaves the upstream's load, once. `None` if it has left.
    pub(super) fn leave(&mut self, worker: &WorkerState, upstream: usize, at: Tick) -> Option<LoadSpan> {
        if std::mem::replace(&mut self.has_left, true) {
            return None;
        }
        Some(LoadSpan { entered: self.entered, left: load(worker, upstream).leave(at, &self.entered) })
    }
}

/// The upstream's load cell. A thread that panicked while it held it cannot have left it half
/// changed in a way that matters: it is a few numbers.
fn load(worker: &WorkerState, upstream: usize) -> MutexGuard<'_, Load> {
    worker.loads[upstream].lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes an exchange that ends out of the in-flight gauge, even if the meter fails at the end.
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
