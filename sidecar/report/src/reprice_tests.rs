//! Repricing of random books on disk.

use std::collections::BTreeSet;

use ledger::source::{Correction, DAY_US, Range, Source};
use ledger::testing::{Contents, NOON_US, Place, row, write_month};
use ledger::{Adjustment, Amendment, Class, DailyTotal, LedgerFolder, Row, Store, adjust, month};
use price::{Book, Charge, Currency, Unpriced};
use text::Glob;

use super::{LISTED_MAX, Reprice, each, rehearse, reprice};
use crate::disk_tests::book;
use crate::memory::{FIRST_DAY, Memory};
use crate::tests::query;
use crate::{Filter, Key, Query, make};

const PRICES: &str = "\
version: second
currency: USD
unit: per_million
models:
  - {pattern: 'llama-*', input: 0.31, cached_input: 0.02, output: 0.77, cache_write_1h: 2, input_audio: 3,
     output_audio: 4, output_image: 5, output_video: 6}
  - {name: unlisted/model, input: 0, output: 0, cache_write_1h: 0, input_audio: 0, output_audio: 0, output_image: 0,
     output_video: 0}
";

fn prices(text: &str) -> Book {
    Book::read(text).unwrap_or_else(|problems| panic!("{problems:?}")).0
}

fn request<'a>(book: &'a Book, filters: &'a [Filter]) -> Reprice<'a> {
    let at_us = 1_800_000_000_000_000;
    Reprice { range: Range::ALL, filters, unpriced_only: false, book, who: "finance", at_us }
}

fn of_model(pattern: &str) -> [Filter; 1] {
    [Filter { key: Key::Model, except: false, patterns: vec![Glob::new(pattern)] }]
}

#[test]
fn tier_lowers_price_only_with_server_tiers() {
    let text = "version: v\ncurrency: USD\nmodels:\n  - {pattern: '*', input: 1, output: 1, cache_write_1h: 1, \
                input_audio: 1, output_audio: 1, output_image: 1, output_video: 1, tiers: {flex: {multiply: 0.5}, priority: {multiply: 2}}}\n";
    let book = prices(text);
    for (provider, tier, times) in [
        ("openai", "flex", 0.5),
        ("vllm", "flex", 1.0),
        ("openai", "priority", 2.0),
        ("vllm", "priority", 2.0),
    ] {
        let plain = Row { provider: provider.into(), service_tier: None, ..row(1) };
        let tiered = Row { service_tier: Some(tier.into()), ..plain.clone() };
        let cost = |row: &Row| row.charge_again(&book).cost().unwrap() as f64;
        assert!(cost(&plain) > 0.0);
        assert_eq!(cost(&tiered), times * cost(&plain), "{provider} {tier}");
    }
}

fn of_models(patterns: &str) -> Query {
    let filters =
        vec![Filter::read(&format!("model={patterns}")).unwrap(), Filter::read("class!=shed").unwrap()];
    Query { filters, ..query(&[]) }
}

