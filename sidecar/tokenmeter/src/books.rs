//! The books, opened: the price book in force, the ledger, its way to a central store, and the budgets.
//! The law: each of them may fail by itself, and none of them is missed by traffic.

use std::io;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use budget::Budget;
use ledger::{Ledger, MayForget};
use metrics::{LedgerReading, Metrics, ShipReading};
use price::Currency;
use relay::{Gate, Terms};
use ship::{Shipper, Watch};

use crate::budgets::{self, Charges, Hooks, Sums};
use crate::fleet;
use crate::memory::Memory;
use crate::plan::{BudgetsPlan, Plan, prices};
use crate::priced::Priced;
use crate::reload::{FileWatch, Which};
use crate::spend::{Prices, Spend};
use crate::spent;
use crate::today::Today;

/// How long the ledger may take to enter what waits when we end: its slowest commits are well below.
const LAST_COMMIT: Duration = Duration::from_secs(5);

/// How long the store may take to get what it has not yet; the rest is sent after the next start.
const LAST_SHIPMENT: Duration = Duration::from_secs(5);

/// The books while we run.
pub(crate) struct Books {
    spend: Spend,
    prices: Prices,
    ledger: Option<Ledger>,
    shipper: Option<Shipper>,
    budgets: Option<budgets::Running>,
    fleet: Option<fleet::Running>,
    /// Whom the budgets refuse, where one is enforced.
    gate: Option<Arc<Gate>>,
}

impl Books {
    /// Opens what the plan names.
    pub(crate) fn open(plan: &Plan, metrics: &Metrics) -> io::Result<Self> {
        let prices: Prices = Arc::new(ArcSwapOption::from(plan.prices.clone()));
        let currency = plan.prices.as_ref().map_or(Currency::USD, |book| book.currency());
        let gate = gate(&plan.budgets, &prices);
        let (charges, budgets) = match plan.budgets.budgets.is_empty() {
            true => (Charges::default(), None),
            false => {
                let path = plan.ledger.ledger.as_ref().map(|ledger| ledger.path.clone());
                let memory = path.as_deref().map_or_else(Memory::none, Memory::beside);
                let shut = gate.clone();
                let hooks = Hooks {
                    restore: Box::new(move |since| match path {
                        Some(path) => spent::in_ledger(&path, currency.code(), since),
                        None => Ok(Sums::new()),
                    }),
                    memory,
                    refuse: Box::new(move |tenants| {
                        if let Some(gate) = &shut {
                            gate.refuse(
                                tenants.into_iter().map(|(tenant, why)| (tenant, refused(why))).collect(),
                            );
                        }
                    }),
                };
                let (charges, running) =
                    budgets::start(plan.budgets.clone(), currency.code(), metrics, hooks)?;
                (charges, Some(running))
            }
        };
        let fleet = match (&plan.ledger.ship, plan.budgets.budgets.is_empty()) {
            (Some(ship), false) => {
                let told = charges.clone();
                let hear = Box::new(move |all| told.observe(all));
                Some(fleet::start(ship, plan.budgets.budgets.clone(), currency, hear)?)
            }
            _ => None,
        };
        let now_us = ledger::now_us();
        let today =
            plan.ledger.ledger.as_ref().and_then(|ledger| spent::today(&ledger.path, currency, now_us));
        // After the budgets have read what is in it: a new one is half made for a moment.
        let shipped: Arc<OnceLock<Watch>> = Arc::default();
        let ledger = plan.ledger.ledger.clone().map(|ledger| {
            let watch = Arc::clone(&shipped);
            let has_all = move |file: &Path| watch.get().is_some_and(|watch| watch.has_all(file));
            let may_forget = plan.ledger.ship.as_ref().map(|_| Arc::new(has_all) as MayForget);
            ledger::start(ledger::Plan { may_forget, ..ledger })
        });
        let shipper = plan.ledger.ship.clone().map(ship::start).transpose()?;
        if let Some(shipper) = &shipper {
            shipped.get_or_init(|| shipper.watch());
        }
        let told = Box::new(move |tenant: &Arc<str>, ended_us, pico| charges.charge(tenant, ended_us, pico));
        let spend = Spend::new(Arc::clone(&prices), ledger.clone(), metrics.clone(), told);
        if let Some(today) = today {
            spend.restore_today(today, currency, now_us);
        }
        Ok(Self { spend, prices, ledger, shipper, budgets, fleet, gate })
    }

    /// Where exchanges are charged.
    pub(crate) fn spend(&self) -> &Spend {
        &self.spend
    }

    /// Whom the relay is to refuse.
    pub(crate) fn gate(&self) -> Option<Arc<Gate>> {
        self.gate.clone()
    }

    /// A look at how they are, for as many as want one.
    pub(crate) fn state(&self, metrics: &Metrics) -> State {
        let shipper = self.shipper.as_ref().map(Shipper::watch);
        State { metrics: metrics.clone(), today: self.spend.today(), ledger: self.ledger.clone(), shipper }
    }

