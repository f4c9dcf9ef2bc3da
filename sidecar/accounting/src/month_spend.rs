//! The spend of this month from the ledger's daily totals, by day and tenant, for the live page. It is not a bill.
//! The law: sums are exact, and names are labels as on the metrics page. The spend of this process that they include is
//! stated, so that a reader can add what came later.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use ledger::{Calendar, Ledger, Range, Source, SourceError, Store, month, period};
use live::{DailySpend, IncludedSpend, MonthSpend, TenantSpend};
use metrics::{Metrics, units};
use page::Cached;
use price::Currency;
use report::{Key, Query, make};

/// The sums of a tenant.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    pico: i128,
    exchanges: u64,
    unpriced: u64,
}

/// Returns the month's spend as JSON, read from the ledger at `path` at most once per [`MAX_AGE`]. `ledger` writes it, if
/// this process does.
pub(crate) fn cached(path: &Path, currency: Currency, metrics: &Metrics, ledger: Option<Ledger>) -> Cached {
    let (path, metrics) = (path.to_owned(), metrics.clone());
    Cached::new(MAX_AGE, move || {
        let included = included(&metrics, ledger.as_ref());
        let now_us = ledger::now_us();
        let spend = match Store::open_read(&path) {
            Ok(store) => of(&store, currency, &metrics, now_us),
            // Its first row creates it.
            Err(_) if !path.exists() => {
                let calendar = ledger.as_ref().map(Ledger::calendar).unwrap_or_default();
                let cost = text::money(0).to_string();
                Ok(MonthSpend { cost, ..without_spend(&calendar, now_us) })
            }
            Err(error) => Err(error.into()),
        };
        let spend = spend.map_err(|error| {
            io::Error::other(format!(
                "the ledger cannot be read: {error}; `tokenmeter ledger verify` finds the cause"
            ))
        })?;
        Ok(serde_json::to_string(&MonthSpend { included, ..spend })?)
    })
}

/// Returns the month of an instant, with the day of the instant and without spend.
fn without_spend(calendar: &Calendar, now_us: i64) -> MonthSpend {
    let month = calendar.month(now_us);
    let range = Range::of_month(calendar, month);
    MonthSpend {
        month: month::name(month),
        time_zone: calendar.zone(month).name().to_owned(),
        since_unix_ms: range.since_us / 1000,
        until_unix_ms: range.until_us / 1000,
        today: period::day(calendar.day(now_us)),
        ..MonthSpend::default()
    }
}

/// Returns the spend so far, once all its rows are on the disk; `None` if that takes too long. A ledger that is read
/// then may have later rows, too.
fn included(metrics: &Metrics, ledger: Option<&Ledger>) -> Option<IncludedSpend> {
    let snapshot = metrics.snapshot();
    // An exchange is charged a moment before its row enters the queue.
    sleep(PAUSE);
    let began = Instant::now();
    loop {
        let waited = began.elapsed();
        // The oldest row that waits is younger than the spend.
        if ledger?.status().commit_lag <= waited {
            break;
        }
        if waited > DISK_MAX_WAIT {
            return None;
        }
        sleep(PAUSE);
    }
    let models = snapshot.models.iter().filter_map(|model| model.spend_pico);
    let tenants = snapshot.tenants.iter().filter_map(|tenant| Some((tenant, tenant.spend_pico?)));
    Some(IncludedSpend {
        all: units(models.fold(0, i128::saturating_add)),
        tenants: tenants.map(|(tenant, pico)| (tenant.tenant.to_string(), units(pico))).collect(),
    })
}

