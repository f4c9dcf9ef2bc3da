//! Assembles billing: the current price book, the ledger, its shipping to a central store, and the budgets.
//! The law: each of them can fail alone, and none of them affects traffic.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use budget::Budget;
use ledger::{Ledger, MayForget};
use metrics::{Metrics, Part};
use price::{Book, Currency};
use relay::{Gate, Terms};
use ship::{Shipper, StatusReader};

use crate::budget_restore;
use crate::budget_state_file::BudgetStateFile;
use crate::budgets::{self, BudgetsPlan, Charges, Hooks, Sums};
use crate::charger::{Charger, Prices};
use crate::fleet;
use crate::ledger_samples::{EndedLedgerSamples, EventsSamples, LedgerSamples, StoreSamples};
use crate::model_gate::ModelGate;
use crate::unknown_counts::UnknownCounts;

/// The longest wait of a stop for the ledger's queue; its slowest commits are well below.
const LAST_COMMIT: Duration = Duration::from_secs(5);

/// The longest wait of a stop for the shipping; the rest is sent after the next start.
const LAST_SHIPMENT: Duration = Duration::from_secs(5);

/// The longest wait of a stop for usage events; the rest is sent after the next start.
const LAST_EVENTS: Duration = Duration::from_secs(5);

/// Settings of billing: the price book, the budgets and the ledger.
#[derive(Clone, Copy, Debug)]
pub struct Plan<'a> {
    /// The price book of the start.
    pub prices: Option<&'a Arc<Book>>,
    /// The budgets.
    pub budgets: &'a BudgetsPlan,
    /// The ledger.
    pub ledger: &'a LedgerPlan,
}

/// The ledger and the central store.
#[derive(Clone, Debug, Default)]
pub struct LedgerPlan {
    /// The ledger file.
    pub ledger: Option<ledger::Plan>,
    /// The shipping to a central store.
    pub ship: Option<ship::Plan>,
    /// The usage events.
    pub events: Option<events::Plan>,
    /// Starts even if another process of this host writes the ledger.
    pub wait: bool,
}

/// The running parts of billing.
pub struct Billing {
    charger: Charger,
    /// The budgets' queue of charges.
    charges: Option<Charges>,
    ledger: Option<Ledger>,
    /// The path of the ledger.
    path: Option<PathBuf>,
    /// The currency of the price book; US dollars without one.
    currency: Currency,
    shipper: Option<Shipper>,
    events: Option<events::Sender>,
    budgets: Option<budgets::Running>,
    fleet: Option<fleet::Running>,
    /// The gate of rejected tenants, if a budget is enforced.
    gate: Option<Arc<Gate>>,
}