#[test]
fn repricing_charges_by_new_book_and_is_idempotent() {
    for seed in 1..=4 {
        let ((memory, place), book) = (book(seed), prices(PRICES));
        let path = place.ledger();
        let corrected = |id| -> i128 {
            let of = memory.corrections.iter().filter(|(_, made)| made.exchange == id);
            of.map(|(_, made)| made.line.sums.cost_pico).sum()
        };
        let expected: i128 = memory
            .rows
            .iter()
            // Other exchanges may be charged as the responding model, and are not checked.
            .filter(|(_, row, _)| row.model.starts_with("llama-") || row.model.starts_with("unlisted"))
            .map(|(_, row, _)| match row.charge_again(&book) {
                Charge::Priced { cost, .. } => i128::from(cost),
                // Exchanges without a price in the new book keep their charge, with its earlier corrections.
                Charge::Unpriced(_) => row.charge.cost().map_or(0, i128::from) + corrected(row.id),
            })
            .sum();
        let mut after = 0;
        for model in ["llama-*", "unlisted*"] {
            let planned =
                rehearse(&Store::open_read(&path).unwrap(), &request(&book, &of_model(model))).unwrap();
            let done = reprice(&path, &request(&book, &of_model(model))).unwrap();
            assert_eq!(done.entered, done.differing);
            assert_eq!(super::Outcome { entered: planned.entered, ..done.clone() }, planned);
            assert!(done.differing > 0 && !done.gone.is_empty(), "{done:?}");
            let listed = || done.changes.values();
            assert!(
                done.changes.len() > 1 && done.changes.keys().all(|(_, is)| Glob::new(model).matches(is))
            );
            assert_eq!(listed().map(|change| change.exchanges).sum::<u64>(), done.differing);
            assert_eq!(listed().map(|change| change.newly_priced).sum::<u64>(), done.newly_priced);
            assert_eq!(listed().map(|change| change.before_pico).sum::<i128>(), done.before_pico);
            assert_eq!(listed().map(|change| change.after_pico).sum::<i128>(), done.after_pico);
            let again = reprice(&path, &request(&book, &of_model(model))).unwrap();
            assert_eq!((again.differing, again.entered), (0, 0));
            after += done.after_pico;
        }
        let store = Store::open_read(&path).unwrap();
        let of_shed: i128 = memory
            .corrections
            .iter()
            .filter(|(_, made)| !memory.rows.iter().any(|(_, row, _)| row.id == made.exchange))
            .filter(|(_, made)| !made.line.key.model.starts_with("qwen"))
            .map(|(_, made)| made.line.sums.cost_pico)
            .sum();
        let report = make(&store, &of_models("llama-*,unlisted*")).unwrap();
        assert_eq!(report.totals[0].sums.cost_pico, expected + of_shed);
        assert!(after <= expected, "unchanged exchanges were counted again");
        let unpriced_rows = memory.shed.iter().filter(|(_, line)| line.key.rate.is_none());
        let corrected_shed = memory.corrections.iter().filter(|(_, made)| made.line.sums.exchanges == 1);
        let corrected_shed = corrected_shed
            .filter(|(_, made)| !memory.rows.iter().any(|(_, row, _)| row.id == made.exchange))
            .count();
        let left =
            make(&store, &Query { filters: vec![Filter::read("model=unlisted*").unwrap()], ..query(&[]) })
                .unwrap();
        let left: i128 = left.totals.iter().map(|total| total.sums.unpriced).sum();
        assert_eq!(left, i128::try_from(unpriced_rows.count() - corrected_shed).unwrap());
    }
}

/// On a day with an adjustment, totals are compared with rows, and the rest of a total may have no exchange.
#[test]
fn exchange_with_row_is_not_listed_as_deleted() {
    let (place, at) = (Place::new(), month::of(NOON_US));
    let charge = Charge::Unpriced(Unpriced::Model);
    let unpriced = Row { model: "llama-3".into(), charge, ended_us: month::begin_us(at), ..row(1) };
    let entered = (at, unpriced, None);
    let contents = Contents { rows: vec![&entered], ..Contents::default() };
    write_month(&place.ledger(), at, true, &contents);
    let adjustment = Adjustment::new("acme", -1, Currency::USD, at, "outage").unwrap();
    assert!(adjust(&place.ledger(), &adjustment, "ann", NOON_US).unwrap());
    for entered in [1, 0] {
        let done = reprice(&place.ledger(), &request(&prices(PRICES), &[])).unwrap();
        assert_eq!((done.entered, done.gone.len()), (entered, 0), "{done:?}");
    }
}

#[test]
fn repricing_leaves_an_audit_event() {
    let ((_, place), book) = (book(3), prices(PRICES));
    let done = reprice(&place.ledger(), &request(&book, &of_model("llama-*"))).unwrap();
    let (mut acts, mut corrections, mut delta) = (0, 0, 0_i128);
    for (_, path) in Store::open_read(&place.ledger()).unwrap().months() {
        let connection = rusqlite::Connection::open(path).unwrap();
        let sql = "SELECT who, detail FROM audit WHERE what = 'repriced' AND who != 'a test'";
        let mut audit = connection.prepare(sql).unwrap();
        let mut rows = audit.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            let detail: serde_json::Value =
                serde_json::from_str(&row.get::<_, String>("detail").unwrap()).unwrap();
            assert_eq!(row.get::<_, String>("who").unwrap(), "finance");
            assert_eq!(detail["book"], **book.hash());
            assert_eq!(detail["version"], "second");
            assert_eq!(detail["of_before_pico"], done.before_pico.to_string());
            assert_eq!(detail["of_after_pico"], done.after_pico.to_string());
            assert!(detail["old_books"].as_array().unwrap().iter().any(|book| book == "hash of 2026-10"));
            acts += 1;
            corrections += detail["corrections"].as_u64().unwrap();
            delta += detail["delta_pico"].as_str().unwrap().parse::<i128>().unwrap();
        }
    }
    assert_eq!((corrections, delta), (done.entered, done.after_pico - done.before_pico));
    assert!(acts > 1, "one for each month");
}

