//! Statements of small ledgers: the page as text, its numbers beside a naive sum of the rows, and hostile names.

#![allow(clippy::unwrap_used, reason = "tests fail by panics")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use ledger::corrections::{ChargeChange, id_of};
use ledger::source::{Correction, DAY_US, Gap, Month};
use ledger::testing::{Contents, NOON_US, Place, rate, row, write_month};
use ledger::{Adjustment, Calendar, Range, Row, Source, Store, Zone, month};
use meter::TokenType;
use price::{Charge, Currency, Rate};
use report::focus::{self, Billing, Options, Version};

use crate::{Bill, Statement};

const OCTOBER: Month = 681;
const NOW_US: i64 = 1_900_000_000_000_000;

/// The tenant of the tests. As a pattern it would match others, too.
const ACME: &str = "acm?";

fn exchange(n: u64, day: i64, tenant: &str) -> (Month, Row, Option<ledger::source::Used>) {
    let ended_us = NOON_US + day * DAY_US;
    let mut exchange = Row { tenant: tenant.into(), started_us: ended_us - 1, ended_us, ..row(n) };
    exchange.tokens.by_type[TokenType::InputCached as usize] = n;
    (month::of(ended_us), exchange, None)
}

fn rates() -> Vec<Arc<Rate>> {
    let rate = |n| match rate(n) {
        Charge::Priced { rate, .. } => rate,
        Charge::Unpriced(_) => unreachable!("it has a price"),
    };
    vec![rate(0), rate(1)]
}

/// Writes October with charges of three tenants, a correction and a gap.
fn october(ledger: &Path) -> Vec<Row> {
    let rates = rates();
    let rows: Vec<_> = (1..40).map(|n| exchange(n, i64::try_from(n % 16).unwrap(), ACME)).collect();
    let others: Vec<_> =
        ["acme", "acm", "x"].iter().zip(50..).map(|(tenant, n)| exchange(n, 1, tenant)).collect();
    let correction = correction(&rows[0].1, OCTOBER, &rates[0], -1_000_000);
    let gap = Gap { lost_rows: Some(2), ..Gap::unknown(NOON_US, NOON_US + 1, "lost") };
    let contents = Contents {
        rates: &rates,
        rows: rows.iter().chain(&others).collect(),
        corrections: vec![&correction],
        gaps: &[gap],
        ..Contents::default()
    };
    write_month(ledger, OCTOBER, false, &contents);
    rows.into_iter().map(|(_, row, _)| row).collect()
}

fn correction(of: &Row, billed: Month, rate: &Rate, delta_pico: i64) -> Correction {
    let change = ChargeChange {
        billed,
        rate: Some(rate.id),
        first_price: of.charge.cost().is_none(),
        delta_pico: delta_pico.into(),
    };
    let id = id_of(&of.id, of.ended_us, 0);
    Correction { id, made_us: NOON_US, exchange: of.id, line: change.line(of), ended_us: of.ended_us }
}

fn statement(ledger: &Path, tenant: &str, of: Month) -> Result<Statement, String> {
    rounded(ledger, tenant, of, None)
}

fn rounded(ledger: &Path, tenant: &str, of: Month, round: Option<u32>) -> Result<Statement, String> {
    let store = Store::open_read(ledger).unwrap();
    Statement::of(&store, Bill { tenant, month: of, issuer: "Platform team", round }, NOW_US)
        .map_err(|error| error.to_string())
}

fn csv(statement: &Statement) -> String {
    let mut csv = Vec::new();
    statement.csv(&mut csv).unwrap();
    String::from_utf8(csv).unwrap()
}

/// Returns the text of a page without its chart: a line for each row, with bars between its cells.
fn text(page: &str) -> String {
    let (before, rest) = page.split_once("<style>").unwrap();
    let mut page = format!("{before}{}", rest.split_once("</style>").unwrap().1);
    if let Some((before, chart)) = page.split_once("<svg") {
        page = format!("{before}{}", chart.split_once("</svg>").unwrap().1);
    }
    for (tag, text) in [("</td>", " | "), ("</th>", " | "), ("</dt>", ": ")] {
        page = page.replace(tag, text);
    }
    for tag in ["tr", "p", "li", "h1", "h2", "dd", "div", "title"] {
        page = page.replace(&format!("</{tag}>"), "\n");
    }
    let mut text = String::new();
    for part in page.split('<') {
        text.push_str(part.split_once('>').map_or(part, |(_, text)| text));
    }
    for (entity, character) in [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&amp;", "&")] {
        text = text.replace(entity, character);
    }
    text.lines().map(|line| line.trim_end_matches(" | ").to_owned() + "\n").collect()
}

