//! Adjustments in reports: money of a tenant in a month, in every form and in every total, also beside rows.

use ledger::testing::NOON_US;
use ledger::total_key::ADJUSTMENT;
use ledger::{Adjustment, Calendar, Range, Source, Store, Zone, adjust, close, month};
use price::Currency;

use crate::focus::{self, Billing, Options, Version};
use crate::query::RowsFor;
use crate::tests::query;
use crate::{Basis, Column, Key, Query, Report, json, make, sheet, table};

fn text(write: impl Fn(&mut Vec<u8>)) -> String {
    let mut bytes = Vec::new();
    write(&mut bytes);
    String::from_utf8(bytes).unwrap()
}

fn forms(report: &Report) -> [String; 3] {
    [
        text(|to| table::write(report, None, to).unwrap()),
        text(|to| sheet::write(report, &Column::usual(&report.query), None, to).unwrap()),
        text(|to| json::write(report, None, to).unwrap()),
    ]
}

fn dataset(source: &dyn Source) -> String {
    let options = Options {
        version: Version::V1_2,
        billing: Billing::Chargeback,
        issuer: "platform".into(),
        service: "LLM Inference".into(),
    };
    let asked = Query { now_us: NOON_US, ..query(&[]) };
    text(|to| drop(focus::write(source, &asked, &options, None, to).unwrap()))
}

#[test]
fn model_named_as_adjustments_is_none_in_focus() {
    let (mut memory, _) = crate::disk_tests::book(5);
    let name = || ADJUSTMENT.into();
    memory.rows.iter_mut().for_each(|(_, row, _)| row.model = name());
    memory.corrections.iter_mut().for_each(|(_, made)| made.line.key.model = name());
    let dataset = dataset(&memory);
    assert!(dataset.contains("Price of __adjustment__ changed"), "{dataset}");
    assert!(!dataset.contains("Adjustment: "), "{dataset}");
}

/// An adjustment gives no exchange another price, and it has no row that could be missing.
#[test]
fn adjustment_adds_no_note() {
    let place = ledger::testing::Place::new();
    let at = month::of(NOON_US);
    ledger::testing::write_month(&place.ledger(), at, true, &ledger::testing::Contents::default());
    let adjustment = Adjustment::new("acme", -1, Currency::USD, at, "outage").unwrap();
    assert!(adjust(&place.ledger(), &adjustment, "ann", NOON_US).unwrap());
    for by in [&[Key::Entry][..], &[Key::Entry, Key::Consumer]] {
        let report = make(&Store::open_read(&place.ledger()).unwrap(), &query(by)).unwrap();
        assert_eq!(report.totals[0].sums.cost_pico, -1);
        assert!(!report.notes.first_rates && report.notes.rows_for != Some(RowsFor::Rates), "{by:?}");
    }
}

/// An adjustment has a date and no instant. In any time zone, only the report of the beginning of that date has it.
#[test]
fn adjustment_counts_at_begin_of_its_date() {
    let place = ledger::testing::Place::new();
    let at = month::of(NOON_US);
    for month in [at - 1, at] {
        ledger::testing::write_month(
            &place.ledger(),
            month,
            month == at,
            &ledger::testing::Contents::default(),
        );
    }
    let adjustment = Adjustment::new("acme", -1, Currency::USD, at, "outage").unwrap();
    assert!(adjust(&place.ledger(), &adjustment, "ann", NOON_US).unwrap());
    let cost = |range, zone: Option<&str>| {
        let time_zone = zone.map(|zone| Zone::named(zone).unwrap());
        let report =
            make(&Store::open_read(&place.ledger()).unwrap(), &Query { range, time_zone, ..query(&[]) });
        report.unwrap().totals.iter().map(|total| total.sums.cost_pico).sum::<i128>()
    };
    for zone in ["America/New_York", "Asia/Tokyo", "UTC"] {
        let calendar = Calendar::of(Zone::named(zone).unwrap());
        let of_month = |month| cost(Range::of_month(&calendar, month), Some(zone));
        assert_eq!((of_month(at - 1), of_month(at)), (0, -1), "{zone}");
    }
    let begin_us = month::begin_us(at);
    let noon_us = begin_us + 12 * 3_600_000_000;
    assert_eq!(cost(Range { since_us: begin_us, until_us: noon_us }, None), -1);
    assert_eq!(cost(Range { since_us: noon_us, until_us: 2 * noon_us - begin_us }, None), 0);
}

