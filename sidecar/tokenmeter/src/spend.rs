//! Where a finished exchange becomes money: charged by the price book in force, entered in the ledger,
//! counted, and held against budgets. The law: nothing here waits, and nothing that fails here is felt
//! by whoever hands an exchange in.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use gpu::ExchangeUse;
use ledger::report::source;
use ledger::{EnergyRow, Ledger, Row};
use meter::Record;
use metrics::{Basis, BookReading, Metrics};
use price::{Book, Charge, Currency, Unpriced, Usage, has_tiers};
use serde_json::json;

use crate::tiers::Tiers;
use crate::today::{Sum, Today};

/// The price book in force, which a reload replaces whole.
pub(crate) type Prices = Arc<ArcSwapOption<Book>>;

/// Whom else to tell of a charge: the tenant, when the exchange ended (microseconds since 1970), and
/// pico-units.
pub(crate) type Told = Box<dyn Fn(&Arc<str>, i64, i64) + Send + Sync>;

/// What becomes of money. Cheap to clone; the clones are one.
#[derive(Clone)]
pub(crate) struct Spend(Arc<Books>);

struct Books {
    prices: Prices,
    ledger: Option<Ledger>,
    metrics: Metrics,
    told: Told,
    tiers: Tiers,
    today: Arc<Today>,
}

impl Spend {
    pub(crate) fn new(prices: Prices, ledger: Option<Ledger>, metrics: Metrics, told: Told) -> Self {
        let (tiers, today) = (Tiers::default(), Arc::new(Today::new(ledger::now_us())));
        let spend = Self(Arc::new(Books { prices, ledger, metrics, told, tiers, today }));
        spend.repriced();
        spend
    }

    /// The price book is another one from now on: the audit trail and the metrics say which.
    pub(crate) fn repriced(&self) {
        let book = self.0.prices.load();
        if let (Some(book), Some(ledger)) = (&*book, &self.0.ledger) {
            let detail = json!({"version": &**book.version(), "hash": &**book.hash()});
            ledger.act(ledger::now_us(), "price_book", detail.to_string());
        }
        let reading = book
            .as_ref()
            .map(|book| BookReading { version: Arc::clone(book.version()), hash: Arc::clone(book.hash()) });
        self.0.metrics.price_book(reading);
    }

    /// A finished exchange: what it costs.
    pub(crate) fn enter(&self, record: &Record) -> Charge {
        let Books { prices, ledger, metrics, told, tiers, today } = &*self.0;
        let identity = &record.identity;
        if !identity.role.is_counted() {
            if let Some(ledger) = ledger {
                ledger.enter(Row::of(record, Charge::Unpriced(Unpriced::Leg)));
            }
            return Charge::Unpriced(Unpriced::Leg);
        }
        let book = prices.load();
        let usage = usage(record);
        let charge = match &*book {
            Some(book) => book.charge(&usage),
            None => Charge::Unpriced(Unpriced::NoBook),
        };
        match &charge {
            Charge::Priced { rate, cost } => {
                metrics.charge(&identity.tenant, &identity.model, Basis::Price, i128::from(*cost));
                if let Some(tier) = usage.tier.filter(|tier| !rate.is_of(tier)) {
                    metrics.unpriced_tier(&identity.model);
                    tiers.missed(rate, tier);
                }
                told(&identity.tenant, usage.at_us, *cost);
            }
            // Where nobody wants to know, nothing is missing.
            Charge::Unpriced(Unpriced::NoBook) if ledger.is_none() => return charge,
            Charge::Unpriced(why) => metrics.unpriced(&identity.model, why.name()),
        }
        today.enter(metrics.tenant_label(&identity.tenant), usage.at_us, &charge, ledger::now_us());
        if let Some(ledger) = ledger {
            ledger.enter(Row::of(record, charge.clone()));
        }
        charge
    }

    /// What an exchange, charged before, used of the GPUs.
    pub(crate) fn used(&self, record: &Record, charge: Charge, used: &ExchangeUse) {
        let Books { ledger, metrics, .. } = &*self.0;
        let identity = &record.identity;
        let cost = used.cost.hours_pico + used.cost.energy_pico;
        if cost > 0 {
            metrics.charge(&identity.tenant, &identity.model, Basis::Gpu, cost);
        }
        if let Some(ledger) = ledger {
            let pico = |sum: i128| i64::try_from(sum).unwrap_or(i64::MAX);
            let used = source::Used {
                energy_nj: used.energy_nj,
                gpu_ns: used.gpu_ns,
                gpu_hours_pico: pico(used.cost.hours_pico),
                gpu_energy_pico: pico(used.cost.energy_pico),
            };
            ledger.energy(EnergyRow::of(&Row::of(record, charge), used));
        }
    }

    /// Begins today's sums with the ledger's. The label of each tenant is taken in the order of `sums`.
    pub(crate) fn restore_today(&self, sums: Vec<(Arc<str>, Sum)>, currency: Currency, now_us: i64) {
        let Books { metrics, today, .. } = &*self.0;
        let labelled = sums.into_iter().map(|(tenant, sum)| (metrics.tenant_label(&tenant), sum));
        today.restore(labelled.collect(), currency, now_us);
    }

    /// What was spent today.
    pub(crate) fn today(&self) -> Arc<Today> {
        Arc::clone(&self.0.today)
    }

    /// Exchanges ended of which nothing came here.
    pub(crate) fn missed(&self, exchanges: u64) {
        if let Some(ledger) = &self.0.ledger {
            ledger.lost(ledger::now_us(), exchanges);
        }
    }

    /// Where the rows go, if they are kept.
    pub(crate) fn ledger(&self) -> Option<&Ledger> {
        self.0.ledger.as_ref()
    }
}

/// What the price of an exchange depends on.
fn usage(record: &Record) -> Usage<'_> {
    let identity = &record.identity;
    let tier = identity.service_tier.as_deref();
    let is_said = identity.tier_said && has_tiers(&identity.provider);
    Usage {
        model: &identity.model,
        response_model: identity.response_model.as_deref(),
        provider: &identity.provider,
        upstream: &identity.upstream,
        tier: tier.filter(|_| is_said),
        asked_tier: tier.filter(|_| !is_said),
        at_us: i64::try_from(record.ended_unix_ns() / 1000).unwrap_or(i64::MAX),
        tokens: &record.tokens.by_type,
        success: (200..300).contains(&record.status),
        processed: meter::is_processed(record.status, record.upstream_attempts),
        counted: record.tokens.is_counted(),
    }
}

#[cfg(test)]
#[path = "spend_tests.rs"]
mod tests;