impl Billing {
    /// Starts the parts of the plan.
    pub fn open(plan: Plan<'_>, metrics: &Metrics) -> io::Result<Self> {
        let prices: Prices = Arc::new(ArcSwapOption::from(plan.prices.cloned()));
        let currency = plan.prices.map_or(Currency::USD, |book| book.currency());
        let gate = gate(plan.budgets, &prices);
        let (charges, budgets) = match plan.budgets.budgets.is_empty() {
            true => (None, None),
            false => {
                let path = plan.ledger.ledger.as_ref().map(|ledger| ledger.path.clone());
                let state_file = path.as_deref().map_or_else(BudgetStateFile::none, BudgetStateFile::beside);
                let shut = gate.clone();
                let hooks = Hooks {
                    restore: Box::new(move |since| match path {
                        Some(path) => budget_restore::in_ledger(&path, currency.code(), since),
                        None => Ok(Sums::new()),
                    }),
                    calendar: plan.ledger.ledger.as_ref().map(ledger::Plan::calendar).unwrap_or_default(),
                    state_file,
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
                (Some(charges), Some(running))
            }
        };
        let fleet = match (&plan.ledger.ship, &charges) {
            (Some(ship), Some(charges)) => {
                let told = charges.clone();
                let on_observed = Box::new(move |all| told.observe(all));
                Some(fleet::start(ship, plan.budgets.budgets.clone(), currency, on_observed)?)
            }
            _ => None,
        };
        // After the budgets have read the ledger: a new file is incomplete for a moment.
        let shipped: Arc<OnceLock<StatusReader>> = Arc::default();
        let sent: Arc<OnceLock<events::StatusReader>> = Arc::default();
        let (ships, sends) = (plan.ledger.ship.is_some(), plan.ledger.events.is_some());
        let ledger = plan.ledger.ledger.clone().map(|ledger| {
            let readers = (Arc::clone(&shipped), Arc::clone(&sent));
            let has_all = move |file: &Path| {
                let is_shipped = !ships || readers.0.get().is_some_and(|reader| reader.has_all(file));
                is_shipped && (!sends || readers.1.get().is_some_and(|reader| reader.has_all(file)))
            };
            let may_forget = (ships || sends).then(|| Arc::new(has_all) as MayForget);
            let ships_to = plan.ledger.ship.as_ref().map(|ship| ship.address.to_string().into());
            ledger::start(ledger::Plan { may_forget, ships_to, ..ledger })
        });
        let events = plan.ledger.events.clone().map(events::start).transpose()?;
        if let Some(events) = &events {
            sent.get_or_init(|| events.status_reader());
            metrics.set(Part::Events, Arc::new(EventsSamples(events.status_reader())));
        }
        let shipper = plan.ledger.ship.clone().map(ship::start).transpose()?;
        if let Some(shipper) = &shipper {
            shipped.get_or_init(|| shipper.status_reader());
            metrics.set(Part::Store, Arc::new(StoreSamples(shipper.status_reader())));
        }
        if let Some(ledger) = &ledger {
            metrics.set(Part::Ledger, Arc::new(LedgerSamples(ledger.clone())));
        }
        let charger = Charger::new(prices, ledger.clone(), metrics.clone());
        let path = plan.ledger.ledger.as_ref().map(|ledger| ledger.path.clone());
        Ok(Self { charger, charges, ledger, path, currency, shipper, events, budgets, fleet, gate })
    }

    /// Returns the charger of exchanges.
    pub fn charger(&self) -> &Charger {
        &self.charger
    }

    /// Returns the budgets' queue of charges, if there are budgets.
    pub(crate) fn charges(&self) -> Option<&Charges> {
        self.charges.as_ref()
    }

    /// Returns the gate for the relay.
    pub fn gate(&self) -> Option<Arc<Gate>> {
        self.gate.clone()
    }

    /// Returns a handle to the state of billing.
    pub fn state(&self) -> State {
        let shipper = self.shipper.as_ref().map(Shipper::status_reader);
        let events = self.events.as_ref().map(events::Sender::status_reader);
        State {
            ledger: self.ledger.clone(),
            path: self.path.clone(),
            currency: self.currency,
            shipper,
            events,
            unknown: Arc::clone(self.charger.unknown_counts()),
        }
    }
}

impl Drop for Billing {
    /// Commits and sends the queues within their time limits: the ledger first, whose rows exist nowhere else; the
    /// webhook last.
    fn drop(&mut self) {
        self.fleet = None;
        if let Some(ledger) = self.ledger.take() {
            // It logs what it loses.
            ledger.shutdown(LAST_COMMIT);
        }
        if let Some(shipper) = self.shipper.take()
            && !shipper.shutdown(LAST_SHIPMENT)
        {
            tracing::info!(
                "not all rows are shipped to the central store; the rest is sent after the next start"
            );
        }
        if let Some(events) = self.events.take()
            && !events.shutdown(LAST_EVENTS)
        {
            tracing::info!("not all usage events are sent; the rest is sent after the next start");
        }
        if let Some(budgets) = self.budgets.take() {
            budgets.shutdown();
        }
    }
}

/// Returns the gate if a budget is enforced.
fn gate(plan: &BudgetsPlan, prices: &Prices) -> Option<Arc<Gate>> {
    let all = plan.budgets.iter().cloned().zip(plan.terms.iter().copied());
    let enforced: Vec<(Budget, Terms)> = all.filter(|(budget, _)| budget.enforce).collect();
    let is_enforced = !enforced.is_empty();
    is_enforced.then(|| Arc::new(Gate::with_models(Box::new(ModelGate::new(enforced, Arc::clone(prices))))))
}

fn refused(why: budget::Rejection) -> relay::Refused {
    relay::Refused { retry_after_s: why.retry_after_s, message: why.message }
}

/// Removes the price book and the ledger from the metrics.
pub fn unset_metrics(metrics: &Metrics) {
    metrics.unset(Part::Prices);
    metrics.unset(Part::Usage);
    metrics.unset(Part::Ledger);
}

/// A handle to the state of billing.
#[derive(Clone)]
pub struct State {
    ledger: Option<Ledger>,
    /// The path of the ledger.
    path: Option<PathBuf>,
    /// The currency of the price book; US dollars without one.
    currency: Currency,
    shipper: Option<StatusReader>,
    events: Option<events::StatusReader>,
    unknown: Arc<UnknownCounts>,
}

impl State {
    /// Returns the path of the ledger, and the currency of the price book.
    pub(crate) fn ledger_path(&self) -> Option<(&Path, Currency)> {
        Some((self.path.as_deref()?, self.currency))
    }

    /// Returns the running ledger.
    pub(crate) fn ledger(&self) -> Option<Ledger> {
        self.ledger.clone()
    }

    /// Returns true if the ledger lost rows at its end and could note that nowhere.
    pub fn is_loss_unnoted(&self) -> bool {
        self.ledger.as_ref().is_some_and(|ledger| ledger.status().is_loss_unnoted)
    }

    /// Leaves the final counts of the ledger in the metrics, after billing was dropped in a process that goes on.
    pub fn end_metrics(&self, metrics: &Metrics) {
        unset_metrics(metrics);
        if let Some(ledger) = &self.ledger {
            metrics.set(Part::Ledger, Arc::new(EndedLedgerSamples(ledger.clone())));
        }
    }

    /// Returns the current problems, one per line.
    pub fn troubles(&self) -> Vec<String> {
        let ledger = self.ledger.as_ref().and_then(|ledger| ledger.status().fault_message);
        let shipper = self.shipper.as_ref().and_then(|shipper| shipper.status().error);
        let events = self.events.as_ref().and_then(|events| events.status().error);
        let named = |name: &str, trouble: Option<String>| trouble.map(|trouble| format!("{name}: {trouble}"));
        let all = [named("ledger", ledger), named("central store", shipper), named("usage events", events)];
        all.into_iter().flatten().chain(self.unknown.troubles()).collect()
    }
}