#[test]
fn unpriced_and_absent_rows_are_reported() {
    let memory = Memory::of_chance(8, 300);
    let book = prices("version: v\ncurrency: USD\nmodels:\n  - {name: llama-3, input: 1, output: 2}\n");
    let not_qwen = rehearse(&memory, &request(&book, &of_model("*a*"))).unwrap();
    assert!(not_qwen.unpriced.keys().any(|(model, _)| &**model == "llama-3-70b"), "{not_qwen:?}");
    let kept = |row: &Row| row.ended_us >= memory.kept_since_us;
    let gone = memory.shed.iter().filter(|(_, line)| line.key.model.contains('a')).count()
        + memory.rows.iter().filter(|(_, row, _)| !kept(row) && row.model.contains('a')).count();
    assert_eq!(not_qwen.gone.values().sum::<u64>(), u64::try_from(gone).unwrap());
    let euros = prices(
        "version: v\ncurrency: EUR\nmodels:\n  - {pattern: 'llama*', input: 1, output: 2, cache_write_1h: 1, input_audio: 1, output_audio: 1, output_image: 1, output_video: 1}\n",
    );
    let error = rehearse(&memory, &request(&euros, &[])).unwrap_err().to_string();
    assert!(error.contains("USD") && error.contains("EUR"), "{error}");
}

#[test]
fn concurrent_repricing_corrects_once() {
    let ((_, place), book) = (book(4), prices(PRICES));
    let filters = of_model("llama-*");
    let asked = request(&book, &filters);
    let store = Store::open_read(&place.ledger()).unwrap();
    let (mut made, mut rates, mut outcome) = (Vec::new(), Vec::new(), super::Outcome::default());
    each(&store, &asked, &mut outcome, &mut |correction, rate| {
        made.push(correction);
        rates.push(std::sync::Arc::clone(rate));
        Ok(())
    })
    .unwrap();
    let done = reprice(&place.ledger(), &asked).unwrap();
    assert_eq!(done.entered, u64::try_from(made.len()).unwrap());
    let rates: Vec<_> = rates.iter().map(|rate| &**rate).collect();
    let other = |corrections: &[Correction], cheaper: i128| {
        let mut corrections = corrections.to_vec();
        corrections.iter_mut().for_each(|made| made.line.sums.cost_pico -= cheaper);
        let amendment = Amendment {
            what: "repriced",
            who: "other",
            detail: "{}",
            at_us: asked.at_us + 5,
            rates: &rates,
            corrections: &corrections,
        };
        LedgerFolder::open(&place.ledger()).amend(&amendment).unwrap()
    };
    let months: BTreeSet<_> = made.iter().map(|made| month::of(made.ended_us)).collect();
    assert!(months.len() > 1);
    for month in months {
        let of_it: Vec<_> = made.iter().filter(|made| month::of(made.ended_us) == month).cloned().collect();
        assert_eq!(other(&of_it, 0), 0, "the same");
        assert_eq!(other(&of_it, 7), 0, "by another book");
    }
    let mut lines = 0;
    let store = Store::open_read(&place.ledger()).unwrap();
    store
        .daily_totals(&Range::ALL, &mut |_, line| {
            lines += i128::from(line.key.class == Class::Correction) * line.sums.cost_pico;
            Ok(())
        })
        .unwrap();
    let mut corrections = 0;
    store
        .corrections(&Range::ALL, &mut |_, made| {
            corrections += made.line.sums.cost_pico;
            Ok(())
        })
        .unwrap();
    assert_eq!(lines, corrections, "totals grew by the entered corrections only");
    make(&store, &query(&[Key::Tenant])).unwrap();
}

