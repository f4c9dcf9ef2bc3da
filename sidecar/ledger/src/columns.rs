//! The columns of every table, each written once. CREATE and ALTER TABLE of a file, row checksums, and the statements
//! that write to a file or a central store and read from them come from these lists.
//!
//! A column has the name of its field, so that no two can be swapped. Until the first release a new column belongs to
//! version 1. Afterwards it may be NULL, and stands at the end with the version of the schema that adds it
//! ([`Column::since`]); files and central stores are migrated to it automatically.

use std::sync::{Arc, LazyLock};

use meter::{ExchangeId, Role, TokenType};
use price::{Charge, Currency, Rate, Unpriced};

use crate::audit_event::AuditEvent;
use crate::column::{Absent, Column, Field, Sql, Stored, Value, invalid};
use crate::energy::Energy;
use crate::row::other_day;
use crate::source::{Correction, DeviceTotal, Gap, MadeCorrection, Share, Used};
use crate::{Class, DailyTotal, GpuSums, Row, Sums, TotalKey, month};

/// The version of the ledger's schema: the highest of its columns.
pub const VERSION: i64 = 1;

/// Columns of a type, each a path of fields, an SQL type, and methods of [`Column`] after `=>`.
macro_rules! columns {
    ($of:ty { $($($path:ident).+ : $sql:expr $(=> $mark:ident($($n:expr)?))*),* $(,)? }) => {
        vec![$(Column::<$of>::new(
            stringify!($($path).+),
            $sql,
            |row| &row.$($path).+,
            |row| Field::value(&row.$($path).+),
            |row, value, reader| {
                row.$($path).+ = Field::read(value, reader)?;
                Ok(())
            },
        )$(.$mark($($n)?))*),*]
    };
}

/// The column of a type for one element of an array by token type.
macro_rules! of_type {
    ($of:ty, $kind:ident, $($path:ident).+) => {
        Column::<$of>::new(
            TokenType::$kind.name(),
            Sql::Integer,
            |row| &row.$($path).+[TokenType::$kind as usize],
            |row| Field::value(&row.$($path).+[TokenType::$kind as usize]),
            |row, value, reader| {
                row.$($path).+[TokenType::$kind as usize] = Field::read(value, reader)?;
                Ok(())
            },
        )
    };
}

/// The columns of a type for an array by token type.
macro_rules! token_types {
    ($of:ty, $($path:ident).+) => {
        [
            of_type!($of, Input, $($path).+),
            of_type!($of, InputCached, $($path).+),
            of_type!($of, InputCacheWrite, $($path).+),
            of_type!($of, InputCacheWrite1h, $($path).+),
            of_type!($of, InputAudio, $($path).+),
            of_type!($of, InputImage, $($path).+),
            of_type!($of, InputVideo, $($path).+),
            of_type!($of, InputCachedAudio, $($path).+),
            of_type!($of, InputCachedImage, $($path).+),
            of_type!($of, Output, $($path).+),
            of_type!($of, OutputReasoning, $($path).+),
            of_type!($of, OutputAudio, $($path).+),
            of_type!($of, OutputImage, $($path).+),
            of_type!($of, OutputVideo, $($path).+),
        ]
    };
}

/// One row for each exchange.
impl Stored for Row {
    const TABLE: &'static str = "exchange";
    const CONSTRAINTS: &'static str = ", FOREIGN KEY (rate) REFERENCES rate (id), \
        CHECK ((cost_pico IS NULL) = (rate IS NULL) AND (rate IS NULL) <> (unpriced IS NULL))";

    fn columns() -> &'static [Column<Self>] {
        static COLUMNS: LazyLock<Vec<Column<Row>>> = LazyLock::new(|| {
            let mut all = columns!(Row {
                id: Sql::Id,
                started_us: Sql::Time,
                ended_us: Sql::Time,
                tenant: Sql::Text,
                principal: Sql::Text,
                consumer: Sql::Text,
                upstream: Sql::Text,
                provider: Sql::Text,
                dialect: Sql::Text,
                model: Sql::Text,
                response_model: Sql::Text,
                response_id: Sql::Text => unique(),
                service_tier: Sql::Text,
                ending: Sql::Text,
                status: Sql::Small,
                streamed: Sql::Flag,
            });
            all.extend(token_types!(Row, tokens.by_type));
            all.extend(columns!(Row {
                tokens.input_provenance: Sql::Text,
                tokens.output_provenance: Sql::Text,
                duration_us: Sql::Integer,
                first_token_us: Sql::Integer,
            }));
            all.extend(charge());
            all.extend(columns!(Row {
                trace: Sql::Id,
                role: Sql::Text,
                request_id: Sql::Text => unique(),
                upstream_attempts: Sql::Small,
                cached_excess: Sql::Integer,
                usage_disagreement: Sql::Text,
                day: Sql::Day,
            }));
            all
        });
        &COLUMNS
    }

    fn blank() -> Self {
        Self::default()
    }
}

