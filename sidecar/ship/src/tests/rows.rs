//! Rows by number: the same number, the same row. And what they come to, added up the obvious way.

use std::collections::BTreeMap;
use std::sync::Arc;

use ledger::Energy;
use ledger::export::{Origin, ShipBatch};
use ledger::source::{DAY_US, Used};
use ledger::{Class, DailyTotal, Row};
use meter::{ExchangeId, Provenance, TokenType, Tokens};
use price::{Charge, Currency, Rate, Unpriced};

/// The 15th of October 2026, noon.
pub(crate) const NOON_US: i64 = 1_792_065_600_000_000;

/// One of two rates.
pub(crate) fn rate(number: u64) -> Arc<Rate> {
    let mut id = [7; 16];
    id[0] = (number % 2) as u8 + 1;
    let mut per_token = [None; TokenType::ALL.len()];
    per_token[TokenType::Input as usize] = Some(150_000);
    per_token[TokenType::Output as usize] = Some(600_001);
    Arc::new(Rate {
        id,
        version: "2026-10".into(),
        book: "b00c".into(),
        entry: format!("model-{}", number % 2).into(),
        tier: "standard".into(),
        above_input_tokens: 0,
        currency: Currency::USD,
        per_token,
        per_request: 0,
    })
}

/// A row: five tenants, two models, a few days, each seventh without a price.
pub(crate) fn row(number: u64) -> Row {
    let mut by_type = [0; TokenType::ALL.len()];
    for (at, count) in by_type.iter_mut().enumerate() {
        *count = number.wrapping_mul(31 + at as u64) % 1000;
    }
    let ended_us = NOON_US + (number % 4) as i64 * DAY_US + number as i64;
    Row {
        id: ExchangeId::new(ended_us.unsigned_abs() * 1000, u128::from(number) + 1),
        started_us: ended_us - 1_234_567,
        ended_us,
        tenant: format!("tenant-{}", number % 5).into(),
        principal: number.is_multiple_of(3).then(|| "key-1".into()),
        consumer: number.is_multiple_of(4).then(|| "someone".into()),
        upstream: "default".into(),
        provider: "vllm".into(),
        dialect: "openai_chat".into(),
        model: format!("model-{}", number % 2).into(),
        response_model: number.is_multiple_of(2).then(|| "m".into()),
        response_id: Some(format!("chatcmpl-{number}").into()),
        ending: if number.is_multiple_of(9) { "client_abort" } else { "complete" }.into(),
        status: 200,
        streamed: number.is_multiple_of(2),
        tokens: Tokens {
            by_type,
            input_provenance: Provenance::Reported,
            output_provenance: if number.is_multiple_of(9) {
                Provenance::Running
            } else {
                Provenance::Reported
            },
        },
        duration_us: 1_000_000,
        first_token_us: number.is_multiple_of(2).then_some(100_000),
        charge: match number % 7 {
            0 => Charge::Unpriced(Unpriced::Model),
            _ => Charge::Priced { rate: rate(number), cost: (number % 1000) as i64 * 1_000_001 + 1 },
        },
        trace: number.is_multiple_of(6).then_some([9; 16]),
        ..Row::default()
    }
}

/// Returns the row with another end.
pub(crate) fn at(row: Row, ended_us: i64) -> Row {
    let id =
        ExchangeId::new(ended_us.unsigned_abs() * 1000, u128::from_be_bytes(row.id.0) & u128::from(u64::MAX));
    Row { id, ended_us, started_us: ended_us - 1_234_567, ..row }
}

/// A prefill leg, which has what only legs and repetitions have.
pub(crate) fn leg(row: Row) -> Row {
    Row {
        role: meter::Role::Prefill,
        request_id: Some("req-1".into()),
        upstream_attempts: 2,
        cached_excess: 1_945,
        usage_disagreement: Some(meter::Disagreement::CachedExcess),
        charge: Charge::Unpriced(Unpriced::Leg),
        ..row
    }
}

pub(crate) fn rows(numbers: std::ops::Range<u64>) -> Vec<Row> {
    numbers.map(row).collect()
}

/// Returns the GPU use of every third exchange.
pub(crate) fn energy(row: &Row, number: u64) -> Option<Energy> {
    let used = Used {
        energy_nj: number.is_multiple_of(2).then_some(number * 1_000_003),
        gpu_ns: Some(number * 77),
        gpu_hours_pico: number as i64 * 5,
        gpu_energy_pico: number as i64 * 3,
    };
    number.is_multiple_of(3).then_some(Energy {
        id: row.id,
        ended_us: row.ended_us,
        used,
        class: Class::Usage,
        key: None,
        role: row.role,
        day: row.day,
    })
}

/// A file's name for tests that send without one.
pub(crate) fn origin(number: u8) -> Origin {
    Origin { instance: [number; 16], month: 681 }
}

/// Returns a batch of rows, with their rates.
pub(crate) fn batch(rows: Vec<Row>) -> ShipBatch {
    let mut batch = ShipBatch { rows, rates: vec![rate(0), rate(1)], ..ShipBatch::default() };
    batch.next.exchange = batch.rows.len() as i64;
    batch
}

/// A line's keys, to compare by.
pub(crate) type Key = (i32, String, String, String, String, String, Option<[u8; 16]>);

/// Exchanges, tokens, cost, exchanges with energy, energy.
pub(crate) type Sums = (u64, u64, i128, u64, i128);

/// Returns the sums of lines by key.
pub(crate) fn by_key<'l>(lines: impl IntoIterator<Item = &'l DailyTotal>) -> BTreeMap<Key, Sums> {
    let mut all = BTreeMap::new();
    for line in lines {
        let key = (
            line.key.day,
            line.key.tenant.to_string(),
            line.key.principal.as_deref().unwrap_or("").to_owned(),
            line.key.model.to_string(),
            line.key.ending.to_string(),
            line.key.class.name().to_owned(),
            line.key.rate,
        );
        let sums: &mut Sums = all.entry(key).or_default();
        sums.0 += line.sums.exchanges;
        sums.1 += line.sums.tokens.iter().sum::<u64>();
        sums.2 += line.sums.cost_pico;
        sums.3 += line.sums.energy_exchanges;
        sums.4 += line.sums.gpu.energy_nj;
    }
    all
}

/// Returns the sums of rows by key.
pub(crate) fn added_up(rows: &[Row], energy: &[Energy]) -> BTreeMap<Key, Sums> {
    let mut all = BTreeMap::new();
    for row in rows {
        let key = (
            (row.ended_us / DAY_US) as i32,
            row.tenant.to_string(),
            row.principal.as_deref().unwrap_or("").to_owned(),
            row.model.to_string(),
            row.ending.to_string(),
            "usage".to_owned(),
            match &row.charge {
                Charge::Priced { rate, .. } => Some(rate.id),
                Charge::Unpriced(_) => None,
            },
        );
        let sums: &mut Sums = all.entry(key).or_default();
        sums.0 += 1;
        sums.1 += row.tokens.by_type.iter().sum::<u64>();
        sums.2 += i128::from(row.charge.cost().unwrap_or(0));
        for used in energy.iter().filter(|used| used.id == row.id) {
            sums.3 += 1;
            sums.4 += i128::from(used.used.energy_nj.unwrap_or(0));
        }
    }
    all
}
