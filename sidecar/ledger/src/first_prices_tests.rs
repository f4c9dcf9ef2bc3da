//! What was charged without a price and is priced by `reprice`: reports and FOCUS of a ledger on disk, before and
//! after its month is closed, with its rows and without.

use std::time::Duration;

use price::{Book, Charge, Unpriced};

use crate::report::focus::{self, Billing, Options, Version};
use crate::report::source::{DAY_US, Month, Range};
use crate::report::tests::ask;
use crate::report::{Ask, Basis, Filter, Group, Key, Report, make};
use crate::testing::{NOON_US, Place, rate, row};
use crate::{EnergyRow, Plan, Reprice, Row, Store, close, month, reprice, start, verify};

/// Of `m-new`, exchanges of more than 50 input tokens have another price.
const PRICES: &str = "\
version: second
currency: USD
unit: per_million
models:
  - {name: m-new, input: 1, output: 2, per_request: 0.25, context_tiers: [{above_input_tokens: 50, input: 3, output: 5}]}
  - {name: m-plain, input: 7, output: 9}
";

const ROWS: u64 = 300;

fn october() -> Month {
    month::of(NOON_US)
}

fn november_us() -> i64 {
    month::begin_us(october() + 1) + DAY_US
}

/// One third of the rows has a price; of each other third some end with an error.
fn exchange(n: u64) -> Row {
    let model = ["m-new", "m-plain", "llama"][usize::try_from(n % 3).unwrap()];
    let row = Row { model: model.into(), provider: "vllm".into(), tenant: "acme".into(), ..row(n) };
    let charge = match rate(1) {
        Charge::Priced { rate, .. } if n % 3 == 2 => {
            let tokens: u64 = row.tokens.by_type.iter().sum();
            Charge::Priced { cost: i64::try_from(tokens).unwrap() * 1_000_000, rate }
        }
        _ => Charge::Unpriced(Unpriced::Model),
    };
    Row { status: if n.is_multiple_of(9) { 500 } else { 200 }, charge, ..row }
}

/// October's exchanges and their energy, and nothing in November yet.
fn ledger() -> Place {
    let place = Place::new();
    let write = |now_us: i64, rows: std::ops::Range<u64>| {
        let ledger = start(Plan { clock: std::sync::Arc::new(move || now_us), ..Plan::new(place.ledger()) });
        for n in rows {
            ledger.enter(exchange(n));
            let used = crate::report::source::Used { energy_nj: Some(n + 1), ..Default::default() };
            ledger.energy(EnergyRow::of(&exchange(n), used));
        }
        assert!(ledger.shutdown(Duration::from_secs(30)), "{:?}", ledger.status());
    };
    write(NOON_US, 0..ROWS);
    write(november_us(), 0..0);
    place
}

fn priced(place: &Place) {
    let (book, _) = Book::read(PRICES).unwrap_or_else(|problems| panic!("{problems:?}"));
    let wish = Reprice {
        range: Range::ALL,
        filters: &[],
        unpriced_only: true,
        book: &book,
        who: "ann",
        at_us: november_us(),
    };
    let done = reprice(&place.ledger(), &wish).unwrap();
    assert_eq!((done.newly_priced, done.entered), (200, 200));
    for verdict in verify(&place.ledger(), None).unwrap() {
        assert_eq!(verdict.differences, Vec::<String>::new());
    }
}

fn report(place: &Place, asked: &Ask) -> Report {
    make(&Store::open_read(&place.ledger()).unwrap(), asked).unwrap()
}

/// No group is without a price, and the sums are those of all exchanges.
#[track_caller]
fn all_is_priced(place: &Place) {
    for by in [
        Key::Model,
        Key::Currency,
        Key::Class,
        Key::Version,
        Key::Entry,
        Key::Tenant,
        Key::Day,
        Key::Unpriced,
    ] {
        for by in [vec![by], vec![by, Key::Currency]] {
            let Report { groups, totals, notes, .. } = report(place, &ask(&by));
            let sum = |of: &dyn Fn(&Group) -> i128| groups.iter().map(of).sum::<i128>();
            assert!(
                groups.iter().all(|group| group.currency.is_some() && group.sums.unpriced == 0),
                "{groups:#?}"
            );
            assert_eq!(sum(&|group| group.sums.exchanges), i128::from(ROWS), "{by:?}");
            assert_eq!(sum(&|group| group.sums.input() + group.sums.output()), tokens(), "{by:?}");
            assert_eq!(sum(&|group| group.sums.energy_nj), i128::from(ROWS * (ROWS + 1) / 2), "{by:?}");
            assert_eq!((totals.len(), totals[0].sums.exchanges), (1, i128::from(ROWS)));
            assert!(notes.unpriced.values().all(|count| *count == 0), "{notes:?}");
        }
    }
    let filters = vec![Filter::read("currency=USD").unwrap()];
    let dollars = report(place, &Ask { filters, ..ask(&[Key::Model]) });
    assert_eq!(dollars.groups, report(place, &ask(&[Key::Model])).groups);
}

