//! Reports, views and documents: what is read from the store equals what the ledger has, to the byte.

use std::collections::BTreeSet;

use ledger::Store;
use ledger::source::{DAY_US, Month};
use ledger::{Range, Source};
use report::{Basis, Column, Filter, Group, Idle, Key, Query, focus, json, make, sheet, table};
use rusqlite::Connection;

use super::ledgers::{TestLedger, arrives};
use super::rows::NOON_US;
use super::server::shared;
use crate::{Address, Central};

/// A ledger, shipped, and what its store is called.
fn shipped() -> (TestLedger, String) {
    let database = shared().database();
    let url = shared().url(&database);
    let mut book = TestLedger::new();
    book.enter(1_000);
    arrives(&book, &book.ship(&url, 300), &url);
    (book, database)
}

#[test]
#[ignore = "needs PostgreSQL"]
fn central_reports_equal_local_ones() {
    let (book, database) = shipped();
    all_reports_are_the_same(&book, &database);
}

/// Of a line without a price some exchanges get one rate, some another, and some none.
#[test]
#[ignore = "needs PostgreSQL"]
fn central_reports_after_repricing_equal_local_ones() {
    let database = shared().database();
    let url = shared().url(&database);
    let mut book = TestLedger::new();
    book.enter(1_000);
    let prices = "version: later\ncurrency: USD\nmodels:\n  - {name: model-0, input: 1, output: 2, cache_write_1h: 2, \
                  input_audio: 3, output_audio: 4, output_image: 5, output_video: 6, context_tiers: [{above_input_tokens: 2500, output: 9}]}\n";
    let (prices, _) = price::Book::read(prices).unwrap();
    let range = Range { since_us: i64::MIN, until_us: NOON_US + DAY_US + 300 };
    let at_us = NOON_US + 10 * DAY_US;
    let wish =
        report::Reprice { range, filters: &[], unpriced_only: false, book: &prices, who: "ann", at_us };
    let done = report::reprice(&book.path(), &wish).unwrap();
    assert!(done.newly_priced > 20 && done.entered > done.newly_priced, "{done:?}");
    arrives(&book, &book.ship(&url, 300), &url);
    all_reports_are_the_same(&book, &database);
    let sql = "SELECT coalesce(price_version, ''), count(*)::text, sum(input_tokens + output_tokens)::text, \
               coalesce(sum(cost_pico), 0)::text FROM tokenmeter.charges GROUP BY 1 ORDER BY 1";
    let rows = shared().client(&database).unwrap().query(sql, &[]).unwrap();
    let view: BTreeSet<[String; 4]> =
        rows.iter().map(|row| std::array::from_fn(|column| row.get(column))).collect();
    let filters = vec![Filter::read("class!=shed").unwrap()];
    let ask = Query { by: vec![Key::Version], filters, ..Query::all(0) };
    let report = make(&Store::open_read(&book.path()).unwrap(), &ask).unwrap();
    let of = |group: &Group| {
        let sums = &group.sums;
        let numbers =
            [sums.exchanges, sums.input() + sums.output(), sums.cost_pico].map(|sum| sum.to_string());
        let [exchanges, tokens, cost] = numbers;
        [group.values[0].to_string(), exchanges, tokens, cost]
    };
    assert!(report.groups.iter().any(|group| group.values[0].to_string() == "later"));
    assert_eq!(view, report.groups.iter().map(of).collect());
}

fn all_reports_are_the_same(book: &TestLedger, database: &str) {
    let local = Store::open_read(&book.path()).unwrap();
    let central = Central::open(&Address::parse(&shared().url(database)).unwrap()).unwrap();
    let by = |names: &str| names.split_whitespace().map(|name| Key::named(name).unwrap()).collect::<Vec<_>>();
    let october: Month = 681;
    let odd = Range { since_us: NOON_US - 17, until_us: NOON_US + DAY_US + 5 };
    let mut bytes = 0;
    for names in [
        "tenant",
        "tenant model day",
        "month upstream ending",
        "day principal",
        "tenant consumer",
        "model currency class",
        "version entry class",
    ] {
        for range in [Range::ALL, odd] {
            for (basis, idle, billed) in [
                (Basis::Price, Idle::None, None),
                (Basis::Gpu, Idle::None, None),
                (Basis::Gpu, Idle::Proportional, None),
                (Basis::Gpu, Idle::Even, Some(october)),
                (Basis::Price, Idle::None, Some(october)),
            ] {
                let ask = Query { range, billed, by: by(names), basis, idle, ..Query::all(0) };
                let texts = [&local as &dyn Source, &central].map(|source| printed(source, &ask));
                assert!(
                    texts[0] == texts[1],
                    "{names} {basis:?} {idle:?} {billed:?}:\n{}\n{}",
                    texts[0],
                    texts[1]
                );
                bytes += texts[0].len();
            }
        }
    }
    assert!(bytes > 100_000, "{bytes} bytes of reports are too few to say anything");
}