/// The columns of a row's charge: a rate and a cost, or the reason why there is none.
fn charge() -> [Column<Row>; 3] {
    [
        Column::made(
            "rate",
            Sql::Id,
            Absent::Null,
            |row| match &row.charge {
                Charge::Priced { rate, .. } => Value::Id(&rate.id),
                Charge::Unpriced(_) => Value::Null,
            },
            |row, value, reader| {
                row.charge = match value {
                    Value::Id(id) => Charge::Priced { rate: reader.rate(id)?, cost: 0 },
                    Value::Null => Charge::Unpriced(Unpriced::NoBook),
                    _ => return Err(invalid()),
                };
                Ok(())
            },
        ),
        Column::made(
            "cost_pico",
            Sql::Integer,
            Absent::Null,
            |row| row.charge.cost().map_or(Value::Null, |cost| Value::Number(cost.into())),
            |row, value, reader| match (&mut row.charge, value) {
                (Charge::Priced { cost, .. }, value) => {
                    *cost = Field::read(value, reader)?;
                    Ok(())
                }
                (Charge::Unpriced(_), Value::Null) => Ok(()),
                _ => Err(invalid()),
            },
        ),
        Column::made(
            "unpriced",
            Sql::Text,
            Absent::Null,
            |row| match &row.charge {
                Charge::Priced { .. } => Value::Null,
                Charge::Unpriced(why) => Value::Text(why.name()),
            },
            |row, value, _| match (&mut row.charge, value) {
                (Charge::Priced { .. }, Value::Null) => Ok(()),
                (Charge::Unpriced(why), Value::Text(word)) => {
                    *why = Unpriced::ALL.into_iter().find(|one| one.name() == word).ok_or_else(invalid)?;
                    Ok(())
                }
                _ => Err(invalid()),
            },
        ),
    ]
}

/// The unit prices that rows were charged by; the id is a hash of all else.
impl Stored for Rate {
    const TABLE: &'static str = "rate";
    const KEYS: usize = 1;

    fn columns() -> &'static [Column<Self>] {
        static COLUMNS: LazyLock<Vec<Column<Rate>>> = LazyLock::new(|| {
            let mut all = columns!(Rate {
                id: Sql::Id,
                version: Sql::Text,
                book: Sql::Text,
                entry: Sql::Text,
                tier: Sql::Text,
                above_input_tokens: Sql::Integer,
                currency: Sql::Text,
            });
            // Pico-units for one token of the type.
            all.extend(token_types!(Rate, per_token));
            all.extend(columns!(Rate { per_request: Sql::Integer }));
            all
        });
        &COLUMNS
    }

    fn blank() -> Self {
        Self {
            id: [0; 16],
            version: Arc::default(),
            book: Arc::default(),
            entry: Arc::default(),
            tier: Arc::default(),
            above_input_tokens: 0,
            currency: Currency::USD,
            per_token: [None; TokenType::ALL.len()],
            per_request: 0,
        }
    }
}

/// The GPU use of an exchange, known once the sample that covers its end has closed.
impl Stored for Energy {
    const TABLE: &'static str = "energy";

