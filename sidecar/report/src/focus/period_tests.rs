//! The periods of the dataset are those of the ledger's calendar, as instants.

use ledger::{Calendar, Range, Zone, month, period};

use super::tests::{options, query, rows};
use super::{Billing, Version};
use crate::memory::{FIRST_DAY, Memory};
use crate::{Basis, Key};

#[test]
fn periods_are_those_of_the_time_zone() {
    let berlin = Calendar::of(Zone::named("Europe/Berlin").expect("a zone"));
    let memory = Memory::of_calendar(berlin.clone(), 5, 80);
    let (_, by_month) =
        rows(&memory, &query(&[], Basis::Price), &options(Version::V1_2, Billing::Chargeback));
    let (_, by_day) =
        rows(&memory, &query(&[Key::Day], Basis::Price), &options(Version::V1_2, Billing::Chargeback));
    let months: Vec<[String; 2]> = (-1..3)
        .map(|later| Range::of_month(&berlin, month::of_day(FIRST_DAY) + later))
        .map(|range| [range.since_us, range.until_us].map(period::time))
        .collect();
    assert!(months.contains(&["2026-10-31T23:00:00Z".to_owned(), "2026-11-30T23:00:00Z".to_owned()]));
    let days: Vec<[String; 2]> = (FIRST_DAY - 1..FIRST_DAY + 7)
        .map(|day| [day, day + 1].map(|day| period::time(berlin.begin_us(day))))
        .collect();
    let of = |row: &super::tests::Row, names: [&str; 2]| names.map(|name| row[name].clone());
    for (rows, periods) in [(&by_month, &months), (&by_day, &days)] {
        assert!(!rows.is_empty());
        for row in rows {
            assert!(periods.contains(&of(row, ["ChargePeriodStart", "ChargePeriodEnd"])), "{row:?}");
            assert!(months.contains(&of(row, ["BillingPeriodStart", "BillingPeriodEnd"])), "{row:?}");
        }
    }
}
