//! Where a finished exchange becomes money: charged by the price book in force, entered in the ledger,
//! counted, and held against budgets. The law: nothing here waits, and nothing that fails here is felt
//! by whoever hands an exchange in.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use gpu::Used;
use ledger::report::source;
use ledger::{EnergyRow, Ledger, Row};
use meter::Record;
use metrics::{Basis, BookReading, Metrics};
use price::{Book, Charge, Unpriced, Usage};
use serde_json::json;

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
}

impl Spend {
    pub(crate) fn new(prices: Prices, ledger: Option<Ledger>, metrics: Metrics, told: Told) -> Self {
        let spend = Self(Arc::new(Books { prices, ledger, metrics, told }));
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
        let Books { prices, ledger, metrics, told } = &*self.0;
        let identity = &record.identity;
        let book = prices.load();
        let row = Row::of(record, Charge::Unpriced(Unpriced::NoBook));
        let charge = match &*book {
            Some(book) => book.charge(&usage(&row)),
            None => Charge::Unpriced(Unpriced::NoBook),
        };
        match &charge {
            Charge::Priced { cost, .. } => {
                metrics.charge(&identity.tenant, &identity.model, Basis::Price, i128::from(*cost));
                told(&identity.tenant, row.ended_us, *cost);
            }
            // Where nobody wants to know, nothing is missing.
            Charge::Unpriced(Unpriced::NoBook) if ledger.is_none() => {}
            Charge::Unpriced(why) => metrics.unpriced(&identity.model, why.name()),
        }
        if let Some(ledger) = ledger {
            ledger.enter(Row { charge: charge.clone(), ..row });
        }
        charge
    }

    /// What an exchange, charged before, used of the GPUs.
    pub(crate) fn used(&self, record: &Record, charge: Charge, used: &Used) {
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

    /// Where the rows go, if they are kept.
    pub(crate) fn ledger(&self) -> Option<&Ledger> {
        self.0.ledger.as_ref()
    }
}

/// What the price of an exchange depends on.
fn usage(row: &Row) -> Usage<'_> {
    Usage {
        model: &row.model,
        provider: &row.provider,
        upstream: &row.upstream,
        tier: row.service_tier.as_deref(),
        at_us: row.ended_us,
        tokens: &row.tokens.by_type,
        success: (200..300).contains(&row.status),
    }
}
