//! The month's spend from a ledger with the rows of three tenants.

use ledger::Row;
use ledger::testing::{Contents, NOON_US, Place, rate, row, write_month};
use metrics::Options;
use price::Charge;

use super::*;

const DAY_US: i64 = 86_400_000_000;

fn month_of(rows: impl Iterator<Item = Row>) -> Place {
    let place = Place::new();
    let month = month::of(NOON_US);
    let rows: Vec<_> = rows.map(|row| (month, row, None)).collect();
    let rates = [rate(0), rate(1)].map(|charge| match charge {
        Charge::Priced { rate, .. } => rate,
        Charge::Unpriced(_) => unreachable!(),
    });
    let contents = Contents { rates: &rates, rows: rows.iter().collect(), ..Contents::default() };
    write_month(&place.ledger(), month, true, &contents);
    place
}

fn spend(place: &Place, metrics: &Metrics) -> MonthSpend {
    let store = Store::open_read(&place.ledger()).unwrap();
    of(&store, Currency::USD, metrics, NOON_US + DAY_US).unwrap()
}

#[test]
fn month_is_that_of_the_ledgers_time_zone() {
    let berlin = Calendar::of(ledger::Zone::named("Europe/Berlin").unwrap());
    let [begin_us, end_us] = [681, 682].map(|month| berlin.month_begin_us(month));
    let last = without_spend(&berlin, end_us - 1);
    assert_eq!((&*last.month, &*last.today, &*last.time_zone), ("2026-10", "2026-10-31", "Europe/Berlin"));
    assert_eq!([last.since_unix_ms, last.until_unix_ms], [begin_us / 1000, end_us / 1000]);
    // 23:00 in UTC.
    let next = without_spend(&berlin, end_us);
    assert_eq!((&*next.month, &*next.today), ("2026-11", "2026-11-01"));
}

#[test]
fn sums_are_exact_by_day_and_tenant() {
    let two_days = |n: u64| Row { ended_us: NOON_US + if n < 6 { 0 } else { DAY_US }, ..row(n) };
    let place = month_of((0..9).map(two_days));
    let spend = spend(&place, &Metrics::new(Options::default()));
    assert_eq!((&*spend.month, spend.currency.as_deref()), ("2026-10", Some("USD")));
    let days: Vec<_> = spend.days.iter().map(|day| &*day.day).collect();
    assert_eq!(days, ["2026-10-15", "2026-10-16"]);
    // Rows 0 and 7 have no price; the others cost a millionth of a dollar times their rate, and a pico-dollar.
    let tenant = |name: &str, cost: &str, exchanges, unpriced_exchanges| TenantSpend {
        name: name.to_owned(),
        cost: cost.to_owned(),
        exchanges,
        unpriced_exchanges,
    };
    let charged = |n: u64| match row(n).charge {
        Charge::Priced { cost, .. } => i128::from(cost),
        Charge::Unpriced(_) => 0,
    };
    let cost = |rows: &[u64]| text::money(rows.iter().map(|n| charged(*n)).sum()).to_string();
    assert_eq!(
        spend.days[0].tenants,
        [
            tenant("tenant-1", &cost(&[1, 4]), 2, 0),
            tenant("tenant-2", &cost(&[2, 5]), 2, 0),
            tenant("tenant-0", &cost(&[0, 3]), 2, 1),
        ]
    );
    assert_eq!(spend.days[1].tenants[2], tenant("tenant-1", "0.00", 1, 1));
    assert_eq!(spend.days[0].cost, cost(&[1, 2, 3, 4, 5]));
    assert_eq!(spend.cost, cost(&[1, 2, 3, 4, 5, 6, 8]));
}

#[test]
fn tenants_without_a_label_are_one() {
    let metrics = Metrics::new(Options::default());
    (0..98).for_each(|n| drop(metrics.tenant_label(&format!("t{n}"))));
    metrics.tenant_label("tenant-2");
    let place = month_of((1..7).map(row));
    let spend = spend(&place, &metrics);
    let names: Vec<_> =
        spend.days[0].tenants.iter().map(|tenant| (&*tenant.name, tenant.exchanges)).collect();
    assert_eq!(names.len(), 3, "the dearest has the last place: {names:?}");
    assert!(names.contains(&("_other", 2)) && names.contains(&("tenant-2", 2)), "{names:?}");
}

#[test]
fn foreign_currency_is_left_out() {
    let place = month_of((1..7).map(row));
    let store = Store::open_read(&place.ledger()).unwrap();
    let metrics = Metrics::new(Options::default());
    let spend = of(&store, Currency(*b"EUR"), &metrics, NOON_US).unwrap();
    assert_eq!((spend.currency, &*spend.cost, spend.days.len()), (None, "0.00", 0));
}

/// The month's sum and the spend since then is never below the spend since the start.
#[test]
fn spend_of_the_process_is_in_the_sums_or_beyond_the_included() {
    let place = Place::new();
    let ledger = ledger::start(ledger::Plan::new(place.ledger()));
    let metrics = Metrics::new(Options::default());
    let charge = |n: u64| {
        let row = Row { ended_us: ledger::now_us(), ..row(n) };
        let cost = row.charge.cost().map(i128::from).unwrap();
        metrics.tenant_label(&row.tenant);
        metrics.charge(&row.tenant, "m", metrics::Basis::Price, cost);
        ledger.enter(row);
        cost
    };
    let first: i128 = [1, 2, 3].map(charge).iter().sum();
    let read = |cached: &Cached| {
        let mut out = Vec::new();
        (cached.content().write)(&mut out).unwrap();
        serde_json::from_slice::<MonthSpend>(&out).unwrap()
    };
    let spend = read(&cached(&place.ledger(), Currency::USD, &metrics, Some(ledger.clone())));
    let included = spend.included.unwrap();
    assert_eq!(spend.cost, text::money(first).to_string(), "the reading waits for its rows");
    assert_eq!(included.tenants.values().sum::<f64>(), units(first));
    assert!(ledger.shutdown(Duration::from_secs(30)));
}

#[test]
fn unreadable_ledger_is_an_error_with_a_remedy_and_a_missing_one_is_empty() {
    let place = Place::new();
    let text = |name: &str| {
        let cached = cached(&place.path(name), Currency::USD, &Metrics::new(Options::default()), None);
        let mut out = Vec::new();
        (cached.content().write)(&mut out).map(|()| out).map_err(|error| error.to_string())
    };
    std::fs::write(place.path("broken.db"), "no database, but as long as its header").unwrap();
    let error = text("broken.db").unwrap_err();
    assert!(error.contains("the ledger cannot be read") && error.contains("ledger verify"), "{error}");
    let spend: MonthSpend = serde_json::from_slice(&text("none.db").unwrap()).unwrap();
    assert_eq!((spend.currency, &*spend.cost, spend.days.len()), (None, "0.00", 0));
}
