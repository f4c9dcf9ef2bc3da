//! Charges finished exchanges by the current price book, and enters charges and GPU use in the metrics. The law:
//! nothing here waits, and no failure here affects the caller.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use gpu::ExchangeUse;
use ledger::source;
use ledger::{EnergyRow, Ledger, Row};
use meter::Record;
use metrics::{Basis, Metric, Metrics, Part, SampleWriter, Samples};
use price::{Book, Charge, Facts, Pico, Unpriced};
use serde_json::json;

use crate::missing_tiers::MissingTiers;
use crate::unknown_counts::UnknownCounts;

/// The current price book, which a reload replaces atomically.
pub type Prices = Arc<ArcSwapOption<Book>>;

/// Charges exchanges. A clone shares the parts.
#[derive(Clone)]
pub struct Charger(Arc<Parts>);

struct Parts {
    prices: Prices,
    ledger: Option<Ledger>,
    metrics: Metrics,
    tiers: MissingTiers,
    unknown: Arc<UnknownCounts>,
}

/// The samples of the price book in force.
struct BookSamples(Prices);

impl Samples for BookSamples {
    fn write(&self, to: &mut SampleWriter) {
        if let Some(book) = &*self.0.load() {
            let currency = book.currency();
            to.count(Metric::PriceBookInfo, &[book.version(), book.hash(), currency.code()], 1);
        }
    }
}

impl Charger {
    pub(crate) fn new(prices: Prices, ledger: Option<Ledger>, metrics: Metrics) -> Self {
        metrics.set(Part::Prices, Arc::new(BookSamples(Arc::clone(&prices))));
        let unknown = Arc::<UnknownCounts>::default();
        metrics.set(Part::Usage, Arc::clone(&unknown) as _);
        let tiers = MissingTiers::default();
        let charger = Self(Arc::new(Parts { prices, ledger, metrics, tiers, unknown }));
        charger.repriced();
        charger
    }

    /// Replaces the price book, by one of the same currency. Returns whether it differs; `file` is its name in messages.
    pub fn replace_book(&self, book: impl Into<Arc<Book>>, file: &str) -> Result<bool, String> {
        let (prices, book) = (&self.0.prices, book.into());
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
        prices.store(Some(book));
        self.repriced();
        Ok(true)
    }

    /// Records a new price book in the audit trail.
    fn repriced(&self) {
        let book = self.0.prices.load();
        if let (Some(book), Some(ledger)) = (&*book, &self.0.ledger) {
            let detail = json!({"version": &**book.version(), "hash": &**book.hash()});
            ledger.act(ledger::now_us(), "price_book", detail.to_string());
        }
    }

    /// Makes the dearest of the models that a request names the requested one.
    pub(crate) fn name_dearest(&self, record: &mut Arc<Record>) {
        if price::may_be_dearer(&record.identity) {
            price::name_dearest(record, self.0.prices.load().as_deref());
        }
    }

    /// Charges a finished exchange, and updates the metrics of charges.
    pub fn charge(&self, record: &Record) -> Row {
        let Parts { prices, ledger, metrics, tiers, unknown } = &*self.0;
        unknown.record(record);
        let identity = &record.identity;
        let row = Row::charged(record, prices.load().as_deref());
        match &row.charge {
            Charge::Priced { rate, cost } => {
                metrics.charge(&identity.tenant, &identity.model, Basis::Price, i128::from(*cost));
                if let Some(tier) = row.service_tier.as_deref().filter(|_| rate.is_tier_unpriced()) {
                    metrics.unpriced_tier(&identity.model);
                    tiers.record(rate, tier);
                }
            }
            // A prefill leg is charged as part of its request.
            Charge::Unpriced(Unpriced::Leg) => {}
            // Without prices and ledger, exchanges are not expected to have a price.
            Charge::Unpriced(Unpriced::NoBook) if ledger.is_none() => {}
            Charge::Unpriced(why) => metrics.unpriced(&identity.model, why.name()),
        }
        row
    }

    /// Returns what an enforced budget counts for a charged exchange: its cost, and if its tier has no price, the cost by
    /// the dearest prices of its model.
    pub(crate) fn most(&self, record: &Record, charge: &Charge) -> Option<Pico> {
        let cost = charge.cost()?;
        let book = self.0.prices.load();
        let book = book.as_ref().filter(|_| charge.rate().is_some_and(|rate| rate.is_tier_unpriced()));
        let dearest = book.and_then(|book| book.dearest(&Facts::of(record).usage()));
        Some(dearest.map_or(cost, |dearest| dearest.max(cost)))
    }

    /// Returns the numbers of tokens that servers report and that are not read.
    pub(crate) fn unknown_counts(&self) -> &Arc<UnknownCounts> {
        &self.0.unknown
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

    /// Enters a gap for an exchange whose record caused a panic.
    pub(crate) fn missed(&self, ended_unix_ns: u64) {
        if let Some(ledger) = &self.0.ledger {
            ledger.lost(i64::try_from(ended_unix_ns / 1_000).unwrap_or(i64::MAX), 1);
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
