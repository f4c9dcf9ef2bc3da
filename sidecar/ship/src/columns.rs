//! The columns of the ledger's types ([`ledger::columns`]) in the central store: names, types, rows sent as arrays, and
//! rows read back by name.

use std::borrow::Cow;

use ledger::column::{Absent, Column, RowReader, Sql, Stored, Value};
use ledger::source::SourceError;
use postgres::Row;
use postgres::types::{ToSql, Type};

use crate::values::{Day, Id, Instant, text};

/// Returns the name of a column in the store: instants end in `_at`.
pub(crate) fn name<T>(column: &Column<T>) -> Cow<'static, str> {
    match (column.sql, column.name.strip_suffix("_us")) {
        (Sql::Time, Some(stem)) if stem.ends_with("at") => stem.into(),
        (Sql::Time, Some(stem)) => format!("{stem}_at").into(),
        _ => column.name.into(),
    }
}

/// The type in which sums are sent, of no other column: a statement casts it.
pub(crate) const SUM: Type = Type::VARCHAR_ARRAY;

/// Returns the values of a column in rows, as a parameter of a statement. A sum is sent as text, because no number of a
/// fixed size holds it.
pub(crate) fn array<'r, T: 'static>(
    column: &Column<T>,
    rows: impl Iterator<Item = &'r T>,
) -> (Box<dyn ToSql + Sync>, Type) {
    fn boxed<V: ToSql + Sync + 'static>(
        values: impl Iterator<Item = Option<V>>,
        kind: Type,
    ) -> (Box<dyn ToSql + Sync>, Type) {
        (Box::new(values.collect::<Vec<_>>()), kind)
    }
    let numbers = |rows| values(column, rows).map(number);
    match column.sql {
        Sql::Time => boxed(numbers(rows).map(|us| us.map(Instant)), Type::TIMESTAMPTZ_ARRAY),
        Sql::Integer => boxed(numbers(rows), Type::INT8_ARRAY),
        Sql::Day => boxed(numbers(rows).map(|day| day.map(|day| Day(clamp(day)))), Type::DATE_ARRAY),
        Sql::Small => boxed(numbers(rows).map(|number| number.map(clamp)), Type::INT4_ARRAY),
        Sql::Flag => boxed(numbers(rows).map(|flag| flag.map(|flag| flag != 0)), Type::BOOL_ARRAY),
        Sql::Text => boxed(values(column, rows).map(|value| string(value, column.absent)), Type::TEXT_ARRAY),
        Sql::Sum(_) => boxed(values(column, rows).map(sum), SUM),
        Sql::Id => boxed(values(column, rows).map(|value| id(value, column.absent)), Type::UUID_ARRAY),
    }
}

fn values<'r, T: 'static>(
    column: &Column<T>,
    rows: impl Iterator<Item = &'r T>,
) -> impl Iterator<Item = Value<'r>> {
    rows.map(|row| column.value(row))
}

/// Returns a number, which always fits: a column of a file has 64 bits.
fn number(value: Value<'_>) -> Option<i64> {
    match value {
        Value::Number(number) => Some(i64::try_from(number).unwrap_or(i64::MAX)),
        _ => None,
    }
}

fn clamp(number: i64) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

fn sum(value: Value<'_>) -> Option<String> {
    match value {
        Value::Number(sum) => Some(sum.to_string()),
        _ => None,
    }
}

fn string(value: Value<'_>, absent: Absent) -> Option<String> {
    match (value, absent) {
        (Value::Text(word), _) => Some(text(word)),
        (_, Absent::Empty) => Some(String::new()),
        _ => None,
    }
}

fn id(value: Value<'_>, absent: Absent) -> Option<Id> {
    match (value, absent) {
        (Value::Id(id), _) => Some(Id(*id)),
        (_, Absent::Empty) => Some(NO_ID),
        _ => None,
    }
}

/// The id in a primary key where there is none.
const NO_ID: Id = Id([0; 16]);

/// Reads a row by the names of its columns. A column that the store does not have yet is absent from every row.
pub(crate) fn read<T: Stored>(row: &Row, reader: &mut RowReader<'_>) -> Result<T, SourceError> {
    let mut item = T::blank();
    for column in T::columns() {
        let name = &*name(column);
        let is_there = column.version == 1 || row.columns().iter().any(|there| there.name() == name);
        let (id, digits);
        let value = match column.sql {
            _ if !is_there => Value::Null,
            Sql::Time => of(row.try_get::<_, Option<Instant>>(name)?.map(|at| at.0)),
            Sql::Integer => of(row.try_get::<_, Option<i64>>(name)?),
            Sql::Day => of(row.try_get::<_, Option<Day>>(name)?.map(|day| day.0)),
            Sql::Small => of(row.try_get::<_, Option<i32>>(name)?),
            Sql::Flag => of(row.try_get::<_, Option<bool>>(name)?),
            Sql::Text => row.try_get::<_, Option<&str>>(name)?.map_or(Value::Null, Value::Text),
            Sql::Sum(_) => {
                digits = row.try_get::<_, Option<&str>>(name)?.map(str::parse::<i128>).transpose();
                of(digits.map_err(|_| format!("the central store's {name} is not a whole number"))?)
            }
            Sql::Id => {
                id = row.try_get::<_, Option<Id>>(name)?.filter(|id| *id != NO_ID);
                id.as_ref().map_or(Value::Null, |id| Value::Id(&id.0))
            }
        };
        column.set(&mut item, value, reader).map_err(|error| format!("the central store: {error}"))?;
    }
    Ok(item)
}

fn of(number: Option<impl Into<i128>>) -> Value<'static> {
    number.map_or(Value::Null, |number| Value::Number(number.into()))
}
