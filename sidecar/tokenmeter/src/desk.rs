//! Entry of finished exchanges: the tally of output tokens by provenance, the totals by upstream, and, for exchanges
//! whose tokens were counted here, the metrics that their worker left out. Then each goes on to the next observer.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use meter::{Provenance, Record};
use metrics::WorkerCells;
use relay::{Dropped, Observer};

use crate::totals::Totals;

/// Output tokens, by provenance. An exchange without output counts nothing here, as in a bill.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally(Arc<[AtomicU64; Provenance::ALL.len()]>);

impl Tally {
    /// Name and count of each provenance, best first.
    pub(crate) fn read(&self) -> Vec<(&'static str, u64)> {
        let counts = self.0.iter().map(|count| count.load(Ordering::Relaxed));
        Provenance::ALL.iter().map(|provenance| provenance.name()).zip(counts).collect()
    }

    fn add(&self, provenance: Provenance, tokens: u64) {
        self.0[provenance as usize].fetch_add(tokens, Ordering::Relaxed);
    }
}

/// Enters records. Shared by the threads of the control plane that have some.
pub(crate) struct Desk {
    tally: Tally,
    totals: Totals,
    /// Cells as a worker has them, for what is counted here.
    cells: Mutex<WorkerCells>,
    after: After,
}

/// Where a record goes once it is entered; never waits.
pub(crate) type After = Box<dyn Fn(Arc<Record>) + Send + Sync>;

impl Desk {
    pub(crate) fn new(tally: Tally, totals: Totals, cells: WorkerCells, after: After) -> Self {
        Self { tally, totals, cells: Mutex::new(cells), after }
    }

    /// Enters a record whose worker has booked it.
    pub(crate) fn enter(&self, record: Record) {
        if record.identity.role.is_counted() {
            self.tally.add(record.tokens.output_provenance, record.tokens.output());
        }
        // The server's own counters have the tokens of prefill legs too.
        self.totals.add(&record);
        (self.after)(Arc::new(record));
    }

    /// Books a record that its worker left to us, with `output` tokens if they could be counted,
    /// and enters it.
    pub(crate) fn book(&self, mut record: Record, output: Option<u64>) {
        let mut cells = self.cells.lock().unwrap_or_else(PoisonError::into_inner);
        let model = match &*record.identity.model {
            metrics::UNKNOWN => cells.unknown_model(),
            name => cells.model(name),
        };
        match output {
            Some(output) => {
                // The worker's live counter had settled on the estimate.
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

    /// A refused request has no output, and would be a share of exchanges.
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
