//! Exchanges to which `reprice` gives a first or another price: reports and FOCUS of a ledger on disk, before and after
//! its month is closed, with and without its rows.

use std::time::Duration;

use ledger::source::{DAY_US, Month, Range};
use ledger::testing::{NOON_US, Place, rate, retain, row};
use ledger::{EnergyRow, Plan, Row, Store, close, month, start, verify};
use price::{Book, Charge, Unpriced};

use crate::focus::{self, Billing, Options, Version};
use crate::tests::query;
use crate::{Basis, Column, Filter, Group, Key, Outcome, Query, Report, Reprice, make, reprice};

/// Exchanges of `m-new` with more than 50 input tokens have another price.
const PRICES: &str = "\
version: second
currency: USD
unit: per_million
models:
  - {name: m-new, input: 1, output: 2, per_request: 0.25, context_tiers: [{above_input_tokens: 50, input: 3, output: 5}]}
  - {name: m-plain, input: 7, output: 9}
";

/// The price of `m-plain` is that of the second book.
const LATER_PRICES: &str = "\
version: third
currency: USD
unit: per_million
models:
  - {name: m-new, input: 2, output: 3}
  - {name: m-plain, input: 7, output: 9}
  - {name: llama, input: 4, output: 6}
";

const ROWS: u64 = 300;

fn october() -> Month {
    month::of(NOON_US)
}

fn november_us() -> i64 {
    month::begin_us(october() + 1) + DAY_US
}

/// One third of the rows has a price; some of each other third end with an error.
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
    Row { status: if n.is_multiple_of(9) { 0 } else { 200 }, charge, ..row }
}

/// October's exchanges and their energy, and no rows in November.
fn ledger() -> Place {
    let place = Place::new();
    let write = |now_us: i64, rows: std::ops::Range<u64>| {
        let ledger = start(Plan { clock: std::sync::Arc::new(move || now_us), ..Plan::new(place.ledger()) });
        for n in rows {
            ledger.enter(exchange(n));
            let used = ledger::source::Used { energy_nj: Some(n + 1), ..Default::default() };
            ledger.energy(EnergyRow::of(&exchange(n), used));
        }
        assert!(ledger.shutdown(Duration::from_secs(30)), "{:?}", ledger.status());
    };
    write(NOON_US, 0..ROWS);
    write(november_us(), 0..0);
    place
}

fn priced(place: &Place) {
    let done = charged_again(place, PRICES, true);
    assert_eq!((done.newly_priced, done.entered), (200, 200));
}

fn charged_again(place: &Place, prices: &str, unpriced_only: bool) -> Outcome {
    let (book, _) = Book::read(prices).unwrap_or_else(|problems| panic!("{problems:?}"));
    let request = Reprice {
        range: Range::ALL,
        filters: &[],
        unpriced_only,
        book: &book,
        who: "ann",
        at_us: november_us(),
    };
    let done = reprice(&place.ledger(), &request).unwrap();
    for verdict in verify(&place.ledger(), None).unwrap() {
        assert_eq!(verdict.differences, []);
    }
    done
}

/// Removes all rows of October, as retention does a day after their limit.
fn without_rows(place: &Place) {
    let later = november_us() + 10 * DAY_US;
    for now_us in (0..40).map(|n| later + n * DAY_US / 20).chain(std::iter::repeat_n(later + 2 * DAY_US, 4)) {
        retain(&place.ledger(), now_us, &|_| true);
    }
    let mut rows = 0;
    let store = Store::open_read(&place.ledger()).unwrap();
    ledger::Source::rows(&store, &Range::ALL, &mut |_, _, _| {
        rows += 1;
        Ok(())
    })
    .unwrap();
    assert_eq!(rows, 0);
}

/// Exchanges, tokens and cost by version of the price book.
fn by_version(place: &Place, billed: Option<Month>) -> Vec<(String, i128, i128, i128)> {
    let groups = report(place, &Query { billed, ..query(&[Key::Version]) }).groups;
    let of = |group: Group| {
        let sums = group.sums;
        (group.values[0].to_string(), sums.exchanges, sums.input() + sums.output(), sums.cost_pico)
    };
    groups.into_iter().map(of).collect()
}

