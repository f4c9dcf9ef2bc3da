//! Batches sent by hand: sent twice they are kept once, in any order, from any number of processes.

use std::sync::Arc;
use std::thread;

use ledger::export::{Cursor, Origin, ShipBatch};
use ledger::source::{Correction, DeviceTotal, Gap, MadeCorrection, Range, Share, Source};
use ledger::{Class, DailyTotal, GpuSums, LostCost, Sums, TotalKey};
use meter::{ExchangeId, TokenType};
use price::{Currency, Rate};
use report::{Key, Query, make};

use super::rows::{NOON_US, added_up, batch, by_key, energy, origin, rate, row, rows};
use super::server::shared;
use crate::send::send;
use crate::values::Id;
use crate::{Address, Central, schema};

/// A store of its own, and a connection to it.
fn store() -> (String, postgres::Client) {
    let url = shared().url(&shared().database());
    (url.clone(), connected(&url))
}

fn connected(url: &str) -> postgres::Client {
    let mut client = crate::connect::connect(&Address::parse(url).unwrap()).unwrap();
    schema::ensure(&mut client).unwrap();
    client
}

fn lines(url: &str) -> Vec<DailyTotal> {
    let (mut lines, central) = (Vec::new(), Central::open(&Address::parse(url).unwrap()).unwrap());
    central
        .daily_totals(&Range::ALL, &mut |_, line| {
            lines.push(line.clone());
            Ok(())
        })
        .unwrap();
    lines
}

#[test]
#[ignore = "needs PostgreSQL"]
fn cache_writes_of_one_hour_have_totals_and_prices() {
    let (url, mut owner) = store();
    let hour = |lines: &[DailyTotal]| -> [u64; 2] {
        [TokenType::InputCacheWrite, TokenType::InputCacheWrite1h]
            .map(|kind| lines.iter().map(|line| line.sums.tokens[kind as usize]).sum())
    };
    let mut written = row(1);
    written.tokens.by_type[TokenType::InputCacheWrite as usize] = 4;
    written.tokens.by_type[TokenType::InputCacheWrite1h as usize] = 8;
    let mut priced = Rate::clone(&rate(1));
    priced.per_token[TokenType::InputCacheWrite1h as usize] = Some(6_000_000);
    let batch = ShipBatch { rates: vec![rate(0), Arc::new(priced.clone())], ..batch(vec![written.clone()]) };
    assert_eq!(send(&mut owner, origin(1), "host", &batch).unwrap(), 1);
    assert_eq!(hour(&lines(&url)), [4, 8]);
    let central = Central::open(&Address::parse(&url).unwrap()).unwrap();
    assert!(central.rates().unwrap().iter().any(|rate| **rate == priced), "{:?}", central.rates().unwrap());
    let sums =
        "SELECT sum(input_cache_write_1h)::bigint, sum(input_tokens)::bigint FROM tokenmeter.spend_daily";
    let all = written.tokens.input();
    let found = owner.query_one(sums, &[]).unwrap();
    assert_eq!((found.get::<_, i64>(0), found.get::<_, i64>(1).unsigned_abs()), (8, all));
    // Totals of a file whose rows are gone replace those of its rows.
    let mut total = DailyTotal::of_row(&written, None);
    total.sums.tokens[TokenType::InputCacheWrite1h as usize] = 9;
    let batch = ShipBatch { usage: vec![total], ..ShipBatch::default() };
    send(&mut owner, origin(1), "host", &batch).unwrap();
    assert_eq!(hour(&lines(&url)), [4, 9]);
}

#[test]
#[ignore = "needs PostgreSQL"]
fn batch_sent_twice_is_kept_once() {
    let (url, mut client) = store();
    let all = rows(0..500);
    assert_eq!(send(&mut client, origin(1), "host", &batch(all.clone())).unwrap(), 500);
    assert_eq!(send(&mut client, origin(1), "host", &batch(all.clone())).unwrap(), 0);
    // Half of it known, half of it new.
    assert_eq!(send(&mut client, origin(1), "host", &batch(rows(250..750))).unwrap(), 250);
    assert_eq!(by_key(&lines(&url)), added_up(&rows(0..750), &[]));
    let (mut back, central) = (Vec::new(), Central::open(&Address::parse(&url).unwrap()).unwrap());
    let mut keep = |month, row: &ledger::Row, used: Option<&ledger::source::Used>| {
        assert_eq!((month, used), (681, None));
        back.push(row.clone());
        Ok(())
    };
    central.rows(&Range::ALL, &mut keep).unwrap();
    back.sort_by_key(|row| row.id);
    let mut all = rows(0..750);
    all.sort_by_key(|row| row.id);
    assert!(back == all, "each row comes back as it was");
}