#[test]
fn report_by_gpu_has_no_adjustment() {
    let (memory, place) = crate::disk_tests::book(5);
    let at = memory.rows.iter().map(|(billed, ..)| *billed).max().unwrap();
    let asked = Query { basis: Basis::Gpu, ..query(&[Key::Tenant, Key::Model]) };
    let groups = || make(&Store::open_read(&place.ledger()).unwrap(), &asked).unwrap().groups;
    let before = groups();
    let adjustment = Adjustment::new("nobody", -1, Currency::USD, at, "outage").unwrap();
    assert!(adjust(&place.ledger(), &adjustment, "ann", month::begin_us(at + 1)).unwrap());
    assert_eq!(groups(), before);
}

#[test]
fn adjustment_is_in_every_form_and_total() {
    let (memory, place) = crate::disk_tests::book(5);
    let path = place.ledger();
    let (first, last) = {
        let months = memory.rows.iter().map(|(billed, ..)| *billed);
        (months.clone().min().unwrap(), months.max().unwrap())
    };
    let now_us = month::begin_us(last + 1) + 1;
    let reports = |by: &[Key]| make(&Store::open_read(&path).unwrap(), &query(by)).unwrap();
    let total = |report: &Report| report.totals.iter().map(|total| total.sums.cost_pico).sum::<i128>();
    let keys = [&[Key::Tenant, Key::Currency][..], &[Key::Consumer], &[Key::Version, Key::Month], &[]];
    let before = keys.map(|by| total(&reports(by)));
    let enter = |pico, currency, reason: &str| {
        let adjustment = Adjustment::new("acme", pico, currency, first, reason).unwrap();
        assert!(adjust(&path, &adjustment, "ann", now_us).unwrap());
    };
    enter(-50_000_000_000_000, Currency::USD, "outage");
    enter(7_000_000_000_001, Currency(*b"EUR"), "support");
    for (by, before) in keys.into_iter().zip(before) {
        assert_eq!(total(&reports(by)), before - 42_999_999_999_999, "{by:?}");
    }
    let report = reports(&[Key::Tenant, Key::Currency, Key::Entry, Key::Class]);
    for form in forms(&report) {
        for part in ["outage", "-50.00", "support", "7.000000000001", "EUR"] {
            assert!(form.contains(part), "{part} is not in {form}");
        }
    }
    // Of a closed month, it is billed later.
    for month in first..last {
        close(&path, month, "ann", now_us).unwrap();
    }
    enter(-1_000_000_000_000, Currency::USD, "late");
    let dataset = dataset(&Store::open_read(&path).unwrap());
    let mut rows = csv::Reader::from_reader(dataset.as_bytes());
    let header = rows.headers().unwrap().clone();
    let of = |row: &csv::StringRecord, name: &str| {
        row[header.iter().position(|column| column == name).unwrap()].to_owned()
    };
    let mut found: Vec<_> = rows
        .records()
        .map(Result::unwrap)
        .filter(|row| of(row, "ChargeDescription").starts_with("Adjustment: "))
        .map(|row| {
            [
                "ChargeDescription",
                "ChargeCategory",
                "ChargeClass",
                "BilledCost",
                "SubAccountId",
                "ProviderName",
                "x_ModelId",
            ]
            .map(|name| of(&row, name))
            .join("|")
        })
        .collect();
    found.sort();
    assert_eq!(
        found,
        [
            "Adjustment: late|Adjustment|Correction|-1.00|acme|platform|",
            "Adjustment: outage|Adjustment||-50.00|acme|platform|",
            "Adjustment: support|Adjustment||7.000000000001|acme|platform|",
        ]
    );
}
