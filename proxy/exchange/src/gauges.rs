//! The gauges in which an exchange counts until its end: the in-flight gauge and the live counter by model, and the load
//! of its upstream.

use meter::{Load, LoadReading, LoadSpan, ModelSlot, Observer, Record, Tick};

use crate::names::recorded;

/// The part of an exchange in the gauges. The caller passes the observer and the load cell of its own thread or lock.
pub struct Gauges {
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
    /// That of unknown models, or of a model that the response contradicts.
    Provisional,
    /// That of its model.
    Admitted,
}

impl Gauges {
    /// Counts an exchange that begins.
    pub fn enter(observer: &mut dyn Observer, load: &mut Load, at: Tick) -> Self {
        let slot = observer.unknown_model();
        observer.begin(slot);
        Self { slot, label: Label::Provisional, has_left: false, entered: load.enter(at), live: 0 }
    }

    /// The slot of its label.
    pub fn slot(&self) -> ModelSlot {
        self.slot
    }

    /// Labels the exchange with its model, once. A name becomes a label once a server has accepted it;
    /// before, only a known one does, so that no client can fill the labels with noise.
    pub fn admit(&mut self, observer: &mut dyn Observer, model: &str, is_accepted: bool) {
        if self.label == Label::Admitted || model.is_empty() {
            return;
        }
        let name = recorded(model);
        let slot = if is_accepted { Some(observer.model(name)) } else { observer.known_model(name) };
        if let Some(slot) = slot {
            observer.admit(self.slot, slot);
            (self.slot, self.label) = (slot, Label::Admitted);
        }
    }

    /// Returns true if the exchange has the label of its model.
    #[inline]
    pub fn is_admitted(&self) -> bool {
        self.label == Label::Admitted
    }

    /// Records that the response names another model.
    pub fn unlabel(&mut self) {
        self.label = Label::Provisional;
    }

    /// Records that `output` tokens were generated so far. Returns those that the live counter lacks, for the
    /// caller to add; `None` if there are none.
    #[inline]
    pub fn raise_live(&mut self, output: u64) -> Option<u64> {
        let more = output.checked_sub(self.live).filter(|more| *more > 0)?;
        self.live = output;
        Some(more)
    }

    /// Corrects the live counter by the count of the record.
    pub fn settle_live(&self, observer: &mut dyn Observer, record: &Record) {
        let output = if record.identity.role.is_counted() { record.tokens.output() } else { 0 };
        if output != self.live {
            let (more, overcounted) = (output.saturating_sub(self.live), self.live.saturating_sub(output));
            observer.live(self.slot, more, overcounted);
        }
    }

    /// Removes an exchange without a record from the in-flight gauge and from the live counter.
    pub fn abandon(&self, observer: &mut dyn Observer) {
        if self.live > 0 {
            observer.live(self.slot, 0, self.live);
        }
        observer.abandon(self.slot);
    }

    /// Leaves the upstream's load, once. `None` if it has left.
    pub fn leave(&mut self, load: &mut Load, at: Tick) -> Option<LoadSpan> {
        if std::mem::replace(&mut self.has_left, true) {
            return None;
        }
        Some(LoadSpan { entered: self.entered, left: load.leave(at, &self.entered) })
    }
}