/// If a part of a day has no rows left, exchanges of other models are not counted as left out.
#[test]
fn left_out_counts_only_selected_models() {
    let memory = Memory { kept_since_us: i64::MAX, ..Memory::of_chance(8, 300) };
    let book = prices(PRICES);
    let first_us = i64::from(FIRST_DAY) * DAY_US;
    let range = Range { since_us: first_us + 1, until_us: first_us + DAY_US / 2 };
    let rows = memory.rows.iter().map(|(_, row, _)| DailyTotal::of_row(row, None));
    let models: Vec<_> = rows
        .chain(memory.shed.iter().map(|(_, line)| line.clone()))
        .filter(|line| line.key.day == FIRST_DAY)
        .map(|line| line.key.model)
        .collect();
    for pattern in [None, Some("qwen*"), Some("llama-3"), Some("none")] {
        let filters: Vec<_> = pattern.into_iter().flat_map(of_model).collect();
        let outcome = rehearse(&memory, &Reprice { range, ..request(&book, &filters) }).unwrap();
        let meant =
            models.iter().filter(|model| pattern.is_none_or(|pattern| Glob::new(pattern).matches(model)));
        assert_eq!(outcome.unlisted, u64::try_from(meant.count()).unwrap(), "{pattern:?}");
        assert!(outcome.gone.is_empty());
    }
}

#[test]
fn repricing_charges_only_selected_rows() {
    let ((memory, place), book) = (book(5), prices(PRICES));
    let filters = ["tenant=acme", "model=llama-*", "dialect=anthropic", "version=2026-10"];
    let filters = filters.map(|text| Filter::read(text).unwrap());
    let done = reprice(&place.ledger(), &request(&book, &filters)).unwrap();
    let rows = memory.rows.iter().filter(|(_, row, _)| {
        let made = memory.corrections.iter().rfind(|(_, made)| made.exchange == row.id);
        let rate = made.map_or(row.rate(), |(_, made)| made.line.key.rate);
        &*row.tenant == "acme"
            && row.model.starts_with("llama-")
            && &*row.dialect == "anthropic"
            && rate == Some(memory.rates[0].id)
    });
    assert_eq!(done.exchanges, u64::try_from(rows.count()).unwrap());
    assert!(done.differing > 0 && done.changes.keys().all(|(tenant, _)| &**tenant == "acme"), "{done:?}");
    let again =
        rehearse(&Store::open_read(&place.ledger()).unwrap(), &request(&book, &filters[..3])).unwrap();
    assert!(again.unchanged >= done.differing, "{again:?}");
    assert_eq!(again.exchanges, again.unchanged + again.differing + again.unpriced.values().sum::<u64>());
}

#[test]
fn last_entered_rate_holds_after_clock_step() {
    let ((_, place), first, second) = (book(5), prices(PRICES), prices(&PRICES.replace("0.31", "0.37")));
    let filters = of_model("llama-*");
    let later = request(&first, &filters);
    assert!(reprice(&place.ledger(), &later).unwrap().entered > 0);
    let earlier = Reprice { at_us: later.at_us - DAY_US, ..request(&second, &filters) };
    let entered = reprice(&place.ledger(), &earlier).unwrap().entered;
    assert!(entered > 0);
    let planned = rehearse(&Store::open_read(&place.ledger()).unwrap(), &request(&first, &filters)).unwrap();
    assert_eq!(planned.differing, entered);
    assert_eq!(planned.books, [std::sync::Arc::clone(second.hash())]);
}

#[test]
fn unpriced_only_leaves_priced_rows() {
    let ((memory, place), book) = (book(6), prices(PRICES));
    let first_prices = memory.corrections.iter().filter(|(_, made)| made.line.sums.exchanges > 0).count();
    let unpriced = memory.rows.iter().filter(|(_, row, _)| row.rate().is_none()).count() - first_prices;
    let asked = Reprice { unpriced_only: true, ..request(&book, &[]) };
    let done = reprice(&place.ledger(), &asked).unwrap();
    assert_eq!(done.exchanges, u64::try_from(unpriced).unwrap());
    assert_eq!((done.newly_priced, done.unchanged), (done.differing, 0));
    assert!(first_prices > 0 && done.differing > 0, "{done:?}");
    assert_eq!(reprice(&place.ledger(), &asked).unwrap().exchanges, done.exchanges - done.differing);
}

