//! The first stage of finished exchanges: the tally of output tokens by provenance, the totals by upstream, and, for
//! exchanges that a tokenizer counts, the metrics that their worker left out. Then each goes to the next stage.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use meter::{Provenance, Record};
use metrics::WorkerCells;
use relay::{Dropped, Observer};

use crate::totals::Totals;

/// Output tokens by provenance.
#[derive(Clone, Debug, Default)]
pub struct Tally(Arc<[AtomicU64; Provenance::ALL.len()]>);

impl Tally {
    /// Returns name and count of each provenance, the most reliable first.
    pub fn read(&self) -> Vec<(&'static str, u64)> {
        let counts = self.0.iter().map(|count| count.load(Ordering::Relaxed));
        Provenance::ALL.iter().map(|provenance| provenance.name()).zip(counts).collect()
    }

    fn add(&self, provenance: Provenance, tokens: u64) {
        self.0[provenance as usize].fetch_add(tokens, Ordering::Relaxed);
    }
}

/// The first stage, shared by the threads of the control plane.
pub struct Pipeline {
    tally: Tally,
    totals: Totals,
    /// Worker cells for exchanges that a tokenizer counts.
    cells: Mutex<WorkerCells>,
    next: NextStage,
}

/// The next stage of a record; it never waits.
pub type NextStage = Box<dyn Fn(Arc<Record>) + Send + Sync>;

impl Pipeline {
    /// Creates the stage; `cells` are of its own.
    pub fn new(tally: Tally, totals: Totals, cells: WorkerCells, next: NextStage) -> Self {
        Self { tally, totals, cells: Mutex::new(cells), next }
    }

    /// Enters a record whose worker has updated the metrics.
    pub fn enter(&self, record: Record) {
        if record.identity.role.is_counted() {
            self.tally.add(record.tokens.output_provenance, record.tokens.output());
        }
        // The server's own counters include the tokens of prefill legs, too.
        self.totals.add(&record);
        (self.next)(Arc::new(record));
    }

    /// Updates the metrics for a record that its worker left out, with `output` tokens if a tokenizer counted them, and
    /// enters it.
    pub fn enter_uncounted(&self, mut record: Record, output: Option<u64>) {
        let mut cells = self.cells.lock().unwrap_or_else(PoisonError::into_inner);
        let model = match &*record.identity.model {
            metrics::UNKNOWN => cells.unknown_model(),
            name => cells.model(name),
        };
        match output {
            Some(output) => {
                // The worker's live counter holds the estimate.
                let estimate = record.tokens.output();
                cells.live(model, output.saturating_sub(estimate), estimate.saturating_sub(output));
                record.recount(output);
            }
            None => cells.lose(Dropped::Tokenizing, 1),
        }
        cells.begin(model);
        cells.end(model, &record);
        drop(cells);
        self.enter(record);
    }
}

#[cfg(test)]
mod tests {
    use meter::Provenance;

    use super::Tally;

    /// Shares are of tokens, so a rejected request, which has no output, counts nothing.
    #[test]
    fn shares_are_of_output_tokens() {
        let tally = Tally::default();
        tally.add(Provenance::Reported, 998);
        tally.add(Provenance::Frames, 2);
        tally.add(Provenance::None, 0);
        let counts = tally.read();
        let count = |name| counts.iter().find(|(known, _)| *known == name).map(|(_, count)| *count);
        assert_eq!(["reported", "frames", "none"].map(count), [Some(998), Some(2), Some(0)]);
    }
}
