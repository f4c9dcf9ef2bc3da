//! The steps of a finished exchange, from its record to the export: [`Pipeline::enter`].

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use meter::Record;
use metrics::{Metrics, WorkerCells};
use price::Charge;
use relay::{Dropped, Observer};

use crate::access_log;
use crate::billing::Billing;
use crate::budgets::Charges;
use crate::charger::Charger;
use crate::export_link::Exports;
use crate::gpu_link::AttributionQueue;
use crate::totals::Totals;

/// The steps of accounting, shared by the threads of the control plane.
pub struct Pipeline {
    totals: Totals,
    metrics: Metrics,
    /// Worker cells for exchanges that a tokenizer counts, from the first on: the metrics never free cells.
    cells: Mutex<Option<WorkerCells>>,
    charger: Charger,
    budgets: Option<Charges>,
    gpus: AttributionQueue,
    exports: Exports,
    /// True if the access log is on.
    access: bool,
}

impl Pipeline {
    /// Creates the pipeline with the parts of `billing` and the others.
    pub fn new(
        totals: Totals,
        metrics: &Metrics,
        billing: &Billing,
        gpus: AttributionQueue,
        exports: Exports,
        access: bool,
    ) -> Self {
        Self {
            totals,
            metrics: metrics.clone(),
            cells: Mutex::default(),
            charger: billing.charger().clone(),
            budgets: billing.charges().cloned(),
            gpus,
            exports,
            access,
        }
    }

    /// Accounts for an exchange whose tokens are counted and in the metrics, and returns its charge. Never waits. A record
    /// with a text to count passes [`crate::tokenizer_stage`] and [`Self::enter_uncounted`] first.
    pub fn enter(&self, mut record: Arc<Record>) -> Charge {
        let charge = self.bill(&mut record);

        // Access log.
        if self.access {
            access_log::exchange(&record, &charge);
        }

        // GPU attribution, which exports the exchange when its share is known; else the export.
        if let Err((record, charge)) = self.gpus.submit(record, charge.clone()) {
            self.exports.submit(record, &charge, None);
        }
        charge
    }

    /// Adds an exchange to totals, budgets and the ledger, and returns its charge. Never waits.
    fn bill(&self, record: &mut Arc<Record>) -> Charge {
        self.charger.name_dearest(record);
        let identity = &record.identity;

        // Totals: the server's own counters include the tokens of prefill legs, too.
        self.totals.add(record);

        // Charge.
        let row = self.charger.charge(record);
        let charge = row.charge.clone();

        // Budgets.
        if let Some(budgets) = &self.budgets {
            let is_enforced = budgets.is_enforced(&identity.tenant);
            let cost = if is_enforced { self.charger.most(record, &charge) } else { charge.cost() };
            cost.into_iter().for_each(|cost| budgets.charge(&identity.tenant, row.ended_us, cost));
        }

        // Ledger.
        if let Some(ledger) = self.charger.ledger() {
            ledger.enter(row);
        }
        charge
    }

    /// Bills an exchange for which the outbox had no room, in the thread of its worker. It has no line in the access log,
    /// no share of a GPU and no export, which would take longer.
    pub fn bill_overflow(&self, mut record: Arc<Record>) {
        let ended_unix_ns = record.ended_unix_ns();
        // A panic must not end the worker's exchange.
        if catch_unwind(AssertUnwindSafe(|| self.bill(&mut record))).is_err() {
            self.charger.missed(ended_unix_ns);
        }
    }

    /// Updates the metrics for a record that its worker left out, with `output` tokens if a tokenizer counted them, and
    /// enters it.
    pub fn enter_uncounted(&self, mut record: Arc<Record>, output: Option<u64>) {
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
                Arc::make_mut(&mut record).recount(output);
            }
            None => cells.dropped(Dropped::Tokenizing, 1),
        }
        cells.begin(model);
        cells.end(model, &record);
        drop(locked);
        self.enter(record);
    }
}
