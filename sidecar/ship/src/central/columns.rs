//! Reads values from the store's columns, by name, so that a table may gain columns.

use std::collections::HashMap;
use std::sync::Arc;

use ledger::source::{Correction, DeviceTotal, Gap, Share, SourceError, Used};
use ledger::{Class, DailyTotal, GpuSums, Row, Sums, TotalKey};
use meter::{ExchangeId, Provenance, Role, TokenType, Tokens};
use postgres::Row as Columns;
use postgres::types::FromSql;
use price::{Charge, Currency, Rate, Unpriced};

use crate::values::{Id, Instant, day};

pub(super) fn row(row: &Columns, rates: &HashMap<[u8; 16], Arc<Rate>>) -> Result<Row, SourceError> {
    let charge = match (get::<Option<Id>>(row, "rate")?, get::<Option<i64>>(row, "cost_pico")?) {
        (Some(rate), Some(cost)) => {
            let rate = rates.get(&rate.0).ok_or("a row names a rate that the central store does not have")?;
            Charge::Priced { rate: Arc::clone(rate), cost }
        }
        _ => Charge::Unpriced(one_of(&Unpriced::ALL, Unpriced::name, get(row, "unpriced")?)?),
    };
    Ok(Row {
        id: exchange_id(row, "id")?,
        started_us: instant(row, "started_at")?,
        ended_us: instant(row, "ended_at")?,
        tenant: text(row, "tenant")?,
        principal: text_if(row, "principal")?,
        consumer: text_if(row, "consumer")?,
        upstream: text(row, "upstream")?,
        provider: text(row, "provider")?,
        dialect: text(row, "dialect")?,
        model: text(row, "model")?,
        response_model: text_if(row, "response_model")?,
        response_id: text_if(row, "response_id")?,
        service_tier: text_if(row, "service_tier")?,
        ending: text(row, "ending")?,
        status: u16::try_from(get::<i32>(row, "status")?).unwrap_or_default(),
        streamed: get(row, "streamed")?,
        tokens: Tokens {
            input_provenance: provenance(row, "input_provenance")?,
            output_provenance: provenance(row, "output_provenance")?,
            by_type: tokens(row)?,
        },
        duration_us: get(row, "duration_us")?,
        first_token_us: get(row, "first_token_us")?,
        charge,
        trace: get::<Option<Id>>(row, "trace")?.map(|id| id.0),
        role: match get(row, "role")? {
            Some(word) => one_of(&Role::ALL, Role::name, word)?,
            None => Role::Whole,
        },
        request_id: text_if(row, "request_id")?,
        upstream_attempts: u8::try_from(get::<i32>(row, "upstream_attempts")?).unwrap_or(u8::MAX),
        cached_excess: count(row, "cached_excess")?,
    })
}

pub(super) fn used(row: &Columns) -> Result<Used, SourceError> {
    Ok(Used {
        energy_nj: get::<Option<i64>>(row, "energy_nj")?.map(i64::unsigned_abs),
        gpu_ns: get::<Option<i64>>(row, "gpu_ns")?.map(i64::unsigned_abs),
        gpu_hours_pico: get(row, "gpu_hours_pico")?,
        gpu_energy_pico: get(row, "gpu_energy_pico")?,
    })
}

pub(super) fn line(row: &Columns) -> Result<DailyTotal, SourceError> {
    Ok(DailyTotal {
        key: TotalKey {
            principal: text_if(row, "principal")?.filter(|name| !name.is_empty()),
            rate: Some(get::<Id>(row, "rate")?.0).filter(|id| *id != [0; 16]),
            ..key(row, get(row, "day")?, one_of(&Class::ALL, Class::name, get(row, "class")?)?)?
        },
        sums: Sums {
            exchanges: count(row, "exchanges")?,
            tokens: tokens(row)?,
            cost_pico: sum(row, "cost_pico")?,
            energy_exchanges: count(row, "energy_exchanges")?,
            gpu: gpu(row)?,
        },
    })
}

pub(super) fn correction(row: &Columns) -> Result<Correction, SourceError> {
    let ended_us = instant(row, "ended_at")?;
    Ok(Correction {
        id: exchange_id(row, "id")?,
        made_us: instant(row, "made_at")?,
        exchange: exchange_id(row, "exchange")?,
        line: DailyTotal {
            key: TotalKey {
                rate: Some(get::<Id>(row, "rate")?.0),
                ..key(row, day(ended_us), Class::Correction)?
            },
            sums: Sums {
                exchanges: u64::from(get::<bool>(row, "unpriced")?),
                cost_pico: get::<i64>(row, "delta_pico")?.into(),
                ..Sums::default()
            },
        },
        ended_us,
    })
}

