//! A random book written to disk: its reports against those from memory, and the SQL views against both.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ledger::source::{DAY_US, Gap, Month, Range};
use ledger::testing::{Contents, NOON_US, Place, add_total, row, write_month};
use ledger::{Calendar, Closure, LostCost, Plan, Row, Source, Store, close, month, period};
use price::{Charge, Currency};
use rusqlite::Connection;
use text::{Decimal, money};

use super::focus::{self, Billing, Options, Version};
use super::memory::{DAYS, FIRST_DAY, Memory};
use super::tests::{calendar, query};
use super::{Basis, Filter, Idle, Key, Query, make};

/// Writes a book into the files of a ledger: its last month is the open one.
fn put(memory: &Memory, path: &Path) {
    let billed = memory.rows.iter().map(|(billed, ..)| *billed);
    let billed = billed.chain(memory.shed.iter().map(|(billed, _)| *billed));
    let mut months: Vec<Month> = billed.chain(memory.corrections.iter().map(|(billed, _)| *billed)).collect();
    months.extend((0..i32::try_from(DAYS).unwrap()).map(|day| month::of_day(FIRST_DAY + day)));
    months.sort_unstable();
    months.dedup();
    let open = *months.last().unwrap();
    for here in months {
        let contents = Contents {
            rates: &memory.rates,
            rows: memory.rows.iter().filter(|(billed, ..)| *billed == here).collect(),
            shed: memory.shed.iter().filter(|(billed, _)| *billed == here).map(|(_, line)| line).collect(),
            corrections: memory
                .corrections
                .iter()
                .filter(|(billed, _)| *billed == here)
                .map(|(_, made)| made)
                .collect(),
            devices: memory.devices.iter().filter(|line| month::of_day(line.day) == here).collect(),
            gaps: &memory.gaps,
            calendar: memory.calendar.clone(),
        };
        write_month(path, here, here == open, &contents);
    }
}

pub(crate) fn book(seed: u64) -> (Memory, Place) {
    book_of(Calendar::default(), seed)
}

fn book_of(days: Calendar, seed: u64) -> (Memory, Place) {
    let (place, mut memory) = (Place::new(), Memory::of_calendar(days, seed, 300));
    memory.kept_since_us = i64::MIN;
    put(&memory, &place.ledger());
    (memory, place)
}

#[test]
fn report_from_disk_equals_report_from_memory() {
    for (seed, zone) in [(1, 0), (2, 1), (3, 2), (4, 3)] {
        let (memory, place) = book_of(calendar(zone), seed);
        let store = Store::open_read(&place.ledger()).unwrap();
        let part = Range {
            since_us: i64::from(FIRST_DAY) * DAY_US + 7,
            until_us: i64::from(FIRST_DAY + 3) * DAY_US,
        };
        let all = Key::ALL.map(|key| query(&[key]));
        let more = [
            Query { basis: Basis::Gpu, ..query(&[Key::Tenant, Key::Day]) },
            Query { basis: Basis::Gpu, idle: Idle::Proportional, ..query(&[Key::CostCenter, Key::Day]) },
            Query { basis: Basis::Gpu, idle: Idle::Even, ..query(&[Key::Tenant, Key::Billed, Key::Dialect]) },
            Query { repeats: true, ..query(&[Key::Tenant]) },
            Query { range: part, ..query(&[Key::Tenant, Key::Model]) },
            Query {
                filters: vec![Filter::read("consumer=user-1").unwrap()],
                ..query(&[Key::Model, Key::Month])
            },
            query(&[Key::Month, Key::Billed, Key::Tenant, Key::Version]),
        ];
        for asked in all.into_iter().chain(more) {
            let (from_disk, from_memory) = (make(&store, &asked).unwrap(), make(&memory, &asked).unwrap());
            assert_eq!(from_disk.groups, from_memory.groups, "{asked:?}");
            assert_eq!(from_disk.totals, from_memory.totals, "{asked:?}");
            assert_eq!(from_disk.savings, from_memory.savings, "{asked:?}");
            assert_eq!(from_disk.notes, from_memory.notes, "{asked:?}");
        }
    }
}

/// The results of a query in every file of a ledger.
fn all(place: &Place, sql: &str) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for (_, path) in Store::open_read(&place.ledger()).unwrap().months() {
        let connection = Connection::open(path).unwrap();
        let mut statement = connection.prepare(sql).unwrap();
        let columns = statement.column_count();
        let mut found = statement.query([]).unwrap();
        while let Some(row) = found.next().unwrap() {
            let cell = |at| match row.get_ref(at).unwrap() {
                rusqlite::types::ValueRef::Null => String::new(),
                rusqlite::types::ValueRef::Integer(number) => number.to_string(),
                rusqlite::types::ValueRef::Text(text) => str::from_utf8(text).unwrap().to_owned(),
                other => panic!("{sql}: {other:?} is neither text nor a whole number"),
            };
            rows.push((0..columns).map(cell).collect());
        }
    }
    rows
}