    fn columns() -> &'static [Column<Self>] {
        /// Columns for fields of the daily total's key, which exists if the column `tenant` before them has a value.
        macro_rules! of_key {
            ($($name:ident: $sql:expr),*) => {
                [$(Column::<Energy>::made(
                    stringify!($name),
                    $sql,
                    Absent::Null,
                    |row| row.key.as_ref().map_or(Value::Null, |key| Field::value(&key.$name)),
                    |row, value, reader| {
                        if let Some(key) = &mut row.key {
                            key.$name = Field::read(value, reader)?;
                        }
                        Ok(())
                    },
                )),*]
            };
        }
        static COLUMNS: LazyLock<Vec<Column<Energy>>> = LazyLock::new(|| {
            let mut all = columns!(Energy {
                id: Sql::Id,
                ended_us: Sql::Time,
                used.energy_nj: Sql::Integer,
                used.gpu_ns: Sql::Integer,
                used.gpu_hours_pico: Sql::Integer,
                used.gpu_energy_pico: Sql::Integer,
                class: Sql::Text,
            });
            all.push(Column::made(
                "tenant",
                Sql::Text,
                Absent::Null,
                |row: &Energy| row.key.as_ref().map_or(Value::Null, |key| Field::value(&key.tenant)),
                |row, value, reader| {
                    let tenant: Option<Arc<str>> = Field::read(value, reader)?;
                    let (day, class) = (month::day(row.ended_us), row.class);
                    row.key = tenant.map(|tenant| TotalKey { day, class, tenant, ..TotalKey::blank() });
                    Ok(())
                },
            ));
            all.extend(of_key!(
                principal: Sql::Text,
                upstream: Sql::Text,
                provider: Sql::Text,
                model: Sql::Text,
                ending: Sql::Text,
                input_provenance: Sql::Text,
                output_provenance: Sql::Text,
                rate: Sql::Id
            ));
            all.extend(columns!(Energy { role: Sql::Text }));
            all.push(Column::made(
                "day",
                Sql::Day,
                Absent::Null,
                |row: &Energy| Field::value(&row.day),
                |row, value, reader| {
                    row.day = Field::read(value, reader)?;
                    if let (Some(day), Some(key)) = (row.day, &mut row.key) {
                        key.day = day;
                    }
                    Ok(())
                },
            ));
            all
        });
        &COLUMNS
    }

    fn blank() -> Self {
        Self {
            id: ExchangeId::default(),
            ended_us: 0,
            used: Used::default(),
            class: Class::Usage,
            key: None,
            role: Role::Whole,
            day: None,
        }
    }
}

/// The sums of a day's exchanges with equal keys, written with the rows that they sum, in one transaction.
impl Stored for DailyTotal {
    const TABLE: &'static str = "line";
    const KEYS: usize = 11;

    fn columns() -> &'static [Column<Self>] {
        static COLUMNS: LazyLock<Vec<Column<DailyTotal>>> = LazyLock::new(|| {
            let mut all = columns!(DailyTotal {
                key.day: Sql::Day,
                key.tenant: Sql::Text,
                key.principal: Sql::Text => key(),
                key.upstream: Sql::Text,
                key.provider: Sql::Text,
                key.model: Sql::Text,
                key.ending: Sql::Text,
                key.input_provenance: Sql::Text,
                key.output_provenance: Sql::Text,
                key.rate: Sql::Id => key(),
                key.class: Sql::Text,
                sums.exchanges: Sql::Integer,
            });
            all.extend(token_types!(DailyTotal, sums.tokens));
            all.extend(columns!(DailyTotal {
                sums.cost_pico: Sql::Sum("cost"),
                sums.energy_exchanges: Sql::Integer,
                sums.gpu.energy_nj: Sql::Sum("energy"),
                sums.gpu.gpu_ns: Sql::Sum("gpu_ns"),
                sums.gpu.gpu_hours_pico: Sql::Sum("gpu_hours"),
                sums.gpu.gpu_energy_pico: Sql::Sum("gpu_energy"),
            }));
            all
        });
        &COLUMNS
    }

    fn blank() -> Self {
        Self { key: TotalKey::blank(), sums: Sums::default() }
    }
}

/// The GPU use of a day that belongs to no exchange.
impl Stored for DeviceTotal {
    const TABLE: &'static str = "device";
    const KEYS: usize = 3;

    fn columns() -> &'static [Column<Self>] {
        static COLUMNS: LazyLock<Vec<Column<DeviceTotal>>> = LazyLock::new(|| {
            columns!(DeviceTotal {
                day: Sql::Day,
                hw_id: Sql::Text,
                share: Sql::Text,
                sums.energy_nj: Sql::Sum("energy"),
                sums.gpu_ns: Sql::Sum("gpu_ns"),
                sums.gpu_hours_pico: Sql::Sum("gpu_hours"),
                sums.gpu_energy_pico: Sql::Sum("gpu_energy"),
            })
        });
        &COLUMNS
    }

    fn blank() -> Self {
        Self { day: 0, hw_id: Arc::default(), share: Share::Idle, sums: GpuSums::default() }
    }
}

/// Later changes of charges, beside the rows, which never change.
impl Stored for MadeCorrection {
    const TABLE: &'static str = "correction";
    const CONSTRAINTS: &'static str =
        ", FOREIGN KEY (act) REFERENCES act (seq), FOREIGN KEY (rate) REFERENCES rate (id)";

