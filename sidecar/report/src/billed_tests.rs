//! The month in which a correction is billed: its own until that is closed, and then the open one.

use std::sync::Arc;
use std::time::Duration;

use ledger::source::{DAY_US, Month, Range, Source};
use ledger::testing::{NOON_US, Place, row};
use ledger::{Ledger, Plan, Row, Store, close, month, start, verify};
use price::{Book, Charge};

use crate::{Reprice, reprice};

const LONG: Duration = Duration::from_secs(30);

/// The second of November.
const NOVEMBER_US: i64 = NOON_US + 18 * DAY_US;

fn at(us: i64, place: &Place) -> Ledger {
    start(Plan { clock: Arc::new(move || us), ..Plan::new(place.ledger()) })
}

fn book(output: &str) -> Book {
    let text = format!(
        "version: v{output}\ncurrency: USD\nmodels:\n- {{pattern: 'model-*', input: 1, output: {output}}}\n"
    );
    Book::read(&text).unwrap().0
}

fn of_october<'a>(book: &'a Book) -> Reprice<'a> {
    let october = month::of(NOON_US);
    let range = Range { since_us: month::begin_us(october), until_us: month::begin_us(october + 1) };
    Reprice { range, filters: &[], unpriced_only: false, book, who: "ann", at_us: NOVEMBER_US }
}

fn cost(book: &Book, rows: &[Row]) -> i128 {
    let of = |row: &Row| match row.charge_again(book) {
        Charge::Priced { cost, .. } => i128::from(cost),
        Charge::Unpriced(why) => panic!("{why:?}"),
    };
    rows.iter().map(of).sum()
}

/// The bill of a month.
fn billed(place: &Place, of: Month) -> i128 {
    let mut sum = 0;
    let store = Store::open_read(&place.ledger()).unwrap();
    let mut add = |month: Month, line: &ledger::DailyTotal| {
        sum += if month == of { line.sums.cost_pico } else { 0 };
        Ok(())
    };
    store.daily_totals(&Range::ALL, &mut add).unwrap();
    sum
}

#[test]
fn correction_is_billed_in_its_month_until_closed() {
    let place = Place::new();
    let (october, november) = (month::of(NOON_US), month::of(NOON_US) + 1);
    let rows: Vec<Row> = (0..20).map(row).collect();
    let ledger = at(NOON_US, &place);
    rows.iter().for_each(|row| ledger.enter(row.clone()));
    assert!(ledger.shutdown(LONG));
    // November's rows are written while October is corrected.
    let ledger = at(NOVEMBER_US, &place);
    let new = |n| Row { ended_us: NOVEMBER_US, id: row(100 + n).id, ..row(n) };
    let Charge::Priced { cost: of_november, .. } = new(1).charge else { panic!("it has a price") };
    ledger.enter(new(1));
    ledger.enter(new(7));
    while ledger.status().rows_total < 2 {
        std::thread::sleep(Duration::from_millis(5));
    }

    let first = book("2");
    let done = reprice(&place.ledger(), &of_october(&first)).unwrap();
    assert_eq!((done.exchanges, done.newly_priced), (20, 3), "each seventh row had no price");
    assert_eq!(done.entered, done.differing);
    assert_eq!(billed(&place, october), cost(&first, &rows));
    assert_eq!(billed(&place, november), i128::from(of_november));
    assert_eq!(reprice(&place.ledger(), &of_october(&first)).unwrap().entered, 0, "once");

    let signed = close(&place.ledger(), october, "ann", NOVEMBER_US).unwrap();
    assert_eq!(signed.document["unpriced_exchanges"], 0, "{}", signed.document);
    let total = text::money(cost(&first, &rows)).to_string();
    assert_eq!(signed.document["cost"]["USD"], *total);

    let second = book("3");
    let done = reprice(&place.ledger(), &of_october(&second)).unwrap();
    assert_eq!((done.entered, done.newly_priced), (20, 0));
    assert_eq!(billed(&place, october), cost(&first, &rows), "the bill of a closed month does not change");
    let difference = cost(&second, &rows) - cost(&first, &rows);
    assert_eq!(billed(&place, november), i128::from(of_november) + difference);
    assert!(ledger.shutdown(LONG));
    let signed = close(&place.ledger(), november, "ann", NOVEMBER_US + 30 * DAY_US).unwrap();
    assert_eq!(signed.document["unpriced_exchanges"], 1, "its own: {}", signed.document);
    for verdict in verify(&place.ledger(), None).unwrap() {
        assert_eq!(verdict.differences, [], "{}", verdict.path.display());
    }
}