/// Returns the spend of the month of `now_us`. Charges in another currency are left out; exchanges without a price have
/// no currency.
fn of(
    source: &dyn Source,
    currency: Currency,
    metrics: &Metrics,
    now_us: i64,
) -> Result<MonthSpend, SourceError> {
    let calendar = source.calendar();
    let month = calendar.month(now_us);
    let query = Query {
        range: Range::of_month(&calendar, month),
        by: vec![Key::Day, Key::Tenant],
        ..Query::all(now_us)
    };
    let report = make(source, &query)?;
    let ours = report.groups.iter().filter(|group| group.currency.is_none_or(|code| code == currency));
    let count = |number: i128| u64::try_from(number).unwrap_or(0);
    let sums: Vec<(String, String, Sum)> = ours
        .map(|group| {
            let (day, tenant) = (group.values[0].to_string(), group.values[1].to_string());
            let (exchanges, unpriced) = (count(group.sums.exchanges), count(group.sums.unpriced));
            (day, tenant, Sum { pico: group.sums.cost_pico, exchanges, unpriced })
        })
        .collect();
    let labels = labels(&sums, metrics);
    let mut days: BTreeMap<&str, BTreeMap<Arc<str>, Sum>> = BTreeMap::new();
    for (day, tenant, sum) in &sums {
        let label = Arc::clone(&labels[&**tenant]);
        days.entry(day).or_default().entry(label).or_default().add(*sum);
    }
    let cost = |sums: &mut dyn Iterator<Item = &Sum>| {
        text::money(sums.fold(0_i128, |all, sum| all.saturating_add(sum.pico))).to_string()
    };
    let is_priced = report.groups.iter().any(|group| group.currency == Some(currency));
    Ok(MonthSpend {
        currency: is_priced.then(|| currency.code().to_owned()),
        cost: cost(&mut sums.iter().map(|(.., sum)| sum)),
        days: days
            .into_iter()
            .map(|(day, tenants)| DailySpend {
                day: day.to_owned(),
                cost: cost(&mut tenants.values()),
                tenants: shown(tenants),
            })
            .collect(),
        ..without_spend(&calendar, now_us)
    })
}

impl Sum {
    fn add(&mut self, other: Self) {
        self.pico = self.pico.saturating_add(other.pico);
        self.exchanges = self.exchanges.saturating_add(other.exchanges);
        self.unpriced = self.unpriced.saturating_add(other.unpriced);
    }
}

/// Returns the label of each tenant. The tenants with the highest spend come first, as labels are limited.
fn labels<'a>(sums: &'a [(String, String, Sum)], metrics: &Metrics) -> HashMap<&'a str, Arc<str>> {
    let mut costs: HashMap<&str, i128> = HashMap::new();
    for (_, tenant, sum) in sums {
        let cost = costs.entry(tenant).or_default();
        *cost = cost.saturating_add(sum.pico);
    }
    let mut names: Vec<_> = costs.into_iter().collect();
    names.sort_by_key(|(name, cost)| (Reverse(*cost), *name));
    let labels = metrics.shown_tenants(names.iter().map(|(name, _)| *name));
    names.into_iter().map(|(name, _)| name).zip(labels).collect()
}

/// Returns the tenants of a day, the highest spend first.
fn shown(tenants: BTreeMap<Arc<str>, Sum>) -> Vec<TenantSpend> {
    let mut tenants: Vec<_> = tenants.into_iter().collect();
    // The tenants are sorted by name, which decides between equals.
    tenants.sort_by_key(|(_, sum)| Reverse((sum.pico, sum.unpriced, sum.exchanges)));
    let tenant = |(name, sum): (Arc<str>, Sum)| TenantSpend {
        name: name.to_string(),
        cost: text::money(sum.pico).to_string(),
        exchanges: sum.exchanges,
        unpriced_exchanges: sum.unpriced,
    };
    tenants.into_iter().map(tenant).collect()
}

/// Time between two checks of the ledger's queue.
const PAUSE: Duration = Duration::from_millis(10);

/// The longest wait for the disk, which usually takes 50 ms.
const DISK_MAX_WAIT: Duration = Duration::from_secs(1);

/// The longest time for which a reading of the ledger is shown.
const MAX_AGE: Duration = Duration::from_secs(10);

#[cfg(test)]
#[path = "month_spend_tests.rs"]
mod tests;
