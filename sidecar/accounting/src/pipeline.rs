//! The steps of a finished exchange, from its record to the export: [`Pipeline::enter`].

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use meter::{Provenance, Record};
use metrics::{Metrics, WorkerCells};
use price::{Charge, Unpriced};
use relay::{Dropped, Observer};

use crate::access_log;
use crate::billing::Billing;
use crate::budgets::Charges;
use crate::charger::Charger;
use crate::daily_spend::DailySpend;
use crate::export_link::Exports;
use crate::gpu_link::AttributionQueue;
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

/// The steps of accounting, shared by the threads of the control plane.
pub struct Pipeline {
    tally: Tally,
    totals: Totals,
    metrics: Metrics,
    /// Worker cells for exchanges that a tokenizer counts, from the first on: the metrics never free cells.
    cells: Mutex<Option<WorkerCells>>,
    charger: Charger,
    daily_spend: Arc<DailySpend>,
    budgets: Option<Charges>,
    gpus: AttributionQueue,
    exports: Exports,
    /// True if the access log is on.
    access: bool,
}

impl Pipeline {
    /// Creates the pipeline with the parts of `billing` and the others.
    pub fn new(
        (tally, totals): (Tally, Totals),
        metrics: &Metrics,
        billing: &Billing,
        gpus: AttributionQueue,
        exports: Exports,
        access: bool,
    ) -> Self {
        Self {
            tally,
            totals,
            metrics: metrics.clone(),
            cells: Mutex::default(),
            charger: billing.charger().clone(),
            daily_spend: Arc::clone(billing.daily_spend()),
            budgets: billing.charges().cloned(),
            gpus,
            exports,
            access,
        }
    }

    /// Accounts for an exchange whose tokens are counted and in the metrics, and returns its charge. Never waits. A record
    /// with a text to count passes [`crate::tokenizer_stage`] and [`Self::enter_uncounted`] first.
    pub fn enter(&self, record: Record) -> Charge {
        let identity = &record.identity;

        // Totals: the server's own counters include the tokens of prefill legs, too.
        if identity.role.is_counted() {
            self.tally.add(record.tokens.output_provenance, record.tokens.output());
        }
        self.totals.add(&record);

        // Charge.
        let row = self.charger.charge(&record);
        let charge = row.charge.clone();

        // Daily spend, if there are prices or a ledger. A prefill leg is charged with its decode leg.
        let ledger = self.charger.ledger();
        let is_billed = ledger.is_some() || charge != Charge::Unpriced(Unpriced::NoBook);
        if is_billed && identity.role.is_counted() {
            let tenant = self.metrics.tenant_label(&identity.tenant);
            self.daily_spend.enter(tenant, row.ended_us, &charge, ledger::now_us());
        }

        // Budgets.
        if let (Some(budgets), Some(cost)) = (&self.budgets, charge.cost()) {
            budgets.charge(&identity.tenant, row.ended_us, cost);
        }

        // Ledger.
        if let Some(ledger) = ledger {
            ledger.enter(row);
        }

        // Access log.
        if self.access {
            access_log::exchange(&record, &charge);
        }

        // GPU attribution, which exports the exchange when its share is known; else the export.
        if let Err((record, charge)) = self.gpus.submit(Arc::new(record), charge.clone()) {
            self.exports.submit(record, &charge, None);
        }
        charge
    }

    /// Updates the metrics for a record that its worker left out, with `output` tokens if a tokenizer counted them, and
    /// enters it.
    pub fn enter_uncounted(&self, mut record: Record, output: Option<u64>) {
        let mut locked = self.cells.lock().unwrap_or_else(PoisonError::into_inner);
        let cells = locked.get_or_insert_with(|| self.metrics.worker());
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
            None => cells.dropped(Dropped::Tokenizing, 1),
        }
        cells.begin(model);
        cells.end(model, &record);
        drop(locked);
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
