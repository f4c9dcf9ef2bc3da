//! Reads the spend by tenant and day from the ledger's daily totals, in the price book's currency. Budgets and the
//! live page start from it.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use budget::day_of;
use ledger::Store;
use ledger::source::DAY_US;
use ledger::{Range, Source, SourceError};
use price::Currency;
use report::{Basis, Key, Order, Query, make};

use crate::budgets::Sums;
use crate::daily_spend::Sum;

/// Returns the sums of the ledger at `path` from a day on; none if it does not exist yet. An unreadable file is logged
/// and left out: a budget that starts with most of its spend is better than one that starts at zero.
pub(crate) fn in_ledger(path: &Path, currency: &str, since: i32) -> Result<Sums, String> {
    let files = match Store::open_each(path) {
        Ok(files) => files,
        Err(_) if !path.exists() => return Ok(Vec::new()),
        Err(failure) => return Err(failure.to_string()),
    };
    let (mut sums, mut left, mut read) = (Sums::new(), Vec::new(), false);
    for file in files {
        let of_file = file.map_err(SourceError::from).and_then(|store| of(&store, currency, since));
        match of_file {
            Ok(more) => {
                read = true;
                sums.extend(more);
            }
            Err(trouble) => left.push(trouble.to_string()),
        }
    }
    if !read && !left.is_empty() {
        return Err(left.join("; "));
    }
    for why in left {
        tracing::warn!("budgets start without an unreadable file of the ledger: {why}");
    }
    let mut merged: HashMap<(Arc<str>, i32), i128> = HashMap::new();
    for (tenant, day, pico) in sums {
        let sum = merged.entry((tenant, day)).or_default();
        *sum = sum.saturating_add(pico);
    }
    Ok(merged.into_iter().map(|((tenant, day), pico)| (tenant, day, pico)).collect())
}

/// Returns each tenant's sums of today, by descending cost; `None` without a readable ledger: the live page then shows
/// the spend of this process.
pub(crate) fn today(path: &Path, currency: Currency, now_us: i64) -> Option<Vec<(Arc<str>, Sum)>> {
    let store = Store::open_read(path).ok()?;
    let ask = Query {
        range: Range { since_us: i64::from(day_of(now_us)) * DAY_US, ..Range::ALL },
        billed: None,
        by: vec![Key::Tenant],
        filters: Vec::new(),
        basis: Basis::Price,
        order: Order::default(),
        now_us,
    };
    let report = make(&store, &ask).ok()?;
    // Charges in another currency are left out; exchanges without a price have no currency.
    let ours = report.groups.iter().filter(|group| group.currency.is_none_or(|code| code == currency));
    let count = |number: i128| u64::try_from(number).unwrap_or(0);
    let mut sums: Vec<(Arc<str>, Sum)> = ours
        .map(|group| {
            let sums = &group.sums;
            let (exchanges, unpriced) = (count(sums.exchanges), count(sums.unpriced));
            (group.values[0].to_string().into(), Sum { pico: sums.cost_pico, exchanges, unpriced })
        })
        .collect();
    sums.sort_by_key(|(_, sum)| Reverse((sum.pico, sum.exchanges)));
    Some(sums)
}

/// Returns the sums of a source. Charges in another currency are left out: currencies are not converted.
pub(crate) fn of(source: &dyn Source, currency: &str, since: i32) -> Result<Sums, SourceError> {
    let rates = source.rates()?;
    let ours: HashMap<[u8; 16], bool> =
        rates.iter().map(|rate| (rate.id, rate.currency.code() == currency)).collect();
    let range = Range { since_us: i64::from(since) * DAY_US, ..Range::ALL };
    let mut sums: HashMap<(Arc<str>, i32), i128> = HashMap::new();
    source.daily_totals(&range, &mut |_, line| {
        if line.key.rate.is_some_and(|rate| ours.get(&rate) == Some(&true)) {
            let sum = sums.entry((Arc::clone(&line.key.tenant), line.key.day)).or_default();
            *sum = sum.saturating_add(line.sums.cost_pico);
        }
        Ok(())
    })?;
    Ok(sums.into_iter().map(|((tenant, day), pico)| (tenant, day, pico)).collect())
}

#[cfg(test)]
mod tests {
    use ledger::source::{Correction, DeviceTotal, Gap, Month, Used};
    use ledger::{Class, DailyTotal, Row, Sums, TotalKey};
    use meter::Provenance;
    use price::Rate;

    use super::*;

    /// A store with these daily totals.
    struct FakeStore(Vec<DailyTotal>);

    impl Source for FakeStore {
        fn daily_totals(
            &self,
            range: &Range,
            each: &mut dyn FnMut(Month, &DailyTotal) -> Result<(), SourceError>,
        ) -> Result<(), SourceError> {
            let within = |line: &&DailyTotal| range.holds(i64::from(line.key.day) * DAY_US);
            self.0.iter().filter(within).try_for_each(|line| each(0, line))
        }