/// Parses decimal text as a whole number of 10^-12.
fn pico(text: &str) -> i128 {
    let (sign, text) = text.strip_prefix('-').map_or((1, text), |text| (-1, text));
    let (whole, after) = text.split_once('.').unwrap_or((text, ""));
    sign * format!("{whole}{after:0<12}").parse::<i128>().unwrap()
}

fn twelve(pico: i128) -> String {
    Decimal { least: 12, ..money(pico) }.to_string()
}

/// Money by currency. Counts by tenant and model: for exchanges that were priced later, a view has the counts without a
/// price, and a negative number beside the money of the correction; a report has counts and money together.
#[test]
fn views_and_reports_have_the_same_sums() {
    let (memory, place) = book(4);
    let report = make(&memory, &query(&[Key::Month, Key::Tenant, Key::Model, Key::Currency])).unwrap();
    let (mut money, mut counts): (BTreeMap<_, i128>, BTreeMap<_, [i128; 5]>) = Default::default();
    for group in &report.groups {
        let key: Vec<_> = group.values.iter().map(ToString::to_string).collect();
        let sums = &group.sums;
        let counted = counts.entry(key[..3].to_vec()).or_default();
        let numbers = [sums.exchanges, sums.unpriced, sums.input(), sums.output(), sums.uncounted_prompts];
        counted.iter_mut().zip(numbers).for_each(|(sum, number)| *sum += number);
        money.insert(key, sums.cost_pico);
    }
    money.retain(|key, _| !key[3].is_empty());
    for view in ["spend_monthly", "spend_daily"] {
        let (mut its_money, mut its_counts): (BTreeMap<_, i128>, BTreeMap<_, [i128; 5]>) = Default::default();
        let sql = format!(
            "SELECT month, tenant, model, currency, exchanges, unpriced_exchanges, input_tokens, output_tokens, \
             uncounted_prompts, cost FROM {view}"
        );
        for row in all(&place, &sql) {
            let counted = its_counts.entry(row[..3].to_vec()).or_default();
            for (sum, cell) in counted.iter_mut().zip(&row[4..9]) {
                *sum += cell.parse::<i128>().unwrap();
            }
            assert_eq!(row[3].is_empty(), row[9].is_empty(), "a row without a price has no cost: {row:?}");
            if !row[3].is_empty() {
                *its_money.entry(row[..4].to_vec()).or_default() += pico(&row[9]);
            }
        }
        assert_eq!(its_money, money, "{view}");
        assert_eq!(its_counts, counts, "{view}");
        assert!(counts.values().any(|counted| counted[4] > 0), "some prompts are uncounted");
    }
}