    fn columns() -> &'static [Column<Self>] {
        static COLUMNS: LazyLock<Vec<Column<MadeCorrection>>> = LazyLock::new(|| {
            let mut all = columns!(MadeCorrection {
                correction.id: Sql::Id,
                correction.made_us: Sql::Time,
                act: Sql::Integer,
                correction.exchange: Sql::Id,
            });
            all.push(Column::made(
                "ended_us",
                Sql::Time,
                Absent::Never,
                |row: &MadeCorrection| Field::value(&row.correction.ended_us),
                |row, value, reader| {
                    row.correction.ended_us = Field::read(value, reader)?;
                    row.correction.line.key.day = month::day(row.correction.ended_us);
                    Ok(())
                },
            ));
            all.extend(columns!(MadeCorrection {
                correction.line.key.tenant: Sql::Text,
                correction.line.key.principal: Sql::Text,
                correction.line.key.upstream: Sql::Text,
                correction.line.key.provider: Sql::Text,
                correction.line.key.model: Sql::Text,
                correction.line.key.ending: Sql::Text,
                correction.line.key.input_provenance: Sql::Text,
                correction.line.key.output_provenance: Sql::Text,
            }));
            all.extend([
                // The rate that holds from now on.
                Column::made(
                    "rate",
                    Sql::Id,
                    Absent::Never,
                    |row: &MadeCorrection| Field::value(&row.correction.line.key.rate),
                    |row, value, reader| {
                        row.correction.line.key.rate = Some(Field::read(value, reader)?);
                        Ok(())
                    },
                ),
                Column::made(
                    "unpriced",
                    Sql::Flag,
                    Absent::Never,
                    |row| Value::Number(i128::from(row.correction.line.sums.exchanges != 0)),
                    |row, value, reader| {
                        row.correction.line.sums.exchanges = Field::read(value, reader)?;
                        Ok(())
                    },
                ),
                Column::made(
                    "delta_pico",
                    Sql::Integer,
                    Absent::Never,
                    |row| Field::value(&row.correction.line.sums.cost_pico),
                    |row, value, reader| {
                        row.correction.line.sums.cost_pico = Field::read(value, reader)?;
                        Ok(())
                    },
                ),
                // The day of its exchange; NULL: the UTC day of `ended_us`.
                Column::made(
                    "day",
                    Sql::Day,
                    Absent::Null,
                    |row: &MadeCorrection| match other_day(
                        row.correction.line.key.day,
                        row.correction.ended_us,
                    ) {
                        Some(day) => Value::Number(day.into()),
                        None => Value::Null,
                    },
                    |row, value, reader| {
                        if let Some(day) = Field::read(value, reader)? {
                            row.correction.line.key.day = day;
                        }
                        Ok(())
                    },
                ),
            ]);
            all
        });
        &COLUMNS
    }

    fn blank() -> Self {
        let key = TotalKey { class: Class::Correction, ..TotalKey::blank() };
        Self {
            act: 0,
            correction: Correction {
                id: ExchangeId::default(),
                made_us: 0,
                exchange: ExchangeId::default(),
                line: DailyTotal { key, sums: Sums::default() },
                ended_us: 0,
            },
        }
    }
}

/// The audit trail.
impl Stored for AuditEvent {
    const TABLE: &'static str = "act";

    fn columns() -> &'static [Column<Self>] {
        static COLUMNS: LazyLock<Vec<Column<AuditEvent>>> = LazyLock::new(|| {
            columns!(AuditEvent { at_us: Sql::Time, what: Sql::Text, who: Sql::Text, detail: Sql::Text })
        });
        &COLUMNS
    }

    fn blank() -> Self {
        Self { at_us: 0, what: Arc::default(), who: Arc::default(), detail: Arc::default() }
    }
}

/// Times of which rows may be missing.
impl Stored for Gap {
    const TABLE: &'static str = "gap";

    fn columns() -> &'static [Column<Self>] {
        static COLUMNS: LazyLock<Vec<Column<Gap>>> = LazyLock::new(|| {
            columns!(Gap {
                from_us: Sql::Time,
                until_us: Sql::Time,
                why: Sql::Text,
                lost_rows: Sql::Integer,
                totals_kept: Sql::Flag,
                cost.unpriced_rows: Sql::Integer,
                cost.cost_pico: Sql::Sum("cost"),
                cost.currency: Sql::Text,
            })
        });
        &COLUMNS
    }

    fn blank() -> Self {
        Self::unknown(0, 0, "")
    }
}

#[cfg(test)]
#[path = "columns_tests.rs"]
mod tests;
