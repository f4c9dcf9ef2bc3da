//! Reads the spend by tenant and day from the ledger's daily totals, in the price book's currency. Budgets
//! start from it.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use ledger::Store;
use ledger::{Range, Source, SourceError};

use crate::budgets::Sums;

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
        tracing::warn!("budgets start without the spend of a ledger file that cannot be read: {why}");
    }
    let mut merged: HashMap<(Arc<str>, i32), i128> = HashMap::new();
    for (tenant, day, pico) in sums {
        let sum = merged.entry((tenant, day)).or_default();
        *sum = sum.saturating_add(pico);
    }
    Ok(merged.into_iter().map(|((tenant, day), pico)| (tenant, day, pico)).collect())
}

/// Returns the sums of a source. Charges in another currency are left out: currencies are not converted.
pub(crate) fn of(source: &dyn Source, currency: &str, since: i32) -> Result<Sums, SourceError> {
    let rates = source.rates()?;
    let ours: HashMap<[u8; 16], bool> =
        rates.iter().map(|rate| (rate.id, rate.currency.code() == currency)).collect();
    let range = Range { since_us: source.calendar().begin_us(since), ..Range::ALL };
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
    use ledger::source::{Closure, Correction, DAY_US, DeviceTotal, Gap, Month, Used};
    use ledger::testing::{NOON_US, Place, row};
    use ledger::{Calendar, Class, DailyTotal, Row, Sums, TotalKey};
    use meter::Provenance;
    use price::{Currency, Rate};

    use super::*;

    /// A store with these daily totals.
    struct FakeStore(Vec<DailyTotal>);

    impl Source for FakeStore {
        fn calendar(&self) -> Calendar {
            Calendar::default()
        }

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

        fn closure(&self, _: Month) -> Result<Closure, SourceError> {
            unreachable!("a closed month counts as any other")
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

    /// The days of charges are those of the sums that a later process starts from.
    #[test]
    fn sums_have_the_days_of_the_ledgers_time_zone() {
        let place = Place::new();
        let time_zone = Some(ledger::Zone::named("Europe/Berlin").unwrap());
        let plan = ledger::Plan { time_zone, ..ledger::Plan::new(place.ledger()) };
        let calendar = plan.calendar();
        let ledger = ledger::start(plan);
        // 22:30 in UTC, 00:30 of the next day in Berlin.
        let ended_us = NOON_US + DAY_US / 48 * 21;
        ledger.enter(Row { ended_us, ..row(2) });
        assert!(ledger.shutdown(std::time::Duration::from_secs(30)));
        let day = budget::day_of(&calendar, ended_us);
        assert_eq!(day, ledger::month::day(ended_us) + 1);
        assert_eq!(in_ledger(&place.ledger(), "USD", day), Ok(vec![("tenant-2".into(), day, 1)]));
        assert_eq!(in_ledger(&place.ledger(), "USD", day + 1), Ok(Vec::new()));
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