/// Energy that is shed, or billed in another month than its exchange, is no part of its exchange's line:
/// a report from rows must not take it for one.
#[test]
#[ignore = "needs PostgreSQL"]
fn energy_of_another_line_is_not_its_rows() {
    let all = rows(0..12);
    let mut used: Vec<_> = all.iter().enumerate().filter_map(|(at, row)| energy(row, at as u64)).collect();
    let (url, mut client) = store();
    used[1].class = Class::Shed;
    let later = used.split_off(2);
    send(&mut client, origin(1), "host", &ShipBatch { energy: used, ..batch(all) }).unwrap();
    let november = Origin { month: 682, ..origin(2) };
    send(&mut client, november, "host", &ShipBatch { energy: later, ..ShipBatch::default() }).unwrap();
    let central = Central::open(&Address::parse(&url).unwrap()).unwrap();
    let mut with = 0;
    central
        .rows(&Range::ALL, &mut |_, _, used| {
            with += u64::from(used.is_some());
            Ok(())
        })
        .unwrap();
    assert_eq!(with, 1, "of four exchanges with energy, two months and a shed one");
    let ask = Query { by: vec![Key::named("consumer").unwrap()], ..Query::all(i64::MAX) };
    let report = make(&central, &ask).unwrap();
    let exchanges: i128 = report.totals.iter().map(|total| total.sums.exchanges).sum();
    assert_eq!(exchanges, 12);
}

#[test]
#[ignore = "needs PostgreSQL"]
fn energy_joins_its_exchange_in_either_order() {
    let all = rows(0..300);
    let used: Vec<_> = all.iter().enumerate().filter_map(|(at, row)| energy(row, at as u64)).collect();
    let expected = added_up(&all, &used);
    let only_energy = ShipBatch { energy: used.clone(), ..ShipBatch::default() };
    let both = ShipBatch { energy: used.clone(), ..batch(all.clone()) };
    for batches in [
        vec![both.clone()],
        vec![both.clone(), both],
        vec![batch(all.clone()), only_energy.clone()],
        vec![only_energy.clone(), batch(all), only_energy],
    ] {
        let (url, mut client) = store();
        for batch in &batches {
            send(&mut client, origin(1), "host", batch).unwrap();
        }
        assert_eq!(by_key(&lines(&url)), expected, "{} batches", batches.len());
    }
}

#[test]
#[ignore = "needs PostgreSQL"]
fn late_energy_is_of_its_own_file() {
    let all = rows(0..30);
    let used = all.iter().enumerate().filter_map(|(at, row)| energy(row, at as u64)).collect();
    let (first, later) = (batch(all), ShipBatch { energy: used, ..ShipBatch::default() });
    let november = Origin { month: 682, ..origin(2) };
    for is_later_first in [false, true] {
        let (url, mut client) = store();
        if is_later_first {
            send(&mut client, november, "host", &later).unwrap();
        }
        send(&mut client, origin(1), "host", &first).unwrap();
        send(&mut client, november, "host", &later).unwrap();
        let central = Central::open(&Address::parse(&url).unwrap()).unwrap();
        let (mut october, mut with_energy) = (0, 0);
        central
            .daily_totals(&Range::ALL, &mut |month, line| {
                october += if month == 681 { line.sums.energy_exchanges } else { 0 };
                with_energy += line.sums.energy_exchanges;
                Ok(())
            })
            .unwrap();
        assert_eq!((october, with_energy), (0, 10), "{is_later_first}");
    }
}

#[test]
#[ignore = "needs PostgreSQL"]
fn totals_without_rows_replace_earlier_ones() {
    let (url, mut client) = store();
    let shed = |exchanges| DailyTotal {
        key: TotalKey { class: Class::Shed, rate: None, ..line().key },
        sums: Sums {
            exchanges,
            cost_pico: i128::from(i64::MAX) * 5,
            gpu: GpuSums { energy_nj: 7, ..GpuSums::default() },
            ..Sums::default()
        },
    };
    let device = |gpu_ns| DeviceTotal {
        day: 20_741,
        hw_id: "GPU-1".into(),
        share: Share::Idle,
        sums: GpuSums { energy_nj: i128::from(i64::MAX) * 2, gpu_ns, gpu_hours_pico: 1, gpu_energy_pico: 2 },
    };
    for (exchanges, gpu_ns) in [(3, 10), (5, 20), (5, 20)] {
        let batch =
            ShipBatch { shed: vec![shed(exchanges)], devices: vec![device(gpu_ns)], ..ShipBatch::default() };
        send(&mut client, origin(1), "host", &batch).unwrap();
    }
    assert_eq!(lines(&url), [shed(5)]);
    let central = Central::open(&Address::parse(&url).unwrap()).unwrap();
    assert_eq!(central.devices(&Range::ALL).unwrap(), [device(20)]);
    assert_eq!(central.devices(&Range { since_us: 0, until_us: NOON_US / 2 }).unwrap(), []);
}