    /// What watches the price file at `path`, read first at the start: a new book of the same currency
    /// takes the old one's place.
    pub(crate) fn watch_prices(&self, path: &Path) -> FileWatch {
        let (prices, spend, shown) =
            (Arc::clone(&self.prices), self.spend.clone(), path.display().to_string());
        FileWatch::new(Which::Prices, path, prices::FILE_BYTES, move |text| {
            let (book, warnings) = prices::parse(&shown, text)
                .map_err(|errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))?;
            let before = prices.load();
            if before.as_ref().is_some_and(|before| before.hash() == book.hash()) {
                return Ok(());
            }
            if let Some(before) = before.as_ref().filter(|before| before.currency() != book.currency()) {
                let (now, was) = (book.currency(), before.currency());
                return Err(format!(
                    "{shown} is in {} now and was in {}: the names of metrics carry the currency; start anew with it",
                    now.code(),
                    was.code()
                ));
            }
            for warning in warnings {
                tracing::warn!("{warning}");
            }
            if before.as_ref().is_some_and(|before| before.version() == book.version()) {
                let version = book.version();
                tracing::warn!(
                    "{shown} has other content under the same version `{version}`: give it a new one, or bills \
                     cannot tell the prices apart by it"
                );
            }
            prices.store(Some(Arc::new(book)));
            spend.repriced();
            Ok(())
        })
    }
}

impl Drop for Books {
    /// Enters and sends what waits, as far as that is possible in time: the ledger first, which nobody
    /// else has; who waits for a webhook last.
    fn drop(&mut self) {
        self.fleet = None;
        if let Some(ledger) = self.ledger.take()
            && !ledger.shutdown(LAST_COMMIT)
        {
            tracing::warn!("the ledger could not enter everything in time; a gap in it will say so");
        }
        if let Some(shipper) = self.shipper.take()
            && !shipper.shutdown(LAST_SHIPMENT)
        {
            tracing::info!(
                "the central store has not got everything yet; the rest is sent after the next start"
            );
        }
        if let Some(budgets) = self.budgets.take() {
            budgets.shutdown();
        }
    }
}

/// The gate, where anything is enforced.
fn gate(plan: &BudgetsPlan, prices: &Prices) -> Option<Arc<Gate>> {
    let all = plan.budgets.iter().cloned().zip(plan.terms.iter().copied());
    let enforced: Vec<(Budget, Terms)> = all.filter(|(budget, _)| budget.enforce).collect();
    let is_enforced = !enforced.is_empty();
    is_enforced.then(|| Arc::new(Gate::minding(Box::new(Priced::new(enforced, Arc::clone(prices))))))
}

fn refused(why: budget::Rejection) -> relay::Refused {
    relay::Refused { retry_after_s: why.retry_after_s, message: why.message }
}

/// How the books are. Cheap to clone.
#[derive(Clone)]
pub(crate) struct State {
    metrics: Metrics,
    today: Arc<Today>,
    ledger: Option<Ledger>,
    shipper: Option<Watch>,
}

impl State {
    /// Brings the metrics up to date.
    pub(crate) fn refresh(&self) {
        if let Some(ledger) = &self.ledger {
            self.metrics.ledger(ledger_reading(&ledger.status()));
        }
        if let Some(shipper) = &self.shipper {
            self.metrics.ship(ship_reading(&shipper.status()));
        }
    }

    /// What was spent today, for people.
    pub(crate) fn today(&self) -> Option<page::Spend> {
        self.today.shown(ledger::now_us())
    }

    /// What is the matter with them, a line each.
    pub(crate) fn troubles(&self) -> Vec<String> {
        let ledger = self.ledger.as_ref().and_then(|ledger| ledger.status().trouble);
        let shipper = self.shipper.as_ref().and_then(|shipper| shipper.status().trouble);
        let named = |name: &str, trouble: Option<String>| trouble.map(|trouble| format!("{name}: {trouble}"));
        named("ledger", ledger).into_iter().chain(named("central store", shipper)).collect()
    }
}

fn ledger_reading(status: &ledger::Status) -> LedgerReading {
    LedgerReading {
        up: status.up,
        rows: status.rows_total,
        queued_rows: status.queued_rows,
        commit_lag: status.commit_lag,
        shed_rows: status.shed_rows_total,
        lost_rows: status.lost_rows_total,
        lost_energies: status.lost_energies_total,
        bytes: [Some(status.bytes), Some(status.wal_bytes)],
        gaps: status.gaps_total,
        quarantined: status.quarantined_total,
        faults: metrics::LEDGER_FAULTS.map(|name| {
            let at = ledger::Fault::ALL.iter().position(|fault| fault.name() == name);
            at.map_or(0, |at| status.faults_total[at])
        }),
    }
}

fn ship_reading(status: &ship::Status) -> ShipReading {
    ShipReading {
        up: Some(status.up),
        rows: status.rows_total,
        pending_rows: status.pending_rows,
        lag: status.lag,
        failures: metrics::SHIP_FAILURES.map(|name| {
            let at = ship::Reason::ALL.iter().position(|reason| reason.name() == name);
            at.map_or(0, |at| status.failures[at])
        }),
    }
}
