//! Measures shipping on this machine: a large ledger into a PostgreSQL of its own, whole and in the small batches of
//! a fleet. `cargo run --release -p tokenmeter-ship --example fleet -- 300000`; the sizes in
//! sidecar/ship/postgres.md come from it.

#[allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "a measurement uses only part of the tests' server"
)]
#[path = "../src/tests/server.rs"]
mod server;

use std::path::Path;
use std::time::{Duration, Instant};

use ledger::Range;
use ledger::Row;
use ledger::source::{DAY_US, Source};
use meter::{ExchangeId, Provenance, TokenType, Tokens};
use price::{Charge, Currency, Rate};
use ship::{Address, Central, Plan, start};

/// The 1st of October 2026.
const OCTOBER_US: i64 = 1_790_812_800_000_000;

fn main() {
    let rows: u64 = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(100_000);
    let place = server::Place::new().expect("a directory");
    let path = place.path("x.db");
    write(&path, rows);
    let local = std::fs::metadata(&path).map_or(0, |data| data.len());
    println!("ledger file: {} bytes a row", local / rows);

    let server = server::Server::with(&["shared_buffers=256MB", "max_wal_size=4GB"]);
    let url = server.url(&server.database());
    let mut owner = server.client(url.rsplit('/').next().expect("a database")).expect("a connection");
    let number = |owner: &mut postgres::Client, sql: &str| -> f64 {
        owner.query_one(sql, &[]).expect("an answer").get::<_, f64>(0)
    };
    let wal = "SELECT (pg_current_wal_lsn() - '0/0')::float8";
    let before = number(&mut owner, wal);
    let took = ship(&path, &url, 4096, rows);
    let written = number(&mut owner, wal) - before;
    println!(
        "whole, batches of 4096: {:.0} rows/s, {:.0} bytes of log a row",
        rows as f64 / took,
        written / rows as f64
    );
    for (what, sql) in [
        (
            "exchange, rows",
            "SELECT sum(pg_relation_size(inhrelid))::float8 FROM pg_inherits WHERE inhparent = 'tokenmeter.exchange'::regclass",
        ),
        (
            "exchange, indexes",
            "SELECT sum(pg_indexes_size(inhrelid))::float8 FROM pg_inherits WHERE inhparent = 'tokenmeter.exchange'::regclass",
        ),
    ] {
        println!("{what}: {:.0} bytes a row", number(&mut owner, sql) / rows as f64);
    }
    let lines = number(&mut owner, "SELECT count(*)::float8 FROM tokenmeter.line");
    let sizes = "SELECT sum(pg_total_relation_size(inhrelid))::float8 FROM pg_inherits WHERE inhparent = 'tokenmeter.line'::regclass";
    println!("lines: {lines:.0}, {:.0} bytes each with their index", number(&mut owner, sizes) / lines);

    let central = Central::open(&Address::parse(&url).expect("a URL")).expect("a store");
    let began = Instant::now();
    let mut seen = 0_u64;
    central
        .daily_totals(&Range::ALL, &mut |_, _| {
            seen += 1;
            Ok(())
        })
        .expect("lines");
    println!("all lines for a report: {seen} in {:.0} ms", began.elapsed().as_secs_f64() * 1e3);

    for batch in [40, 400] {
        let url = server.url(&server.database());
        let some = rows.min(40_000);
        let place = server::Place::new().expect("a directory");
        let path = place.path("x.db");
        write(&path, some);
        let took = ship(&path, &url, batch, some);
        let each = took / (some as f64 / batch as f64) * 1e3;
        println!("batches of {batch}: {:.0} rows/s, {each:.1} ms a batch", some as f64 / took);
    }
}

/// Ships a ledger over one connection. Returns the duration in seconds.
fn ship(path: &Path, url: &str, batch: usize, rows: u64) -> f64 {
    let plan = Plan::new(path, Address::parse(url).expect("a URL"), "bench");
    let plan = Plan { poll_interval: Duration::from_millis(5), batch_max_rows: batch, ..plan };
    let began = Instant::now();
    let shipper = start(plan).expect("a thread");
    while shipper.status().rows_total < rows {
        std::thread::sleep(Duration::from_millis(2));
    }
    let took = began.elapsed().as_secs_f64();
    shipper.shutdown(Duration::from_secs(10));
    took
}

/// A day's rows of one sidecar: twenty tenants, five models.
fn write(path: &Path, rows: u64) {
    let plan = ledger::Plan::new(path);
    let clock = std::sync::Arc::new(|| OCTOBER_US + DAY_US);
    let ledger = ledger::start(ledger::Plan { clock, ..plan });
    let began = Instant::now();
    for number in 0..rows {
        while number.saturating_sub(ledger.status().rows_total) > 30_000 {
            std::thread::sleep(Duration::from_millis(1));
        }
        ledger.enter(row(number));
    }
    while ledger.status().rows_total < rows {
        std::thread::sleep(Duration::from_millis(1));
    }
    println!("ledger: {:.0} rows/s entered", rows as f64 / began.elapsed().as_secs_f64());
    ledger.shutdown(Duration::from_secs(30));
}

fn row(number: u64) -> Row {
    let ended_us = OCTOBER_US + (number * 200) as i64;
    let mut by_type = [0; TokenType::ALL.len()];
    by_type[TokenType::Input as usize] = number % 4000;
    by_type[TokenType::Output as usize] = number % 700;
    let rate = Rate {
        id: [(number % 5) as u8 + 1; 16],
        version: "2026-10".into(),
        book: "b3f1".repeat(16).into(),
        entry: format!("model-{}", number % 5).into(),
        tier: "standard".into(),
        above_input_tokens: 0,
        currency: Currency::USD,
        per_token: [Some(150_000); TokenType::ALL.len()],
        per_request: 0,
    };
    Row {
        id: ExchangeId::new(
            ended_us.unsigned_abs() * 1000,
            u128::from(number).wrapping_mul(0x9E37_79B9_7F4A_7C15),
        ),
        started_us: ended_us - 3_000_000,
        ended_us,
        tenant: format!("tenant-{:02}", number / 5 % 20).into(),
        principal: Some(format!("key-{:012x}", number / 5 % 20).into()),
        consumer: Some(format!("{:032x}", number % 1000).into()),
        upstream: "default".into(),
        provider: "vllm".into(),
        dialect: "openai_chat".into(),
        model: format!("meta-llama/model-{}", number % 5).into(),
        response_model: Some(format!("meta-llama/model-{}", number % 5).into()),
        response_id: Some(format!("chatcmpl-{number:032x}").into()),
        ending: if number.is_multiple_of(50) { "client_abort" } else { "complete" }.into(),
        status: 200,
        streamed: true,
        tokens: Tokens {
            by_type,
            input_provenance: Provenance::Reported,
            output_provenance: Provenance::Reported,
        },
        duration_us: 3_000_000,
        first_token_us: Some(200_000),
        charge: Charge::Priced { rate: rate.into(), cost: 1_234_567_890 },
        trace: Some([number as u8; 16]),
        ..Row::default()
    }
}