/// The store lost a third of the rows, and the file has no rows any more.
#[test]
#[ignore = "needs PostgreSQL"]
fn totals_of_removed_rows_complete_their_lines() {
    let ((whole_url, mut whole), (url, mut client)) = (store(), store());
    send(&mut whole, origin(1), "host", &batch(rows(0..750))).unwrap();
    send(&mut client, origin(1), "host", &batch(rows(0..500))).unwrap();
    let totals = ShipBatch { usage: lines(&whole_url), ..batch(Vec::new()) };
    for _ in 0..2 {
        send(&mut client, origin(1), "host", &totals).unwrap();
        assert_eq!(by_key(&lines(&url)), added_up(&rows(0..750), &[]));
    }
    let mut less = totals;
    less.usage.iter_mut().for_each(|line| (line.sums.exchanges, line.sums.cost_pico) = (0, 0));
    send(&mut client, origin(1), "host", &less).unwrap();
    assert_eq!(by_key(&lines(&url)), added_up(&rows(0..750), &[]), "spend never shrinks");
}

/// The first exchange of a place stays: a batch that is behind changes nothing of it.
#[test]
#[ignore = "needs PostgreSQL"]
fn store_keeps_its_last_exchange() {
    let (url, mut client) = store();
    let database = url.rsplit('/').next().unwrap();
    let mut owner = shared().client(database).unwrap();
    let mut last =
        || -> Option<Id> { owner.query_one("SELECT last FROM tokenmeter.file", &[]).unwrap().get(0) };
    let at = |exchange, rows| ShipBatch { next: Cursor { exchange, ..Cursor::default() }, ..batch(rows) };
    let id = |number| Some(Id(row(number).id.0));
    send(&mut client, origin(1), "host", &at(10, rows(0..10))).unwrap();
    assert_eq!(last(), id(9));
    for behind in [at(5, rows(0..5)), at(10, Vec::new()), at(10, rows(0..3))] {
        send(&mut client, origin(1), "host", &behind).unwrap();
        assert_eq!(last(), id(9));
    }
    send(&mut client, origin(1), "host", &at(20, rows(10..20))).unwrap();
    assert_eq!(last(), id(19));
}

#[test]
#[ignore = "needs PostgreSQL"]
fn lost_file_is_noted_in_earlier_ranges() {
    let (url, mut client) = store();
    let gap = |why: &str| Gap::unknown(NOON_US, NOON_US + 9, why);
    let batch = ShipBatch { gaps: vec![(1, gap("crash")), (2, gap("corrupt"))], ..batch(Vec::new()) };
    send(&mut client, origin(1), "host", &batch).unwrap();
    let central = Central::open(&Address::parse(&url).unwrap()).unwrap();
    let within = |since_us, until_us| central.gaps(&Range { since_us, until_us }).unwrap();
    assert_eq!(within(NOON_US - 20, NOON_US - 10), [gap("corrupt")], "its corrections may be of that time");
    assert_eq!(within(NOON_US - 20, NOON_US + 1), [gap("corrupt"), gap("crash")]);
    assert_eq!(within(NOON_US + 20, NOON_US + 30), []);
}

#[test]
#[ignore = "needs PostgreSQL"]
fn corrections_and_gaps_are_read_back_unchanged() {
    let (url, mut client) = store();
    let correction = Correction {
        id: ExchangeId([3; 16]),
        made_us: NOON_US + 5,
        exchange: row(1).id,
        line: DailyTotal { sums: Sums { exchanges: 1, ..correction(-17).sums }, ..correction(-17) },
        ended_us: NOON_US,
    };
    let crash = Gap::unknown(NOON_US, NOON_US + 9, "crash");
    // More than 64 bits hold.
    let cost = LostCost {
        unpriced_rows: Some(2),
        cost_pico: Some(i128::from(i64::MAX) * 1_000),
        currency: Some(Currency(*b"EUR")),
    };
    let lost = Gap { why: "lost".into(), lost_rows: Some(3), cost, ..crash.clone() };
    let batch = ShipBatch {
        corrections: vec![MadeCorrection { act: 4, correction: correction.clone() }],
        gaps: vec![(1, crash.clone()), (2, lost.clone())],
        ..batch(Vec::new())
    };
    for _ in 0..2 {
        send(&mut client, origin(1), "host", &batch).unwrap();
    }
    assert_eq!(lines(&url), std::slice::from_ref(&correction.line));
    let central = Central::open(&Address::parse(&url).unwrap()).unwrap();
    assert_eq!(central.gaps(&Range::ALL).unwrap(), [crash, lost]);
    let view = "SELECT string_agg(concat_ws(' ', why, unpriced_rows, trim_scale(cost), currency), ', ' \
                ORDER BY why) FROM tokenmeter.gaps";
    let said: String = client.query_one(view, &[]).unwrap().get(0);
    assert_eq!(said, "crash, lost 2 9223372036.854775807 EUR");
    let mut back = Vec::new();
    central
        .corrections(&Range::ALL, &mut |month, correction| {
            back.push((month, correction.clone()));
            Ok(())
        })
        .unwrap();
    assert_eq!(back, [(681, correction)]);
    let rates = central.rates().unwrap();
    assert_eq!(rates.len(), 2, "rates come with whatever names them");
}