/// The expected result of [`by_version`] for exchanges of these models, charged by this book.
fn expected(version: &str, models: &[&str], prices: &str) -> (String, i128, i128, i128) {
    let (book, _) = Book::read(prices).unwrap_or_else(|problems| panic!("{problems:?}"));
    let rows: Vec<_> = (0..ROWS).map(exchange).filter(|row| models.contains(&&*row.model)).collect();
    let tokens = rows.iter().flat_map(|row| row.tokens.by_type).map(i128::from).sum();
    let cost = |row: &Row| i128::from(row.charge_again(&book).cost().unwrap());
    (version.to_owned(), i128::try_from(rows.len()).unwrap(), tokens, rows.iter().map(cost).sum())
}

fn report(place: &Place, asked: &Query) -> Report {
    make(&Store::open_read(&place.ledger()).unwrap(), asked).unwrap()
}

/// Checks that no group is without a price, and that the sums are those of all exchanges.
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
            let Report { groups, totals, notes, .. } = report(place, &query(&by));
            let sum = |of: &dyn Fn(&Group) -> i128| groups.iter().map(of).sum::<i128>();
            assert!(
                groups.iter().all(|group| group.currency.is_some() && group.sums.unpriced == 0),
                "{groups:#?}"
            );
            assert_eq!(sum(&|group| group.sums.exchanges), i128::from(ROWS), "{by:?}");
            assert_eq!(sum(&|group| group.sums.input() + group.sums.output()), tokens(), "{by:?}");
            assert_eq!(sum(&|group| group.sums.gpu.energy_nj), i128::from(ROWS * (ROWS + 1) / 2), "{by:?}");
            assert_eq!((totals.len(), totals[0].sums.exchanges), (1, i128::from(ROWS)));
            assert!(notes.unpriced.values().all(|count| *count == 0), "{notes:?}");
        }
    }
    let filters = vec![Filter::read("currency=USD").unwrap()];
    let dollars = report(place, &Query { filters, ..query(&[Key::Model]) });
    assert_eq!(dollars.groups, report(place, &query(&[Key::Model])).groups);
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
    focus::write(&store, &Query { billed, basis: Basis::Price, ..query(&[]) }, &options, None, &mut text)
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
    assert!(report(&place, &query(&[Key::Model])).groups.iter().any(|group| group.sums.unpriced == 100));
    priced(&place);
    all_is_priced(&place);
}

#[test]
fn focus_has_usage_priced_in_open_month() {
    let place = ledger();
    assert!(sum(&dataset(&place, None), "Tokens", 4) < tokens());
    priced(&place);
    for billed in [None, Some(october())] {
        let rows = dataset(&place, billed);
        assert_eq!(sum(&rows, "Tokens", 4), tokens());
        assert_eq!(sum(&rows, "Tokens", 5), i128::from(ROWS));
        assert!(rows.iter().all(|row| row[1].is_empty() && row[2] == "Usage"), "{rows:#?}");
        // Of 100 exchanges of `m-new`, 33 or 34 had no success and do not pay the request price.
        let failed = (0..ROWS).step_by(3).filter(|n| n % 9 == 0).count();
        assert_eq!(sum(&rows, "Requests", 4), 100 - i128::try_from(failed).unwrap());
    }
}

#[test]
fn focus_has_usage_priced_after_close_as_correction() {
    let place = ledger();
    close(&place.ledger(), october(), "ann", november_us()).unwrap();
    let billed =
        |month| report(&place, &Query { billed: Some(month), ..query(&[Key::Model, Key::Currency]) });
    let (as_billed, as_charged) = (billed(october()), dataset(&place, Some(october())));
    priced(&place);
    all_is_priced(&place);
    assert_eq!(billed(october()).groups, as_billed.groups, "the bill does not change");
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
    let whole = report(&place, &query(&[Key::Currency]));
    without_rows(&place);
    let mut without = report(&place, &query(&[Key::Currency])).groups;
    // Several prices were given: without rows, the tokens of each are not known.
    let cells = |group: &Group| {
        let costs = [Column::CostPerInput, Column::CostPerTokens];
        costs.map(|column| column.cell(group, &whole.query, Some(6)).to_string())
    };
    assert_eq!(cells(&without[0]), ["", ""]);
    assert_ne!(cells(&whole.groups[0]), cells(&without[0]));
    without[0].sums.units = whole.groups[0].sums.units.clone();
    assert_eq!(without, whole.groups);
}