#[test]
fn page_is_as_expected() {
    let place = Place::new();
    october(&place.ledger());
    ledger::close(&place.ledger(), OCTOBER, "finance", NOW_US).unwrap();
    let shown = statement(&place.ledger(), ACME, OCTOBER).unwrap();
    let digest =
        Store::open_read(&place.ledger()).unwrap().closure(OCTOBER).unwrap().digest().cloned().unwrap();
    assert_eq!(shown.number(), format!("2026-10-acm%3F-{}", &digest[..8]));
    let page = text(&shown.html()).replace(&*digest, "DIGEST").replace(&digest[..8], "DIGEST");
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/src/testing/statement.txt");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(golden, &page).unwrap();
    }
    assert_eq!(page, std::fs::read_to_string(golden).unwrap(), "UPDATE_GOLDEN=1 writes {golden}");
}

/// Sums the rows without the report.
#[test]
fn numbers_are_the_sums_of_the_rows() {
    let place = Place::new();
    let rows = october(&place.ledger());
    let page = text(&statement(&place.ledger(), ACME, OCTOBER).unwrap().html());
    let mut models: BTreeMap<&str, (u64, i128)> = BTreeMap::new();
    let mut days: BTreeMap<String, (u64, i128)> = BTreeMap::new();
    for row in &rows {
        let cost =
            i128::from(row.charge.cost().unwrap_or(0)) - if row.id == rows[0].id { 1_000_000 } else { 0 };
        let day = ledger::period::day(month::day(row.ended_us));
        for sum in [models.entry(&row.model).or_default(), days.entry(day).or_default()] {
            sum.0 += 1;
            sum.1 += cost;
        }
    }
    let all: i128 = models.values().map(|(_, cost)| cost).sum();
    for (name, (exchanges, cost)) in models.into_iter().map(|(name, sum)| (name.to_owned(), sum)).chain(days)
    {
        let line = page.lines().find(|line| line.starts_with(&format!("{name} | {exchanges} | "))).unwrap();
        let cost = text::money(cost).to_string();
        assert!(line.contains(&format!(" | {}", cost.trim_end_matches('0'))), "{cost} in {line}");
    }
    assert!(page.contains(&format!("Total: {} USD", text::money(all))), "{page}");
}

#[test]
fn closed_month_gives_the_same_bytes_whatever_follows() {
    let place = Place::new();
    let rows = october(&place.ledger());
    ledger::close(&place.ledger(), OCTOBER, "finance", NOW_US).unwrap();
    let bytes = || {
        let made = statement(&place.ledger(), ACME, OCTOBER).unwrap();
        (made.number().to_owned(), made.html(), csv(&made))
    };
    let first = bytes();
    // A late exchange, corrections of October's charges (one was without a price), and a gap.
    let rates = rates();
    let late = exchange(60, 2, ACME);
    let unpriced = rows.iter().find(|row| row.charge.cost().is_none()).unwrap();
    let made = |of, delta_pico| correction(of, OCTOBER + 1, &rates[1], delta_pico);
    let corrections = [made(&rows[1], 5_000_000), made(unpriced, 70)];
    let from_us = month::begin_us(OCTOBER + 1);
    let gap = Gap::unknown(from_us, from_us + 9, "restored");
    let contents = Contents {
        rates: &rates,
        rows: vec![&late],
        corrections: corrections.iter().collect(),
        gaps: &[gap],
        ..Contents::default()
    };
    write_month(&place.ledger(), OCTOBER + 1, true, &contents);
    assert!(bytes() == first, "the statement of a closed month changed");
    // Retention deletes October's rows, so that only daily totals are left of it.
    let later_us = NOON_US + 100 * DAY_US;
    (0..2).for_each(|day| ledger::testing::retain(&place.ledger(), later_us + day * DAY_US, &|_| true));
    let mut rows = 0;
    let store = Store::open_read(&place.ledger()).unwrap();
    let mut count = |billed, _: &_, _: Option<&_>| {
        rows += i32::from(billed == OCTOBER);
        Ok(())
    };
    store.rows(&Range::ALL, &mut count).unwrap();
    assert_eq!(rows, 0);
    assert!(bytes() == first, "the statement changed with the deletion of rows");
    let november = statement(&place.ledger(), ACME, OCTOBER + 1).unwrap();
    assert_eq!(november.number(), "2026-11-acm%3F-DRAFT");
    let page = text(&november.html());
    for part in
        ["Draft: 2026-11 is not closed", "Usage of 2026-10 | 1 | ", "Corrections of charges of 2026-10"]
    {
        assert!(page.contains(part), "{part} in {page}");
    }
}