/// Reads the correction that gave a row its first price.
pub(super) fn first_price(columns: &Columns, row: &Row) -> Result<Correction, SourceError> {
    Ok(Correction {
        id: exchange_id(columns, "correction")?,
        made_us: instant(columns, "made_at")?,
        exchange: row.id,
        line: DailyTotal {
            key: TotalKey {
                rate: Some(get::<Id>(columns, "first_rate")?.0),
                ..TotalKey::of_row(row, Class::Correction)
            },
            sums: Sums {
                exchanges: 1,
                cost_pico: get::<i64>(columns, "delta_pico")?.into(),
                ..Sums::default()
            },
        },
        ended_us: row.ended_us,
    })
}

pub(super) fn device(row: &Columns) -> Result<DeviceTotal, SourceError> {
    Ok(DeviceTotal {
        day: get(row, "day")?,
        hw_id: text(row, "hw_id")?,
        share: one_of(&Share::ALL, Share::name, get(row, "share")?)?,
        sums: gpu(row)?,
    })
}

fn gpu(row: &Columns) -> Result<GpuSums, SourceError> {
    Ok(GpuSums {
        energy_nj: sum(row, "energy_nj")?,
        gpu_ns: sum(row, "gpu_ns")?,
        gpu_hours_pico: sum(row, "gpu_hours_pico")?,
        gpu_energy_pico: sum(row, "gpu_energy_pico")?,
    })
}

pub(super) fn gap(row: &Columns) -> Result<Gap, SourceError> {
    Ok(Gap {
        from_us: instant(row, "since")?,
        until_us: instant(row, "until")?,
        why: text(row, "why")?,
        lost_rows: get::<Option<i64>>(row, "lost_rows")?.map(i64::unsigned_abs),
        totals_kept: get(row, "totals_kept")?,
    })
}

pub(super) fn rate(row: &Columns) -> Result<Rate, SourceError> {
    let mut per_token = [None; TokenType::ALL.len()];
    for (kind, price) in TokenType::ALL.iter().zip(&mut per_token) {
        *price = get(row, kind.name())?;
    }
    let code: &str = get(row, "currency")?;
    Ok(Rate {
        id: get::<Id>(row, "id")?.0,
        version: text(row, "version")?,
        book: text(row, "book")?,
        entry: text(row, "entry")?,
        tier: text(row, "tier")?,
        above_input_tokens: count(row, "above_input_tokens")?,
        currency: Currency(code.as_bytes().try_into().map_err(|_| "a currency's code has three letters")?),
        per_token,
        per_request: get(row, "per_request")?,
    })
}

/// Returns the key of a total, without its rate.
fn key(row: &Columns, day: i32, class: Class) -> Result<TotalKey, SourceError> {
    Ok(TotalKey {
        day,
        tenant: text(row, "tenant")?,
        principal: text_if(row, "principal")?,
        upstream: text(row, "upstream")?,
        provider: text(row, "provider")?,
        model: text(row, "model")?,
        ending: text(row, "ending")?,
        input_provenance: provenance(row, "input_provenance")?,
        output_provenance: provenance(row, "output_provenance")?,
        rate: None,
        class,
    })
}

fn tokens(row: &Columns) -> Result<[u64; TokenType::ALL.len()], SourceError> {
    let mut counts = [0; TokenType::ALL.len()];
    for (kind, number) in TokenType::ALL.iter().zip(&mut counts) {
        *number = count(row, kind.name())?;
    }
    Ok(counts)
}

fn provenance(row: &Columns, column: &str) -> Result<Provenance, SourceError> {
    one_of(&Provenance::ALL, Provenance::name, get(row, column)?)
}

fn count(row: &Columns, column: &str) -> Result<u64, SourceError> {
    Ok(get::<i64>(row, column)?.unsigned_abs())
}

fn sum(row: &Columns, column: &str) -> Result<i128, SourceError> {
    let digits: &str = get(row, column)?;
    digits.parse().map_err(|_| format!("the central store's {column} is not a whole number").into())
}

fn exchange_id(row: &Columns, column: &str) -> Result<ExchangeId, SourceError> {
    Ok(ExchangeId(get::<Id>(row, column)?.0))
}

fn instant(row: &Columns, column: &str) -> Result<i64, SourceError> {
    Ok(get::<Instant>(row, column)?.0)
}

fn text(row: &Columns, column: &str) -> Result<Arc<str>, SourceError> {
    Ok(get::<&str>(row, column)?.into())
}

fn text_if(row: &Columns, column: &str) -> Result<Option<Arc<str>>, SourceError> {
    Ok(get::<Option<&str>>(row, column)?.map(Into::into))
}

fn get<'a, T: FromSql<'a>>(row: &'a Columns, column: &str) -> Result<T, SourceError> {
    Ok(row.try_get(column)?)
}

fn one_of<T: Copy>(all: &[T], name: fn(T) -> &'static str, word: &str) -> Result<T, SourceError> {
    let found = all.iter().copied().find(|one| name(*one) == word);
    found.ok_or_else(|| format!("the central store has an unknown value: {word}").into())
}