#[test]
fn counts_and_money_stand_under_the_last_rate() {
    let place = ledger();
    priced(&place);
    assert_eq!(charged_again(&place, LATER_PRICES, false).entered, 200);
    let plain = expected("second", &["m-plain"], LATER_PRICES);
    let others = expected("third", &["m-new", "llama"], LATER_PRICES);
    assert_eq!(by_version(&place, None), [plain.clone(), others.clone()]);
    assert_eq!(by_version(&place, Some(october())), [plain, others.clone()]);
    let filters = vec![Filter::read("version=third").unwrap()];
    let third = report(&place, &Query { filters, ..query(&[Key::Class]) });
    assert_eq!(third.totals[0].sums.cost_pico, others.3);
    let said = third.sentences(None).join("; ");
    assert!(said.contains("made from rows: exchanges were charged again"), "{said}");
    assert!(!said.contains("without rows"), "{said}");
    assert!(report(&place, &query(&[Key::Model])).notes.rows_for.is_none());
    let rows = dataset(&place, None);
    assert!(rows.iter().all(|row| row[1].is_empty() && row[2] == "Usage"), "{rows:#?}");
    assert_eq!((sum(&rows, "Tokens", 4), sum(&rows, "Tokens", 5)), (tokens(), i128::from(ROWS)));
}

#[test]
fn closed_month_keeps_the_rate_it_billed() {
    let place = ledger();
    priced(&place);
    close(&place.ledger(), october(), "ann", november_us()).unwrap();
    let (billed, charged) = (by_version(&place, Some(october())), dataset(&place, Some(october())));
    assert_eq!(charged_again(&place, LATER_PRICES, false).entered, 200);
    assert_eq!(by_version(&place, Some(october())), billed);
    assert_eq!(dataset(&place, Some(october())), charged);
    let november = by_version(&place, Some(october() + 1));
    assert_eq!(november.len(), 1);
    assert_eq!((november[0].0.as_str(), november[0].1, november[0].2), ("third", 0, 0));
    let late = dataset(&place, Some(october() + 1));
    assert!(late.iter().all(|row| row[1] == "Correction" && row[4].is_empty()), "{late:#?}");
    let others = expected("third", &["m-new", "llama"], LATER_PRICES);
    assert_eq!(by_version(&place, None)[1], others);
}

#[test]
fn report_notes_counts_under_first_rate() {
    let place = ledger();
    assert_eq!(charged_again(&place, LATER_PRICES, false).entered, ROWS);
    without_rows(&place);
    let asked = query(&[Key::Version]);
    let said = report(&place, &asked).sentences(None).join("; ");
    assert!(said.contains("are under their first price"), "{said}");
    let of = |filter: &str| {
        let filters = vec![Filter::read(filter).unwrap()];
        report(&place, &Query { filters, ..asked.clone() }).sentences(None).join("; ")
    };
    assert!(of("version=other").contains("under their first price"));
    assert!(!of("model=m-new").contains("under their first price"));
}

/// Corrections of exchanges with a first price stay separate from those without one.
#[test]
fn corrections_without_rows_keep_their_first_charge() {
    let place = ledger();
    priced(&place);
    charged_again(&place, LATER_PRICES, false);
    let of = |filter: &str| {
        let filters = vec![Filter::read(filter).unwrap()];
        let report = report(&place, &Query { filters, ..query(&[]) });
        let sums = report.totals[0].sums.clone();
        ((sums.exchanges, sums.input() + sums.output(), sums.cost_pico), report.notes.left_out)
    };
    let (without, with) = (of("unpriced!="), of("unpriced="));
    let first = expected("", &["m-new", "m-plain"], LATER_PRICES);
    assert_eq!(without.0, (first.1, first.2, first.3));
    without_rows(&place);
    assert_eq!((of("unpriced!="), of("unpriced=")), (without, with));
}

#[test]
fn report_counts_exchanges_known_by_rows_only() {
    let place = ledger();
    priced(&place);
    let left_out = |filter: &str| {
        let filters = vec![Filter::read(filter).unwrap()];
        report(&place, &Query { filters, ..query(&[]) }).notes.left_out
    };
    assert_eq!((left_out("unpriced=model"), left_out("consumer=none")), (0, 0));
    without_rows(&place);
    assert_eq!((left_out("unpriced=model"), left_out("consumer=none")), (200, i128::from(ROWS)));
}