#[test]
#[ignore = "needs PostgreSQL"]
fn late_row_is_billed_in_its_files_month() {
    let (url, mut client) = store();
    let december = Origin { month: 683, ..origin(1) };
    send(&mut client, december, "host", &batch(rows(0..1))).unwrap();
    let central = Central::open(&Address::parse(&url).unwrap()).unwrap();
    let mut months = Vec::new();
    central
        .daily_totals(&Range::ALL, &mut |month, line| {
            months.push((month, line.key.day));
            Ok(())
        })
        .unwrap();
    assert_eq!(months, [(683, 20_741)]);
}

/// All start on an empty database: the first process creates the schema and the partitions.
#[test]
#[ignore = "needs PostgreSQL"]
fn concurrent_shippers_create_one_schema_and_partition() {
    const SIDECARS: u8 = 6;
    let database = shared().database();
    let url = shared().url(&database);
    let all = rows(0..400);
    thread::scope(|scope| {
        for number in 0..SIDECARS {
            let (url, all) = (&url, &all);
            scope.spawn(move || {
                let mut client = connected(url);
                for part in all.chunks(50) {
                    let mut part = part.to_vec();
                    for (at, row) in part.iter_mut().enumerate() {
                        // Their own ids, and months that all of them meet.
                        row.id.0[15] = number;
                        row.ended_us -= at as i64 * 40 * ledger::source::DAY_US;
                    }
                    send(&mut client, origin(number), "host", &batch(part)).unwrap();
                }
            });
        }
    });
    let mut client = shared().client(&database).unwrap();
    let one = |client: &mut postgres::Client, sql: &str| client.query_one(sql, &[]).unwrap().get::<_, i64>(0);
    assert_eq!(one(&mut client, "SELECT count(*) FROM tokenmeter.exchange"), 400 * i64::from(SIDECARS));
    assert_eq!(
        one(&mut client, "SELECT sum(exchanges)::bigint FROM tokenmeter.line"),
        400 * i64::from(SIDECARS)
    );
    assert_eq!(one(&mut client, "SELECT count(*) FROM tokenmeter.version"), 1);
    let months = one(&mut client, "SELECT count(DISTINCT date_trunc('month', day)) FROM tokenmeter.line");
    let tables = "SELECT count(*) FROM pg_inherits WHERE inhparent = 'tokenmeter.exchange'::regclass";
    assert!(months > 12);
    assert_eq!(one(&mut client, tables), months);
}

#[test]
#[ignore = "needs PostgreSQL"]
fn values_that_the_store_cannot_hold_are_replaced() {
    let (url, mut client) = store();
    let mut row = row(1);
    row.model = "a\0b".into();
    row.started_us = i64::MIN;
    row.ended_us = i64::MAX;
    assert_eq!(send(&mut client, origin(1), "host", &batch(vec![row.clone()])).unwrap(), 1);
    assert_eq!(send(&mut client, origin(1), "host", &batch(vec![row])).unwrap(), 0);
    let lines = lines(&url);
    assert_eq!((lines.len(), &*lines[0].key.model, lines[0].key.day), (1, "a\u{fffd}b", 2_932_896));
}

/// A total of a correction that changes a charge.
pub(super) fn correction(delta_pico: i128) -> DailyTotal {
    DailyTotal {
        key: TotalKey { class: Class::Correction, ..line().key },
        sums: Sums { cost_pico: delta_pico, ..Sums::default() },
    }
}

/// A total of zeros.
pub(super) fn line() -> DailyTotal {
    let key = TotalKey {
        day: 20_741,
        tenant: "t".into(),
        principal: None,
        upstream: "u".into(),
        provider: "p".into(),
        model: "m".into(),
        ending: "complete".into(),
        input_provenance: meter::Provenance::Reported,
        output_provenance: meter::Provenance::Frames,
        rate: Some(rate(0).id),
        class: Class::Usage,
    };
    DailyTotal { key, sums: Sums::default() }
}