fn tokens() -> i128 {
    (0..ROWS).flat_map(|n| exchange(n).tokens.by_type).map(i128::from).sum()
}

/// Rows of FOCUS: period, class, category, unit, quantity, requests and cost of each.
fn dataset(place: &Place, billed: Option<Month>) -> Vec<[String; 7]> {
    let options = Options {
        version: Version::V1_2,
        billing: Billing::Chargeback,
        issuer: "platform".into(),
        service: "inference".into(),
    };
    let mut text = Vec::new();
    let store = Store::open_read(&place.ledger()).unwrap();
    focus::write(&store, &Ask { billed, basis: Basis::Price, ..ask(&[]) }, &options, None, &mut text)
        .unwrap();
    let mut sheet = csv::Reader::from_reader(text.as_slice());
    let names = [
        "ChargePeriodStart",
        "ChargeClass",
        "ChargeCategory",
        "ConsumedUnit",
        "ConsumedQuantity",
        "x_RequestCount",
        "EffectiveCost",
    ];
    let header = sheet.headers().unwrap().clone();
    let places = names.map(|name| header.iter().position(|is| is == name).unwrap());
    sheet.records().map(|record| places.map(|at| record.as_ref().unwrap()[at].to_owned())).collect()
}

fn sum(rows: &[[String; 7]], unit: &str, column: usize) -> i128 {
    let of_it = rows.iter().filter(|row| row[3] == unit && !row[column].is_empty());
    of_it.map(|row| row[column].parse::<i128>().unwrap()).sum()
}

#[test]
fn counts_stand_under_the_first_price() {
    let place = ledger();
    assert!(report(&place, &ask(&[Key::Model])).groups.iter().any(|group| group.sums.unpriced == 100));
    priced(&place);
    all_is_priced(&place);
}

#[test]
fn focus_has_the_usage_of_what_was_priced_in_an_open_month() {
    let place = ledger();
    assert!(sum(&dataset(&place, None), "Tokens", 4) < tokens());
    priced(&place);
    for billed in [None, Some(october())] {
        let rows = dataset(&place, billed);
        assert_eq!(sum(&rows, "Tokens", 4), tokens());
        assert_eq!(sum(&rows, "Tokens", 5), i128::from(ROWS));
        assert!(rows.iter().all(|row| row[1].is_empty() && row[2] == "Usage"), "{rows:#?}");
        // Of 100 exchanges of `m-new`, 33 or 34 failed and cost no request.
        let failed = (0..ROWS).step_by(3).filter(|n| n % 9 == 0).count();
        assert_eq!(sum(&rows, "Requests", 4), 100 - i128::try_from(failed).unwrap());
    }
}

#[test]
fn focus_has_the_usage_of_what_was_priced_after_the_close_as_corrections() {
    let place = ledger();
    close(&place.ledger(), october(), "ann", november_us()).unwrap();
    let billed = |month| report(&place, &Ask { billed: Some(month), ..ask(&[Key::Model, Key::Currency]) });
    let (as_billed, as_charged) = (billed(october()), dataset(&place, Some(october())));
    priced(&place);
    all_is_priced(&place);
    assert_eq!(billed(october()).groups, as_billed.groups, "what was billed does not change");
    assert_eq!(dataset(&place, Some(october())), as_charged);
    let november = billed(october() + 1);
    assert!(november.groups.iter().all(|group| (group.sums.exchanges, group.sums.unpriced) == (0, 0)));
    let late = dataset(&place, Some(october() + 1));
    assert!(late.iter().all(|row| row[0].starts_with("2026-10-01") && row[1] == "Correction"), "{late:#?}");
    let both = [as_charged, late].concat();
    assert_eq!(sum(&both, "Tokens", 4), tokens());
    assert_eq!(sum(&both, "Tokens", 5), i128::from(ROWS));
}

#[test]
fn counts_without_rows_stand_under_the_first_price() {
    let place = ledger();
    priced(&place);
    let whole = report(&place, &ask(&[Key::Currency]));
    let step = |now_us| crate::retain::step(&place.ledger(), 1, &|_| true, "test", now_us).unwrap();
    // A clock is trusted when it has run on for a day.
    let later = november_us() + 10 * DAY_US;
    for now_us in (0..40).map(|n| later + n * DAY_US / 20).chain(std::iter::repeat_n(later + 2 * DAY_US, 4)) {
        step(now_us);
    }
    let store = Store::open_read(&place.ledger()).unwrap();
    let mut rows = 0;
    crate::report::Source::rows(&store, &Range::ALL, &mut |_, _, _| {
        rows += 1;
        Ok(())
    })
    .unwrap();
    assert_eq!(rows, 0, "they are gone");
    assert_eq!(report(&place, &ask(&[Key::Currency])).groups, whole.groups);
}
