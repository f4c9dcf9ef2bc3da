//! How many rows a second the ledger takes, to the disk and acknowledged: rows of many tenants are
//! entered as fast as they are taken, for so many seconds.
//!
//! `cargo run --release -p tokenmeter-bench --bin bench-ledger -- DIRECTORY [SECONDS]`. The directory
//! should be on the disk that is meant; what is written there is taken away again.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ledger::{Plan, Row, Status, now_us, start};
use meter::{ExchangeId, Provenance, TokenType, Tokens};
use price::{Charge, Currency, Rate};

/// So many may wait; below what the queue holds, so that none is shed.
const WAITING: u64 = 50_000;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let directory = arguments.next().unwrap_or_else(|| ".".to_owned());
    let seconds = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(10);
    let directory = Path::new(&directory).join(format!("bench-ledger-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("the directory can be written");
    let ledger = start(Plan::new(directory.join("x.db")));
    let rates: Vec<_> = (0..8).map(rate).collect();
    let began = Instant::now();
    let (mut entered, mut worst) = (0_u64, Duration::ZERO);
    while began.elapsed() < Duration::from_secs(seconds) {
        for _ in 0..1_000 {
            ledger.enter(row(entered, &rates));
            entered += 1;
        }
        let waits = |status: &Status| status.queued_rows > WAITING;
        let mut status = ledger.status();
        while waits(&status) {
            std::thread::sleep(Duration::from_micros(500));
            status = ledger.status();
        }
        worst = worst.max(status.commit_lag);
    }
    let in_time = ledger.status().rows_total;
    let took = began.elapsed().as_secs_f64();
    let ended = ledger.shutdown(Duration::from_secs(60));
    let status = ledger.status();
    let bytes = std::fs::metadata(directory.join("x.db")).map_or(0, |data| data.len());
    println!("rows acknowledged a second: {:.0}", in_time as f64 / took);
    println!("rows a commit: {:.0}", status.rows_total as f64 / status.commits_total.max(1) as f64);
    println!("bytes a row: {:.0}", bytes as f64 / status.rows_total.max(1) as f64);
    println!("longest wait for the disk: {worst:?}");
    println!(
        "entered {entered}, acknowledged {}, shed {}; ended in order: {ended}",
        status.rows_total, status.shed_rows_total
    );
    let _ = std::fs::remove_dir_all(directory);
}

fn rate(n: u8) -> Arc<Rate> {
    Arc::new(Rate {
        id: [n; 16],
        version: "2026-10".into(),
        book: "b00c".into(),
        entry: format!("model-{n}").into(),
        tier: "standard".into(),
        above_input_tokens: 0,
        currency: Currency::USD,
        per_token: [Some(1_000_000); TokenType::ALL.len()],
        per_request: 0,
    })
}

/// One of a hundred tenants and eight models.
fn row(n: u64, rates: &[Arc<Rate>]) -> Row {
    let ended_us = now_us();
    let mut by_type = [0; TokenType::ALL.len()];
    by_type[TokenType::Input as usize] = n % 1_000;
    by_type[TokenType::Output as usize] = n % 500 + 1;
    let rate = &rates[usize::try_from(n % 8).unwrap_or(0)];
    Row {
        id: ExchangeId::new(u64::try_from(ended_us).unwrap_or(0) * 1_000, u128::from(n) << 20),
        started_us: ended_us - 2_000_000,
        ended_us,
        tenant: format!("tenant-{}", n % 100).into(),
        principal: Some("k_0123456789abcdef".into()),
        consumer: None,
        upstream: "default".into(),
        provider: "vllm".into(),
        dialect: "openai_chat".into(),
        model: Arc::clone(&rate.entry),
        response_model: Some(Arc::clone(&rate.entry)),
        response_id: Some(format!("chatcmpl-{n:032x}").into()),
        service_tier: None,
        ending: "complete".into(),
        status: 200,
        streamed: true,
        tokens: Tokens {
            by_type,
            input_provenance: Provenance::Reported,
            output_provenance: Provenance::Reported,
        },
        duration_us: 2_000_000,
        first_token_us: Some(150_000),
        charge: Charge::Priced { rate: Arc::clone(rate), cost: 123_456_789 },
        trace: Some([5; 16]),
    }
}
