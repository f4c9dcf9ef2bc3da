//! The day's spend in UTC, by tenant, for the live page: the ledger's sums at the start and the exchanges of this
//! process since then. It is not a bill.
//! The law: sums are exact, names are capped labels, and exchanges that ended on another day are left out.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use budget::{DAY_US, day_of};
use price::{Charge, Currency};

/// The day's sums.
#[derive(Debug)]
pub(crate) struct DailySpend {
    started_us: i64,
    day: Mutex<Day>,
}

#[derive(Debug, Default)]
struct Day {
    /// Days since 1970.
    number: i32,
    /// The currency of the charges; a process has one.
    currency: Option<Currency>,
    /// True if the sums include the ledger's of the day.
    restored: bool,
    tenants: BTreeMap<Arc<str>, Sum>,
}

/// The sums of a tenant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sum {
    pub(crate) pico: i128,
    pub(crate) exchanges: u64,
    pub(crate) unpriced: u64,
}

impl Sum {
    fn add(&mut self, other: Self) {
        self.pico = self.pico.saturating_add(other.pico);
        self.exchanges += other.exchanges;
        self.unpriced += other.unpriced;
    }

    fn shown(self, name: &str) -> page::Tenant {
        let Self { pico, exchanges, unpriced } = self;
        page::Tenant { name: name.to_owned(), cost: text::money(pico).to_string(), exchanges, unpriced }
    }
}

impl DailySpend {
    /// Creates an empty day; `started_us` is the start of the process in microseconds since 1970.
    pub(crate) fn new(started_us: i64) -> Self {
        Self { started_us, day: Mutex::default() }
    }

    /// Adds the ledger's sums of the day, each tenant under its label.
    pub(crate) fn restore(&self, sums: Vec<(Arc<str>, Sum)>, currency: Currency, now_us: i64) {
        let mut day = self.day.lock().unwrap_or_else(PoisonError::into_inner);
        day.turn(now_us);
        day.restored = true;
        for (tenant, sum) in sums {
            day.currency = Some(currency);
            day.tenants.entry(tenant).or_default().add(sum);
        }
    }

    /// Adds an exchange that ended at `ended_us`, under its tenant's label.
    pub(crate) fn enter(&self, tenant: Arc<str>, ended_us: i64, charge: &Charge, now_us: i64) {
        let mut day = self.day.lock().unwrap_or_else(PoisonError::into_inner);
        day.turn(now_us);
        if day_of(ended_us) != day.number {
            return;
        }
        let sum = match charge {
            Charge::Priced { rate, cost } => {
                day.currency = Some(rate.currency);
                Sum { pico: (*cost).into(), exchanges: 1, unpriced: 0 }
            }
            Charge::Unpriced(_) => Sum { exchanges: 1, unpriced: 1, ..Sum::default() },
        };
        day.tenants.entry(tenant).or_default().add(sum);
    }

    /// Returns the tenants with the highest cost, the others as one, and the total; `None` without exchanges.
    pub(crate) fn shown(&self, now_us: i64) -> Option<page::Spend> {
        let mut day = self.day.lock().unwrap_or_else(PoisonError::into_inner);
        day.turn(now_us);
        let mut tenants: Vec<_> = day.tenants.iter().map(|(name, sum)| (Arc::clone(name), *sum)).collect();
        let (currency, restored) = (day.currency, day.restored);
        drop(day);
        if tenants.is_empty() {
            return None;
        }
        // The tenants are sorted by name, which decides between equals.
        tenants.sort_by_key(|(_, sum)| Reverse((sum.pico, sum.unpriced, sum.exchanges)));
        let sum = |tenants: &[(Arc<str>, Sum)]| {
            let mut all = Sum::default();
            tenants.iter().for_each(|(_, sum)| all.add(*sum));
            all
        };
        let all = sum(&tenants).shown("all");
        let beyond = tenants.split_off(tenants.len().min(SHOWN));
        let rest = (!beyond.is_empty()).then(|| sum(&beyond).shown(&format!("{} others", beyond.len())));
        Some(page::Spend {
            since: self.since(now_us).filter(|_| !restored),
            currency: currency.map(|currency| currency.code().to_owned()).unwrap_or_default(),
            tenants: tenants.into_iter().map(|(name, sum)| sum.shown(&name)).collect(),
            rest,
            all,
        })
    }

    /// Returns the start of the process if that was today: without a ledger, earlier spend is unknown.
    fn since(&self, now_us: i64) -> Option<String> {
        let minute = self.started_us.rem_euclid(DAY_US) / 60_000_000;
        let today = day_of(self.started_us) == day_of(now_us);
        today.then(|| format!("{:02}:{:02}", minute / 60, minute % 60))
    }
}

impl Day {
    /// Clears the sums at the start of another day.
    fn turn(&mut self, now_us: i64) {
        let today = day_of(now_us);
        if self.number != today {
            *self = Self { number: today, ..Self::default() };
        }
    }
}

/// Tenants that are listed one by one.
const SHOWN: usize = 10;

#[cfg(test)]
#[path = "daily_spend_tests.rs"]
mod tests;
