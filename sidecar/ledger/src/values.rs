//! Conversion of the ledger's types to rows of a file's tables, and back.

use rusqlite::types::ValueRef;

use crate::column::{Absent, Column, RowReader, Sql, Stored, Value};
use crate::error::Error;
use crate::table::Values;

/// The divisor of a sum into its two columns: high, and low from 0 to this, exclusive.
const LOW_END: i128 = 1_000_000;

/// Returns a row of a table whose rows have a key.
pub(crate) fn of<T: Stored>(item: &T) -> Result<Values<'_>, Error> {
    let mut values = Vec::with_capacity(T::columns().len() + 1);
    write(item, &mut values)?;
    Ok(values)
}

/// Returns a row of a table whose rows are numbered.
pub(crate) fn numbered<T: Stored>(seq: i64, item: &T) -> Result<Values<'_>, Error> {
    let mut values = Vec::with_capacity(T::columns().len() + 1);
    values.push(ValueRef::Integer(seq));
    write(item, &mut values)?;
    Ok(values)
}

fn write<'a, T: Stored>(item: &'a T, to: &mut Values<'a>) -> Result<(), Error> {
    for column in T::columns() {
        let value = column.value(item);
        match (value, column.sql) {
            (Value::Number(sum), Sql::Sum(_)) => {
                to.extend([integer(sum.div_euclid(LOW_END))?, integer(sum.rem_euclid(LOW_END))?]);
            }
            (Value::Number(number), _) => to.push(integer(number)?),
            (Value::Text(text), _) => to.push(ValueRef::Text(text.as_bytes())),
            (Value::Id(id), _) => to.push(ValueRef::Blob(id)),
            (Value::Null, Sql::Sum(_)) => to.extend([absent(column)?; 2]),
            (Value::Null, _) => to.push(absent(column)?),
        }
    }
    Ok(())
}

fn integer(number: i128) -> Result<ValueRef<'static>, Error> {
    let number = i64::try_from(number);
    number.map(ValueRef::Integer).map_err(|_| Error::row("a number is larger than the ledger's columns"))
}

fn absent<T>(column: &Column<T>) -> Result<ValueRef<'static>, Error> {
    match (column.absent, column.sql) {
        (Absent::Never, _) => Err(Error::row(format!("the column {} has no value", column.name))),
        (Absent::Empty, Sql::Id) => Ok(ValueRef::Blob(&[])),
        (Absent::Empty, _) => Ok(ValueRef::Text(&[])),
        (Absent::Null, _) => Ok(ValueRef::Null),
    }
}

/// Returns the item of a row, read by all columns of its table.
pub(crate) fn read<T: Stored>(values: &[ValueRef<'_>], reader: &mut RowReader<'_>) -> Result<T, Error> {
    let mut item = T::blank();
    let mut values = values[usize::from(T::KEYS == 0)..].iter();
    let mut next = || values.next().copied().unwrap_or(ValueRef::Null);
    for column in T::columns() {
        let value = match (next(), column.sql) {
            (ValueRef::Integer(high), Sql::Sum(_)) => match next() {
                ValueRef::Integer(low) => Value::Number(i128::from(high) * LOW_END + i128::from(low)),
                _ => return Err(unfit(column)),
            },
            (ValueRef::Null, Sql::Sum(_)) => match next() {
                ValueRef::Null => Value::Null,
                _ => return Err(unfit(column)),
            },
            (ValueRef::Null | ValueRef::Blob(&[]), _) => Value::Null,
            (ValueRef::Integer(number), _) => Value::Number(number.into()),
            (ValueRef::Text(text), _) => Value::Text(str::from_utf8(text).map_err(|_| unfit(column))?),
            (ValueRef::Blob(id), _) => Value::Id(id.try_into().map_err(|_| unfit(column))?),
            (ValueRef::Real(_), _) => return Err(unfit(column)),
        };
        column.set(&mut item, value, reader)?;
    }
    Ok(item)
}

fn unfit<T>(column: &Column<T>) -> Error {
    Error::corrupt(format!("the column {}: an invalid value", column.name))
}
