//! Charges finished exchanges by the current price book, and enters the charge in the ledger, the metrics and the
//! budgets. The law: nothing here waits, and no failure here affects the caller.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use gpu::ExchangeUse;
use ledger::source;
use ledger::{EnergyRow, Ledger, Row};
use meter::Record;
use metrics::{Basis, BookReading, Metrics};
use price::{Book, Charge, Currency, Unpriced};
use serde_json::json;

use crate::daily_spend::{DailySpend, Sum};
use crate::missing_tiers::MissingTiers;

/// The current price book, which a reload replaces atomically.
pub type Prices = Arc<ArcSwapOption<Book>>;

/// Receives each charge: the tenant, the end of the exchange (microseconds since 1970) and pico-units.
pub(crate) type OnCharge = Box<dyn Fn(&Arc<str>, i64, i64) + Send + Sync>;

/// Charges exchanges. A clone shares the parts.
#[derive(Clone)]
pub struct Charger(Arc<Parts>);

struct Parts {
    prices: Prices,
    ledger: Option<Ledger>,
    metrics: Metrics,
    on_charge: OnCharge,
    tiers: MissingTiers,
    today: Arc<DailySpend>,
}

impl Charger {
    pub(crate) fn new(prices: Prices, ledger: Option<Ledger>, metrics: Metrics, on_charge: OnCharge) -> Self {
        let (tiers, today) = (MissingTiers::default(), Arc::new(DailySpend::new(ledger::now_us())));
        let spend = Self(Arc::new(Parts { prices, ledger, metrics, on_charge, tiers, today }));
        spend.repriced();
        spend
    }

    /// Replaces the price book, by one of the same currency. Returns whether it differs; `file` is its name in messages.
    pub fn replace_book(&self, book: Book, file: &str) -> Result<bool, String> {
        let prices = &self.0.prices;
        let before = prices.load();
        if before.as_ref().is_some_and(|before| before.hash() == book.hash()) {
            return Ok(false);
        }
        if let Some(before) = before.as_ref().filter(|before| before.currency() != book.currency()) {
            let (now, was) = (book.currency(), before.currency());
            return Err(format!(
                "{file} is in {} now and was in {}: the names of metrics include the currency; restart to load it",
                now.code(),
                was.code()
            ));
        }
        if before.as_ref().is_some_and(|before| before.version() == book.version()) {
            let version = book.version();
            tracing::warn!(
                "{file} has changed under the same version `{version}`: write a new version, or bills cannot tell \
                 the prices apart by it"
            );
        }
        prices.store(Some(Arc::new(book)));
        self.repriced();
        Ok(true)
    }

    /// Records a new price book in the audit trail and the metrics.
    fn repriced(&self) {
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

    /// Charges a finished exchange.
    pub(crate) fn enter(&self, record: &Record) -> Charge {
        let Parts { prices, ledger, metrics, on_charge, tiers, today } = &*self.0;
        let identity = &record.identity;
        let row = Row::charged(record, prices.load().as_deref());
        let charge = row.charge.clone();
        match &charge {
            Charge::Priced { rate, cost } => {
                metrics.charge(&identity.tenant, &identity.model, Basis::Price, i128::from(*cost));
                if let Some(tier) = row.service_tier.as_deref().filter(|tier| !rate.is_of(tier)) {
                    metrics.unpriced_tier(&identity.model);
                    tiers.record(rate, tier);
                }
                on_charge(&identity.tenant, row.ended_us, *cost);
            }
            // Without prices and ledger, exchanges are not expected to have a price.
            Charge::Unpriced(Unpriced::NoBook) if ledger.is_none() => return charge,
            // A prefill leg is charged as part of its request.
            Charge::Unpriced(Unpriced::Leg) => {}
            Charge::Unpriced(why) => metrics.unpriced(&identity.model, why.name()),
        }
        if identity.role.is_counted() {
            today.enter(metrics.tenant_label(&identity.tenant), row.ended_us, &charge, ledger::now_us());
        }
        if let Some(ledger) = ledger {
            ledger.enter(row);
        }
        charge
    }

    /// Enters the GPU use of a charged exchange.
    pub(crate) fn used(&self, record: &Record, charge: Charge, used: &ExchangeUse) {
        let Parts { ledger, metrics, .. } = &*self.0;
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

    /// Adds the ledger's sums to today's. Tenants get their labels in the order of `sums`.
    pub(crate) fn restore_today(&self, sums: Vec<(Arc<str>, Sum)>, currency: Currency, now_us: i64) {
        let Parts { metrics, today, .. } = &*self.0;
        let labelled = sums.into_iter().map(|(tenant, sum)| (metrics.tenant_label(&tenant), sum));
        today.restore(labelled.collect(), currency, now_us);
    }

    /// Returns today's spend.
    pub(crate) fn today(&self) -> Arc<DailySpend> {
        Arc::clone(&self.0.today)
    }

    /// Enters a gap for exchanges whose records were lost.
    pub(crate) fn missed(&self, exchanges: u64) {
        if let Some(ledger) = &self.0.ledger {
            ledger.lost(ledger::now_us(), exchanges);
        }
    }

    /// Returns the ledger.
    pub(crate) fn ledger(&self) -> Option<&Ledger> {
        self.0.ledger.as_ref()
    }
}

#[cfg(test)]
#[path = "charger_tests.rs"]
mod tests;