/// In each format there is.
fn printed(source: &dyn Source, ask: &Query) -> String {
    let mut bytes = Vec::new();
    // GPU use of no exchange is known by day only, so that some reports are refused.
    let mut report = match make(source, ask) {
        Ok(report) => report,
        Err(error) => return error.to_string(),
    };
    // The clocks of the two decide whether a month is over.
    report.notes.months.clear();
    table::write(&report, None, &mut bytes).unwrap();
    sheet::write(&report, &Column::all(ask), None, &mut bytes).unwrap();
    json::write(&report, None, &mut bytes).unwrap();
    let options = focus::Options {
        version: focus::Version::V1_2,
        billing: focus::Billing::Chargeback,
        issuer: "us".to_owned(),
        service: "inference".to_owned(),
    };
    if ask.basis == Basis::Price {
        // By some keys it has no row, and notes that.
        if let Err(error) = focus::write(source, ask, &options, None, &mut bytes) {
            bytes.extend(error.to_string().into_bytes());
        }
    }
    String::from_utf8(bytes).unwrap()
}

#[test]
#[ignore = "needs PostgreSQL"]
fn views_match_those_of_the_ledger() {
    let (book, database) = shipped();
    let file = Connection::open(book.path()).unwrap();
    let mut central = shared().client(&database).unwrap();
    let mut statement = file.prepare("SELECT name FROM sqlite_schema WHERE type = 'view'").unwrap();
    let views: Vec<String> = statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    assert!(views.len() >= 9, "{views:?}");
    for view in &views {
        let mut statement = file.prepare(&format!("SELECT * FROM {view} LIMIT 0")).unwrap();
        let local_columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
        drop(statement.query([]).unwrap());
        let central_columns = central.prepare(&format!("SELECT * FROM tokenmeter.{view}")).unwrap();
        let central_columns: Vec<String> = central_columns
            .columns()
            .iter()
            .map(|column| column.name().to_owned())
            .filter(|name| name != "instance")
            .collect();
        assert_eq!(local_columns, central_columns, "{view}");
    }
    let sql = "SELECT month || ' ' || tenant || ' ' || model || ' ' || currency || ' ' || exchanges || ' ' || \
               unpriced_exchanges || ' ' || input_tokens || ' ' || output_tokens || ' ' || uncounted_prompts || ' ' || \
               cost";
    let mut local = BTreeSet::new();
    for path in ledger::export::ExportReader::of(&book.path()).files().unwrap() {
        let file = Connection::open(path).unwrap();
        let mut statement =
            file.prepare(&format!("{sql} FROM spend_monthly WHERE cost IS NOT NULL")).unwrap();
        let rows = statement.query_map([], |row| row.get::<_, String>(0)).unwrap();
        local.extend(rows.map(Result::unwrap));
    }
    let sql = format!("{sql} FROM tokenmeter.spend_monthly WHERE cost IS NOT NULL");
    let central_rows: BTreeSet<String> =
        central.query(&sql, &[]).unwrap().iter().map(|row| row.get(0)).collect();
    assert!(local.len() >= 15, "{local:?}");
    assert_eq!(local, central_rows);
}

/// The grants in the document are enough to ship, and for nothing else.
#[test]
#[ignore = "needs PostgreSQL"]
fn insert_only_role_can_ship() {
    let database = shared().database();
    let mut owner = shared().client(&database).unwrap();
    crate::schema::ensure(&mut owner).unwrap();
    let statements = DOCUMENT.split("```sql\n").nth(1).unwrap().split("```").next().unwrap();
    let [may_ship, may_read] = ["shipper_of_docs", "reader_of_docs"];
    let statements = statements.replace("tokenmeter_ship", may_ship).replace("tokenmeter_read", may_read);
    owner.batch_execute(&statements).unwrap();
    owner
        .batch_execute(&format!("ALTER ROLE {may_ship} PASSWORD 'a'; ALTER ROLE {may_read} PASSWORD 'b'"))
        .unwrap();
    let (shipper, reader) =
        (shared().url_of(may_ship, "a", &database), shared().url_of(may_read, "b", &database));
    let mut book = TestLedger::new();
    book.enter(300);
    let running = book.ship(&shipper, 100);
    arrives(&book, &running, &reader);
    assert!(running.shutdown(std::time::Duration::from_secs(30)));
    let mut client = crate::connect::connect(&Address::parse(&shipper).unwrap()).unwrap();
    for forbidden in [
        "SELECT * FROM tokenmeter.exchange",
        "DELETE FROM tokenmeter.exchange",
        "UPDATE tokenmeter.exchange SET cost_pico = 0",
        "UPDATE tokenmeter.line SET cost_pico = 0",
        "INSERT INTO tokenmeter.line DEFAULT VALUES",
        "DELETE FROM tokenmeter.correction",
        "DROP TABLE tokenmeter.gap",
        "DELETE FROM tokenmeter.file",
        "CREATE TABLE tokenmeter.mine (x int)",
    ] {
        let error = client.batch_execute(forbidden).expect_err(forbidden);
        let code = error.code().unwrap().code();
        assert_eq!(code, "42501", "{forbidden}");
    }
    let mut client = crate::connect::connect(&Address::parse(&reader).unwrap()).unwrap();
    client.batch_execute("SELECT * FROM tokenmeter.spend_monthly").unwrap();
    client.batch_execute("SELECT * FROM tokenmeter.requests").unwrap();
    assert!(client.batch_execute("DELETE FROM tokenmeter.gap").is_err());
}

const DOCUMENT: &str = include_str!("../../postgres.md");