#[test]
fn adjustments_have_their_reasons_and_no_price() {
    let place = Place::new();
    october(&place.ledger());
    for (pico, currency, reason) in [
        (-50_000_000_000_000, Currency::USD, "outage of <12> October"),
        (7_000_000_000_001, Currency(*b"EUR"), "support"),
    ] {
        let made = Adjustment::new(ACME, pico, currency, OCTOBER, reason).unwrap();
        assert!(ledger::adjust(&place.ledger(), &made, "ann", NOW_US).unwrap());
    }
    ledger::close(&place.ledger(), OCTOBER, "finance", NOW_US).unwrap();
    let page = text(&statement(&place.ledger(), ACME, OCTOBER).unwrap().html());
    for line in [
        "Corrections and adjustments of charges of 2026-10 | 0 | 7.000000000001 EUR",
        "support | 2026-10 | 7.000000000001 EUR",
        "outage of <12> October | 2026-10 | -50.000000000000 USD",
        "Adjustments | 0 | 0 | 0 | 0 | 0 | -50.000000000000 USD",
    ] {
        assert!(page.lines().any(|found| found == line), "{line} in {page}");
    }
    assert_eq!(page.matches("support").count(), 1, "{page}");
    assert!(!page.contains("__adjustment__"), "{page}");
}

/// A client chooses the name of a model, but not that of a provider.
#[test]
fn model_named_like_an_adjustment_is_a_model() {
    let place = Place::new();
    let mut named = exchange(1, 0, ACME);
    named.1.model = ledger::total_key::ADJUSTMENT.into();
    let contents = Contents { rates: &rates(), rows: vec![&named], ..Contents::default() };
    write_month(&place.ledger(), OCTOBER, false, &contents);
    write_month(&place.ledger(), OCTOBER + 1, true, &Contents::default());
    let made = Adjustment::new(ACME, -1, Currency::USD, OCTOBER, "outage").unwrap();
    assert!(ledger::adjust(&place.ledger(), &made, "ann", NOW_US).unwrap());
    let page = text(&statement(&place.ledger(), ACME, OCTOBER).unwrap().html());
    for line in [
        "__adjustment__ | 1 | 2 | 1 | 2 | 0.000001000002 USD",
        "Adjustments | 0 | 0 | 0 | 0 | -0.000000000001 USD",
        "Total | 1 | 2 | 1 | 2 | 0.000001000001 USD",
    ] {
        assert!(page.lines().any(|found| found == line), "{line} in {page}");
    }
}

/// Each amount by itself, as in `spend --round`.
#[test]
fn amounts_are_rounded_and_the_difference_is_noted() {
    let place = Place::new();
    october(&place.ledger());
    let made = rounded(&place.ledger(), ACME, OCTOBER, Some(6)).unwrap();
    let page = text(&made.html());
    for line in [
        "Corrections of charges of 2026-10 | 0 | -0.000001 USD",
        "model-1 | 20 | 3 | 800 | 400 | 165 | 0.000016 USD",
        "2026-10-16 | 3 | 0 | 102 | 51 | 20 | 0.000002 USD",
        "Total | 39 | 0.000016 USD",
        "Total: 0.000016 USD",
    ] {
        assert!(page.lines().any(|found| found == line), "{line} in {page}");
    }
    assert!(!page.contains("0.0000160") && !page.contains("the rounded rows"), "{page}");
    let sheet = csv(&made);
    assert!(sheet.starts_with("row,") && sheet.lines().last().unwrap().starts_with("total,"), "{sheet}");
    let page = text(&rounded(&place.ledger(), ACME, OCTOBER, Some(5)).unwrap().html());
    let note = "Usage by model: the rounded rows add up to";
    assert!(page.contains(note) || page.contains("Cost by day: the rounded rows add up to"), "{page}");
}

