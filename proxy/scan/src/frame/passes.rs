//! The passes of an answer that needed several (`usage.iterations` of Anthropic): compaction of the context, advice of
//! another model, an attempt of each model. The numbers beside the list may leave passes out.

use crate::counts::{Count, Counts};
use crate::frame::usage::merged;
use crate::json::Value;

/// The counts of the passes so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Passes {
    /// The type of the current one.
    kind: PassKind,
    /// The attempts to answer, unless a later one of another model replaced them.
    attempts: Counts,
    /// The others.
    others: Counts,
}

/// The type of a pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum PassKind {
    /// An attempt to answer. With a fallback after it, the model declined, and the attempt is not billed.
    Attempt,
    /// The attempt of the model to which the request fell back.
    Fallback,
    #[default]
    Other,
}

impl Passes {
    /// Begins a pass.
    pub(crate) fn begin(&mut self) {
        self.kind = PassKind::default();
    }

    /// Reads the type of the current pass.
    pub(crate) fn take_type(&mut self, value: Value<'_>) {
        self.kind = match value {
            Value::Word(b"message") => PassKind::Attempt,
            Value::Word(b"fallback_message") => PassKind::Fallback,
            _ => PassKind::Other,
        };
    }

    /// Ends the current pass, which has these counts.
    pub(crate) fn end(&mut self, counts: &Counts) {
        match self.kind {
            PassKind::Attempt => self.attempts = added(&self.attempts, counts),
            PassKind::Fallback => {
                self.attempts = Counts::default();
                self.others = added(&self.others, counts);
            }
            PassKind::Other => self.others = added(&self.others, counts),
        }
    }

    /// Returns the counts of the answer. `beside` are those beside the list, which count where the passes have less.
    pub(crate) fn total(&self, beside: &Counts) -> Counts {
        let all = added(&self.attempts, &self.others);
        let prompt = |counts: &Counts| {
            counts.or_zero(Count::Input) + counts.or_zero(Count::InputCached) + counts.cache_writes()
        };
        let mut total = if prompt(&all) > prompt(beside) { merged(beside, &all) } else { *beside };
        total.rejected = beside.rejected + all.rejected;
        let (output, reasoning) = (Count::Output, Count::OutputReasoning);
        for count in [output, reasoning] {
            total.set(count, beside.get(count));
        }
        if all.get(output) > beside.get(output) {
            total.set(output, all.get(output));
            total.set(reasoning, all.get(reasoning).max(beside.get(reasoning)));
        }
        total
    }
}

/// The sums of the counts of two passes, or of two answers. A total that only one has is left out.
pub(super) fn added(one: &Counts, other: &Counts) -> Counts {
    let mut sum = Counts::default().with_rejected(one.rejected + other.rejected);
    for count in Count::ALL {
        sum.add(count, one.get(count));
        sum.add(count, other.get(count));
    }
    if one.get(Count::Total).is_none() || other.get(Count::Total).is_none() {
        sum.set(Count::Total, None);
    }
    sum
}