        fn rates(&self) -> Result<Vec<Arc<Rate>>, SourceError> {
            Ok(vec![rate(1, Currency::USD), rate(2, Currency::USD), rate(3, Currency(*b"EUR"))])
        }

        fn rows(
            &self,
            _: &Range,
            _: &mut dyn FnMut(Month, &Row, Option<&Used>) -> Result<(), SourceError>,
        ) -> Result<(), SourceError> {
            unreachable!("rows may be deleted; daily totals are not")
        }

        fn corrections(
            &self,
            _: &Range,
            _: &mut dyn FnMut(Month, &Correction) -> Result<(), SourceError>,
        ) -> Result<(), SourceError> {
            unreachable!("they are part of the daily totals")
        }

        fn first_price_totals(
            &self,
            _: &Range,
            _: &mut dyn FnMut(Month, &DailyTotal) -> Result<(), SourceError>,
        ) -> Result<(), SourceError> {
            unreachable!("money is the same by whichever rate")
        }

        fn first_prices(
            &self,
            _: &Range,
            _: &mut dyn FnMut(
                Month,
                &Correction,
                Option<(Month, &Row, Option<&Used>)>,
            ) -> Result<(), SourceError>,
        ) -> Result<(), SourceError> {
            unreachable!("money is the same by whichever rate")
        }

        fn devices(&self, _: &Range) -> Result<Vec<DeviceTotal>, SourceError> {
            unreachable!("they belong to no tenant")
        }

        fn gaps(&self, _: &Range) -> Result<Vec<Gap>, SourceError> {
            unreachable!("missing rows have no cost")
        }
    }

    fn rate(id: u8, currency: Currency) -> Arc<Rate> {
        Arc::new(Rate { id: [id; 16], ..crate::test_rates::rate(currency, 0) })
    }

    fn line(tenant: &str, day: i32, rate: Option<u8>, class: Class, cost_pico: i128) -> DailyTotal {
        let key = TotalKey {
            day,
            tenant: tenant.into(),
            principal: None,
            upstream: "u".into(),
            provider: "openai".into(),
            model: "m".into(),
            ending: "complete".into(),
            input_provenance: Provenance::Reported,
            output_provenance: Provenance::Reported,
            rate: rate.map(|id| [id; 16]),
            class,
        };
        DailyTotal { key, sums: Sums { exchanges: 1, cost_pico, ..Sums::default() } }
    }

    #[test]
    fn sums_are_by_tenant_day_and_currency() {
        let store = FakeStore(vec![
            line("a", 9, Some(1), Class::Usage, 1000),
            line("a", 10, Some(1), Class::Usage, 100),
            line("a", 10, Some(2), Class::Usage, 10),
            line("a", 10, Some(1), Class::Correction, -3),
            line("a", 10, Some(1), Class::Shed, 1),
            line("a", 10, Some(3), Class::Usage, 5000),
            line("a", 10, None, Class::Usage, 0),
            line("a", 10, Some(9), Class::Usage, 7000),
            line("a", 11, Some(1), Class::Usage, 7),
            line("b", 10, Some(1), Class::Usage, 5),
        ]);
        let mut sums = of(&store, "USD", 10).unwrap();
        sums.sort();
        assert_eq!(sums, [("a".into(), 10, 108), ("a".into(), 11, 7), ("b".into(), 10, 5)]);
    }

    /// October's file is damaged; the spend of the open month counts.
    #[test]
    fn unreadable_file_is_left_out() {
        let folder = std::env::temp_dir().join(format!("tokenmeter-spent-left-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("spend.db");
        let ledger = ledger::start(ledger::Plan::new(&path));
        ledger.device(Vec::new());
        assert!(ledger.shutdown(std::time::Duration::from_secs(30)));
        assert_eq!(in_ledger(&path, "USD", 0), Ok(Vec::new()));
        assert_eq!(today(&path, Currency::USD, ledger::now_us()), Some(Vec::new()), "a day without rows");
        assert_eq!(today(&folder.join("other.db"), Currency::USD, ledger::now_us()), None);
        std::fs::write(folder.join("spend-2026-10.db"), "no database at all").unwrap();
        assert_eq!(in_ledger(&path, "USD", 0), Ok(Vec::new()));
        assert!(Store::open_read(&path).unwrap().daily_totals(&Range::ALL, &mut |_, _| Ok(())).is_err());
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn missing_ledger_has_no_sums() {
        assert_eq!(in_ledger(Path::new("/nonexistent/spend.db"), "USD", 0), Ok(Vec::new()));
        let folder = std::env::temp_dir().join(format!("tokenmeter-spent-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("spend.db");
        std::fs::write(&path, "no database, but as long as its header").unwrap();
        assert!(in_ledger(&path, "USD", 0).is_err());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