#[test]
fn number_is_the_invoice_id_of_focus() {
    let place = Place::new();
    october(&place.ledger());
    let focus = |billing| {
        let store = Store::open_read(&place.ledger()).unwrap();
        let query = report::Query { billed: Some(OCTOBER), ..report::Query::all(NOW_US) };
        let (issuer, service) = ("Platform team".to_owned(), "LLM Inference".to_owned());
        let options = Options { version: Version::V1_2, billing, issuer, service };
        let mut bytes = Vec::new();
        focus::write(&store, &query, &options, None, &mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    };
    let open = statement(&place.ledger(), ACME, OCTOBER).unwrap();
    assert!(!focus(Billing::Chargeback).contains(open.number()), "it is a draft");
    ledger::close(&place.ledger(), OCTOBER, "finance", NOW_US).unwrap();
    let closed = statement(&place.ledger(), ACME, OCTOBER).unwrap();
    assert_ne!(closed.number(), open.number());
    let charged = focus(Billing::Chargeback);
    let (mut own, mut others) = (0, 0);
    for row in charged.lines().skip(1) {
        let is_own = row.contains(&format!(",{ACME},{ACME},"));
        assert_eq!(row.contains(&format!(",{},", closed.number())), is_own, "{row}");
        assert!(row.contains(",2026-10-"), "{row}");
        *(if is_own { &mut own } else { &mut others }) += 1;
    }
    assert!(own > 0 && others > 0, "{charged}");
    assert!(!focus(Billing::Showback).contains(closed.number()), "nothing is invoiced");
}

#[test]
fn hostile_names_are_harmless() {
    let place = Place::new();
    let tenant = "<script>alert(1)</script>\"'&\u{202e}\u{200b}";
    let mut hostile = exchange(1, 0, tenant);
    hostile.1.model = "\u{2066}=cmd|'/c calc'!A1</style>".into();
    let contents = Contents { rates: &rates(), rows: vec![&hostile], ..Contents::default() };
    write_month(&place.ledger(), OCTOBER, true, &contents);
    let made = statement(&place.ledger(), tenant, OCTOBER).unwrap();
    let page = made.html();
    for text in ["<script", "\u{202e}", "\u{200b}", "\u{2066}", "http:", "https:", "url(", "@import", " src="]
    {
        let page = page.replace("http://www.w3.org/2000/svg", "");
        assert!(!page.contains(text), "{text:?} in {page}");
    }
    assert!(page.contains(r"&lt;script&gt;alert(1)&lt;/script&gt;&quot;'&amp;\u{202e}\u{200b}"), "{page}");
    assert!(!made.number().contains(['/', '<', '"', '\'', '\u{202e}', ' ']), "{}", made.number());
    assert!(csv(&made).contains(r"\u{2066}=cmd"), "{}", csv(&made));
}

#[test]
fn unknown_tenants_are_errors() {
    let place = Place::new();
    october(&place.ledger());
    for (tenant, of, error) in [
        ("acme2", OCTOBER, "nothing is billed to `acme2` in 2026-10; did you mean `acme`?"),
        (
            "other",
            OCTOBER,
            "nothing is billed to `other` in 2026-10; `tokenmeter spend --billed 2026-10 --by tenant`",
        ),
        ("acme", OCTOBER - 1, "nothing is billed in 2026-09"),
    ] {
        let said = statement(&place.ledger(), tenant, of).unwrap_err();
        assert!(said.starts_with(error), "{said}");
    }
}

#[test]
fn days_are_those_of_the_ledgers_time_zone() {
    let place = Place::new();
    let berlin = Calendar::of(Zone::named("Europe/Berlin").unwrap());
    let first_us = berlin.month_begin_us(OCTOBER);
    let rows = [(2, first_us), (4, berlin.month_begin_us(OCTOBER + 1) - 1)].map(|(n, ended_us)| {
        let (_, row, used) = exchange(n, 0, ACME);
        (OCTOBER, Row { ended_us, day: Some(berlin.day(ended_us)), ..row }, used)
    });
    assert_eq!(month::of(first_us), OCTOBER - 1, "22:00 on September 30 in UTC");
    let rates = rates();
    // A zone that is to begin later is no part of a closed month's page.
    let calendar = berlin.changed(Zone::UTC, OCTOBER);
    let contents = Contents { rates: &rates, rows: rows.iter().collect(), calendar, ..Contents::default() };
    write_month(&place.ledger(), OCTOBER, true, &contents);
    let page = text(&statement(&place.ledger(), ACME, OCTOBER).unwrap().html());
    for part in [
        "Billing period: 2026-10-01 to 2026-10-31, Europe/Berlin\n",
        "Day (Europe/Berlin) | Exchanges",
        "2026-10-01 | 1 | ",
        "2026-10-31 | 1 | ",
    ] {
        assert!(page.contains(part), "{part} in {page}");
    }
    assert!(!page.contains("2026-11"), "{page}");
}