#[test]
fn views_show_rows_as_entered() {
    let (mut memory, _) = book(5);
    let from_us = i64::from(FIRST_DAY) * DAY_US;
    let crash = Gap::unknown(from_us, from_us + 90_000_000, "crash");
    let cost = LostCost {
        unpriced_rows: Some(1),
        cost_pico: Some(12_345_678_900_000_000_001),
        currency: Some(Currency(*b"EUR")),
    };
    let lost = Gap { why: "lost".into(), lost_rows: Some(4), cost, ..crash.clone() };
    memory.gaps.extend([Gap { lost_rows: Some(3), totals_kept: true, ..crash }, lost]);
    let place = Place::new();
    put(&memory, &place.ledger());
    let found: BTreeMap<_, _> =
        all(&place, "SELECT id, ended, tenant, cost, currency, unpriced, input_tokens FROM exchanges")
            .into_iter()
            .map(|row| (row[0].clone(), row))
            .collect();
    assert_eq!(found.len(), memory.rows.len());
    for (_, row, _) in &memory.rows {
        let found = &found[&row.id.to_string()];
        let seconds = period::time(row.ended_us);
        assert_eq!(found[1], format!("{}.{:06}Z", &seconds[..19], row.ended_us.rem_euclid(1_000_000)));
        assert_eq!(found[2], *row.tenant);
        assert_eq!(found[6], row.tokens.input().to_string());
        match &row.charge {
            Charge::Priced { rate, cost } => {
                assert_eq!(
                    (found[3].as_str(), found[4].as_str()),
                    (&*twelve(i128::from(*cost)), rate.currency.code())
                );
                assert_eq!(found[5], "");
            }
            Charge::Unpriced(why) => assert_eq!((found[3].as_str(), found[5].as_str()), ("", why.name())),
        }
    }
    let mut corrected = all(&place, "SELECT exchange, cost, day, who FROM corrections");
    let mut expected: Vec<_> = memory
        .corrections
        .iter()
        .map(|(_, made)| {
            let day = period::day(made.line.key.day);
            vec![made.exchange.to_string(), twelve(made.line.sums.cost_pico), day, "a test".to_owned()]
        })
        .collect();
    corrected.sort_unstable();
    expected.sort_unstable();
    assert_eq!(corrected, expected);
    let prices = all(
        &place,
        "SELECT DISTINCT price_version, price_entry, input, input_cached, output, per_request FROM prices",
    );
    assert!(
        prices.contains(
            &["2026-10", "llama*", "0.150000", "0.015000", "0.600000", "0.000000000000"]
                .map(str::to_owned)
                .to_vec()
        )
    );
    let columns = "since, until, why, lost_rows, totals_kept, unpriced_rows, cost, currency";
    let mut gaps = all(&place, &format!("SELECT {columns} FROM gaps"));
    gaps.sort_unstable();
    // Each file has both.
    gaps.dedup();
    let times = ["2026-10-29T00:00:00Z", "2026-10-29T00:01:30Z"];
    let crash = ["crash", "3", "1", "", "", ""];
    let lost = ["lost", "4", "0", "1", "12345678.900000000001", "EUR"];
    let expected =
        [crash, lost].map(|rest| times.into_iter().chain(rest).map(str::to_owned).collect::<Vec<_>>());
    assert_eq!(gaps, expected);
    let idle = all(&place, "SELECT day, hw_id, share, energy_joules, gpu_hours_usd FROM gpu_idle");
    assert_eq!(idle.len(), memory.devices.len());
    for line in &memory.devices {
        let joules = Decimal { units: line.sums.energy_nj, digits: 9, least: 9 }.to_string();
        let row = [
            period::day(line.day),
            line.hw_id.to_string(),
            line.share.name().to_owned(),
            joules,
            twelve(line.sums.gpu_hours_pico),
        ];
        assert!(idle.contains(&row.to_vec()), "{row:?}");
    }
    let used: i128 = all(&place, "SELECT gpu_hours_usd FROM gpu_use").iter().map(|row| pico(&row[0])).sum();
    let expected =
        memory.rows.iter().filter_map(|(.., used)| *used).map(|used| i128::from(used.gpu_hours_pico)).sum();
    assert_eq!(used, expected);
    assert!(all(&place, "SELECT what FROM audit").iter().all(|row| row[0] == "repriced"));
}

fn options() -> Options {
    Options {
        version: Version::V1_4,
        billing: Billing::Showback,
        issuer: "platform".into(),
        service: "LLM Inference".into(),
    }
}

#[test]
fn closed_month_has_its_digest_in_focus() {
    let (_, place) = book(6);
    let october = month::read("2026-10").unwrap();
    let signed = close(&place.ledger(), october, "finance", 1_900_000_000_000_000).unwrap();
    let mut text = Vec::new();
    let store = Store::open_read(&place.ledger()).unwrap();
    focus::write(&store, &query(&[Key::Month]), &options(), None, &mut text).unwrap();
    let mut sheet = csv::Reader::from_reader(text.as_slice());
    let header = sheet.headers().unwrap().clone();
    let column = |name: &str| header.iter().position(|is| is == name).unwrap();
    let (billed, digest) = (column("BillingPeriodStart"), column("x_LedgerDigest"));
    let mut seen = 0;
    for record in sheet.records() {
        let record = record.unwrap();
        let closed = record[billed].starts_with("2026-10");
        assert_eq!(&record[digest], if closed { signed.digest.as_str() } else { "" });
        seen += usize::from(closed);
    }
    assert!(seen > 0);
    let digest: Arc<str> = signed.digest.into();
    let closed = Closure::Closed { instances: vec![Arc::clone(&digest)], digest: Some(digest) };
    let closures = [october, october + 1].map(|month| store.closure(month).unwrap());
    assert_eq!(closures, [closed, Closure::Open]);
}

/// Energy that arrived after its month was closed is in the dataset and in the view, without any other usage.
#[test]
fn focus_has_energy_of_priced_usage_only() {
    let place = Place::new();
    put(&Memory::of_chance(6, 300).with_late_energy(), &place.ledger());
    let store = Store::open_read(&place.ledger()).unwrap();
    let mut text = Vec::new();
    focus::write(&store, &query(&[Key::Day]), &options(), None, &mut text).unwrap();
    let mut sheet = csv::Reader::from_reader(text.as_slice());
    let header = sheet.headers().unwrap().clone();
    let column = |name: &str| header.iter().position(|is| is == name).unwrap();
    let (joules, requests) = (column("x_EnergyJoules"), column("x_RequestCount"));
    let (mut sum, mut alone) = (0, 0);
    for record in sheet.records().map(Result::unwrap).filter(|record| !record[joules].is_empty()) {
        sum += pico(&record[joules]);
        alone += i32::from(&record[requests] == "0");
    }
    let groups = make(&store, &query(&[Key::Currency])).unwrap().groups;
    let priced = groups.iter().filter(|group| group.currency.is_some());
    assert_eq!(sum, priced.map(|group| group.sums.gpu.energy_nj * 1000).sum::<i128>());
    let view = all(&place, "SELECT energy_joules FROM spend_daily");
    let of_view: i128 = view.iter().map(|row| pico(&row[0])).sum();
    assert_eq!(groups.iter().map(|group| group.sums.gpu.energy_nj * 1000).sum::<i128>(), of_view);
    assert!(alone > 0);
}