/// More corrections than one transaction holds, of a past month, whose file is not in write-ahead mode.
#[test]
fn large_past_month_is_repriced() {
    let place = Place::new();
    let rows = u64::try_from(super::TXN_MAX_CORRECTIONS).unwrap() + 1_000;
    for (now_us, rows) in [(NOON_US, 0..rows), (NOON_US + 40 * DAY_US, 0..0)] {
        let plan =
            ledger::Plan { clock: std::sync::Arc::new(move || now_us), ..ledger::Plan::new(place.ledger()) };
        let ledger = ledger::start(plan);
        rows.for_each(|n| ledger.enter(row(n)));
        assert!(ledger.shutdown(std::time::Duration::from_secs(60)), "{:?}", ledger.status());
    }
    assert!(place.path("x-2026-10.db").is_file());
    let book = prices("version: v\ncurrency: USD\nmodels: [{pattern: '*', input: 3, output: 5}]\n");
    let done = reprice(&place.ledger(), &request(&book, &[])).unwrap();
    assert_eq!((done.entered, done.exchanges), (done.differing, rows));
    assert!(done.entered > u64::try_from(super::TXN_MAX_CORRECTIONS).unwrap());
    let again = reprice(&place.ledger(), &request(&book, &[])).unwrap();
    assert_eq!((again.unchanged, again.entered), (rows, 0));
    let october = rusqlite::Connection::open(place.path("x-2026-10.db")).unwrap();
    let sql = "SELECT json_extract(detail, '$.part') FROM audit WHERE what = 'repriced' ORDER BY 1";
    let mut audit = october.prepare(sql).unwrap();
    let parts: Vec<i64> = audit.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    assert_eq!(parts, [1, 2]);
}

/// A ledger of exchanges of as many tenants and models as are listed, two more of the last, and two that are not.
fn of_many(model: impl Fn(usize) -> String) -> Memory {
    let mut memory = Memory::default();
    for n in (0..LISTED_MAX).chain([LISTED_MAX - 1, LISTED_MAX - 1, LISTED_MAX, LISTED_MAX + 1]) {
        let Charge::Priced { rate, .. } = ledger::testing::rate(0) else { panic!("it has a price") };
        let mut row = row(u64::try_from(memory.rows.len()).unwrap());
        (row.tenant, row.model) = (format!("t{n:04}").into(), model(n).into());
        row.charge = match n {
            LISTED_MAX => Charge::Unpriced(Unpriced::Model),
            _ => Charge::Priced { rate: rate.clone(), cost: 1 },
        };
        memory.rates = vec![rate];
        memory.rows.push((month::of(row.ended_us), row, None));
    }
    memory
}

#[test]
fn tenants_beyond_the_listed_are_one_change() {
    let memory = of_many(|_| "m".into());
    let book = prices("version: v\ncurrency: USD\nmodels: [{pattern: '*', input: 3, output: 5}]\n");
    let done = rehearse(&memory, &request(&book, &[])).unwrap();
    let change = |rows: &[(ledger::source::Month, Row, Option<ledger::source::Used>)]| super::Change {
        exchanges: u64::try_from(rows.len()).unwrap(),
        newly_priced: u64::try_from(rows.iter().filter(|(_, row, _)| row.rate().is_none()).count()).unwrap(),
        before_pico: rows.iter().filter_map(|(_, row, _)| row.charge.cost()).map(i128::from).sum(),
        after_pico: rows.iter().map(|(_, row, _)| i128::from(row.charge_again(&book).cost().unwrap())).sum(),
    };
    let last = ("t0999".into(), "m".into());
    assert_eq!((done.changes.len(), done.differing), (LISTED_MAX, 1_004));
    assert_eq!(done.changes[&last], change(&memory.rows[LISTED_MAX - 1..LISTED_MAX + 2]));
    assert_eq!(done.other_changes, change(&memory.rows[LISTED_MAX + 2..]));
    assert_eq!((done.other_changes.newly_priced, done.other_changes.before_pico), (1, 1));
}

#[test]
fn models_beyond_the_listed_are_one_count() {
    let memory = of_many(|n| format!("m{n:04}"));
    let book = prices("version: v\ncurrency: USD\nmodels: [{name: none, input: 3, output: 5}]\n");
    let done = rehearse(&memory, &request(&book, &[])).unwrap();
    assert_eq!((done.unpriced.len(), done.unlisted, done.exchanges), (LISTED_MAX, 2, 1_004));
    let counts: BTreeSet<_> = done.unpriced.iter().map(|((model, _), count)| (*count, &**model)).collect();
    assert_eq!(counts.last(), Some(&(3, "m0999")));
    assert_eq!(counts.iter().map(|(count, _)| count).sum::<u64>(), 1_002);
}
