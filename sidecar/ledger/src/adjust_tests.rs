//! Adjustments: entered once, in their month or the open one, and not in a ledger that is shipped.

use price::Currency;

use super::{Adjustment, adjust};
use crate::file::File;
use crate::source::{Range, Source};
use crate::testing::{Contents, NOON_US, Place, rate, row, write_month};
use crate::total_key::ADJUSTMENT;
use crate::{Store, close, month, ships_to, verify};

fn october() -> i32 {
    month::of(NOON_US)
}

fn november_us() -> i64 {
    month::begin_us(october() + 1) + 1
}

fn credit(reason: &str) -> Adjustment {
    Adjustment::new("acme", -50_000_000_000_000, Currency::USD, october(), reason).unwrap()
}

/// An October with one row, which is over.
fn with_october() -> Place {
    let place = Place::new();
    let price::Charge::Priced { rate, .. } = rate(1) else { panic!("it has a price") };
    let row = (october(), row(1), None);
    let contents = Contents { rates: &[rate], rows: vec![&row], ..Contents::default() };
    write_month(&place.ledger(), october(), false, &contents);
    write_month(&place.ledger(), october() + 1, true, &Contents::default());
    place
}

/// The adjustments as (billed month, day, tenant, amount).
fn entered(place: &Place) -> Vec<(i32, i32, String, i128)> {
    let mut found = Vec::new();
    let store = Store::open_read(&place.ledger()).unwrap();
    store
        .daily_totals(&Range::ALL, &mut |billed, line| {
            if &*line.key.model == ADJUSTMENT {
                found.push((billed, line.key.day, line.key.tenant.to_string(), line.sums.cost_pico));
            }
            Ok(())
        })
        .unwrap();
    found.sort();
    found
}

#[test]
fn adjustment_is_billed_in_its_month_once() {
    let place = with_october();
    let first = month::day(month::begin_us(october()));
    for is_new in [true, false, false] {
        assert_eq!(adjust(&place.ledger(), &credit("outage"), "ann", november_us()).unwrap(), is_new);
    }
    let of = |billed, amount| (billed, first, "acme".to_owned(), amount);
    assert_eq!(entered(&place), [of(october(), -50_000_000_000_000)]);
    assert!(verify(&place.ledger(), None).unwrap().iter().all(|verdict| verdict.differences.is_empty()));

    close(&place.ledger(), october(), "ann", november_us()).unwrap();
    assert!(!adjust(&place.ledger(), &credit("outage"), "ann", november_us()).unwrap());
    assert!(adjust(&place.ledger(), &credit("second outage"), "ann", november_us()).unwrap());
    // Also after the month in which it is billed was closed.
    close(&place.ledger(), october() + 1, "ann", month::begin_us(october() + 2)).unwrap();
    assert!(
        !adjust(&place.ledger(), &credit("second outage"), "ann", month::begin_us(october() + 2)).unwrap()
    );
    assert_eq!(entered(&place), [of(october(), -50_000_000_000_000), of(october() + 1, -50_000_000_000_000)]);
    let rates = Store::open_read(&place.ledger()).unwrap().rates().unwrap();
    assert!(rates.iter().any(|rate| &*rate.entry == "second outage" && rate.currency == Currency::USD));
}

/// No file of that month was ever there, so that none is absent.
#[test]
fn adjustment_of_a_month_without_file_is_billed_in_the_open_one() {
    let place = with_october();
    let old = Adjustment::new("acme", -1, Currency::USD, october() - 12, "credit").unwrap();
    for is_new in [true, false] {
        assert_eq!(adjust(&place.ledger(), &old, "ann", november_us()).unwrap(), is_new);
    }
    let day = month::day(month::begin_us(october() - 12));
    assert_eq!(entered(&place), [(october() + 1, day, "acme".to_owned(), -1)]);
    assert!(verify(&place.ledger(), None).unwrap().iter().all(|verdict| verdict.differences.is_empty()));
    assert!(Store::open_read(&place.ledger()).unwrap().gone().unwrap().is_empty());
    close(&place.ledger(), october(), "ann", november_us()).unwrap();
}

#[test]
fn impossible_adjustments_are_refused() {
    let place = with_october();
    for (tenant, pico, reason, part) in [
        ("acme", 0, "x", "zero"),
        ("acme", i128::from(i64::MAX) + 1, "x", "9.2 million"),
        ("", 1, "x", "the tenant must have"),
        ("acme", 1, "", "the reason must have"),
        ("acme", 1, "a\nb", "control"),
    ] {
        let error = Adjustment::new(tenant, pico, Currency::USD, october(), reason).unwrap_err();
        assert!(error.message.contains(part), "{error}");
    }
    let later = Adjustment::new("acme", 1, Currency::USD, october() + 2, "x").unwrap();
    let error = adjust(&place.ledger(), &later, "ann", november_us()).unwrap_err();
    assert!(error.message.contains("2026-12 has not begun"), "{error}");
    assert_eq!(entered(&place), []);
}

#[test]
fn shipped_ledger_is_amended_at_its_store() {
    let place = with_october();
    let open = File::open(&place.ledger()).unwrap();
    let store = "postgres://meter@db/spend";
    crate::file::set_fact(
        &open.connection,
        ships_to::SHIPS_TO,
        rusqlite::types::ValueRef::Text(store.as_bytes()),
    )
    .unwrap();
    drop(open);
    let closed = close(&place.ledger(), october(), "ann", november_us()).unwrap_err();
    let command = "`tokenmeter ledger close 2026-10 --ledger postgres://OWNER@db/spend`";
    assert!(closed.message.contains(command), "{closed}");
    let adjusted = adjust(&place.ledger(), &credit("outage"), "ann", november_us()).unwrap_err();
    assert!(adjusted.message.contains("tokenmeter ledger adjust … --ledger postgres://"), "{adjusted}");
    assert_eq!(entered(&place), []);
}