/// A report reads corrections, rows and daily totals in turn while rows are entered.
#[test]
fn store_is_one_snapshot_while_rows_are_entered() {
    let (memory, place) = book(4);
    let counted = |store: &Store| {
        let report = make(store, &query(&[Key::Tenant])).unwrap();
        report.totals.iter().map(|total| total.sums.exchanges).sum::<i128>()
    };
    let store = Store::open_read(&place.ledger()).unwrap();
    let (.., line) = memory.shed.first().map(|(billed, line)| (billed, line.clone())).unwrap();
    add_total(&place.ledger(), &line);
    let after = Store::open_read(&place.ledger()).unwrap();
    assert_eq!(counted(&after) - counted(&store), i128::from(line.sums.exchanges));
}

/// A report does not read a damaged file that has no daily totals of its days.
#[test]
fn report_reads_only_files_of_its_days() {
    let of_range = |range: Range| Query { range, ..query(&[Key::Tenant]) };
    let november_us = month::begin_us(month::read("2026-11").unwrap());
    let october = of_range(Range { since_us: i64::MIN, until_us: november_us });
    let november = of_range(Range { since_us: november_us, until_us: i64::MAX });
    let spoiled = |late: bool, month: &str, sql: &str| {
        let (mut memory, place) = (Memory::of_chance(8, 200), Place::new());
        if !late {
            memory.rows.retain(|(billed, row, _)| *billed == month::of(row.ended_us));
            memory.shed.retain(|(billed, line)| *billed == month::of_day(line.key.day));
            memory.corrections.clear();
        }
        put(&memory, &place.ledger());
        let month = month::read(month).unwrap();
        let store = Store::open_read(&place.ledger()).unwrap();
        let (_, file) = store.months().find(|(is, _)| *is == month).unwrap();
        Connection::open(file).unwrap().execute_batch(sql).unwrap();
        place
    };
    let of = |place: &Place, asked: &Query| make(&Store::open_read(&place.ledger()).unwrap(), asked).is_ok();
    let change = "UPDATE line SET exchanges = exchanges + 1";
    let place = spoiled(false, "2026-11", change);
    assert!(of(&place, &october) && !of(&place, &november));
    let place = spoiled(false, "2026-10", change);
    assert!(!of(&place, &october) && of(&place, &november));
    let late = spoiled(true, "2026-11", change);
    assert!(!of(&late, &october), "it has totals of October");
    let lost = spoiled(true, "2026-11", "DELETE FROM line WHERE day < 20758");
    assert!(!of(&lost, &october), "it had totals of October");
    let old = spoiled(false, "2026-11", &format!("{change}; DELETE FROM fact WHERE name = 'days'"));
    assert!(!of(&old, &october), "an older file does not list its days");
}

/// The file of a shipped ledger lacks the closed months and the corrections of the store. The bill of a month that was
/// closed before stays as it was, and has no note.
#[test]
fn report_of_shipped_file_names_its_store() {
    let place = Place::new();
    let (closed, next_us) = (month::of(NOON_US), month::begin_us(month::of(NOON_US) + 1));
    let write = |n: u64, ended_us: i64, store: Option<&str>| {
        let clock = Arc::new(move || ended_us);
        let ledger =
            ledger::start(Plan { ships_to: store.map(Into::into), clock, ..Plan::new(place.ledger()) });
        ledger.enter(Row { ended_us, ..row(n) });
        assert!(ledger.shutdown(Duration::from_secs(60)), "{:?}", ledger.status());
    };
    write(1, NOON_US, None);
    write(2, next_us, None);
    close(&place.ledger(), closed, "ann", next_us).unwrap();
    write(3, next_us + 1, Some("postgres://db/spend"));
    let said = |range| {
        let report = make(&Store::open_read(&place.ledger()).unwrap(), &Query { range, ..query(&[]) });
        report.unwrap().sentences(None).join("; ")
    };
    let all = said(Range::ALL);
    assert!(
        all.starts_with("the ledger is shipped to postgres://db/spend, where months are closed"),
        "{all}"
    );
    let of_closed = said(Range::of_month(&Calendar::default(), closed));
    assert!(!of_closed.contains("shipped"), "{of_closed}");
}
