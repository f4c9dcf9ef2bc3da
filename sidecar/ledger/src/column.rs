//! One column of a table: its name, its SQL type, and the field of a Rust value that it holds.
//!
//! Law: a value that is written and read again is equal. A number that a column cannot hold is an error, and never
//! becomes another number.

use std::collections::HashSet;
use std::sync::Arc;

use meter::{Disagreement, ExchangeId, Provenance, Role};
use price::{Currency, Rate};

use crate::device_total::Share;
use crate::error::Error;
use crate::total_key::Class;

/// The value of a column, the same for a ledger file and a central store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// No value.
    Null,
    /// A whole number; instants are microseconds and days are days since 1970, flags are 0 or 1.
    Number(i128),
    /// Text.
    Text(&'a str),
    /// An id.
    Id(&'a [u8; 16]),
}

/// The SQL type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sql {
    /// Microseconds since 1970. The column is named `…_us` in a file and `…_at` in a central store.
    Time,
    /// Days since 1970.
    Day,
    /// A whole number of 64 bits.
    Integer,
    /// A whole number that 32 bits hold.
    Small,
    /// 0 or 1.
    Flag,
    /// Text.
    Text,
    /// An id of sixteen bytes.
    Id,
    /// A whole number of any size. A file has two columns of this name for it: `…_high` and `…_low`.
    Sum(&'static str),
}

/// The representation of a value that is absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absent {
    /// The column is NOT NULL, and there always is a value.
    Never,
    /// NULL.
    Null,
    /// The empty text or id, because the column is part of a primary key.
    Empty,
}

/// A column of the table of `T`.
#[derive(Clone, Copy)]
pub struct Column<T: 'static> {
    /// The name.
    pub name: &'static str,
    /// The type.
    pub sql: Sql,
    /// The representation of an absent value.
    pub absent: Absent,
    /// The version of the ledger's schema that added it.
    pub version: i64,
    /// True if no two rows have the same text, so that a reader does not cache it.
    is_unique: bool,
    get: for<'a> fn(&'a T) -> Value<'a>,
    set: Set<T>,
}

type Set<T> = for<'v, 'r, 's> fn(&mut T, Value<'v>, &'s mut RowReader<'r>) -> Result<(), Error>;

impl<T> Column<T> {
    /// Returns the column of the field at a path, whose last part is its name.
    pub(crate) fn new<F: Field>(
        path: &'static str,
        sql: Sql,
        _: fn(&T) -> &F,
        get: for<'a> fn(&'a T) -> Value<'a>,
        set: Set<T>,
    ) -> Self {
        let absent = if F::MAY_BE_ABSENT { Absent::Null } else { Absent::Never };
        Self::made(path.rsplit('.').next().unwrap_or(path).trim_start(), sql, absent, get, set)
    }

    /// Returns a column whose value is not a field.
    pub(crate) fn made(
        name: &'static str,
        sql: Sql,
        absent: Absent,
        get: for<'a> fn(&'a T) -> Value<'a>,
        set: Set<T>,
    ) -> Self {
        Self { name, sql, absent, version: 1, is_unique: false, get, set }
    }

    /// Returns the column as one that a later version of the schema adds. It may be NULL: older rows have no value.
    pub fn since(self, version: i64) -> Self {
        debug_assert!(self.absent == Absent::Null, "{} needs a value", self.name);
        Self { version, ..self }
    }

    /// Returns the column as part of a primary key.
    pub(crate) fn key(self) -> Self {
        Self { absent: if self.absent == Absent::Null { Absent::Empty } else { self.absent }, ..self }
    }

    /// Returns the column as one without two equal texts.
    pub(crate) fn unique(self) -> Self {
        Self { is_unique: true, ..self }
    }

    /// Returns the value of the column in a row.
    pub fn value<'a>(&self, row: &'a T) -> Value<'a> {
        (self.get)(row)
    }

    /// Sets the column in a row to a value that was read.
    ///
    /// # Errors
    /// If the column cannot have the value.
    pub fn set(&self, row: &mut T, value: Value<'_>, reader: &mut RowReader<'_>) -> Result<(), Error> {
        reader.is_unique = self.is_unique;
        let value = match (value, self.absent) {
            (Value::Text(""), Absent::Empty) => Value::Null,
            (value, _) => value,
        };
        (self.set)(row, value, reader).map_err(|error| error.of(format!("the column {}", self.name)))
    }
}

/// A type whose values are the rows of a table.
pub trait Stored: Sized + 'static {
    /// The table's name.
    const TABLE: &'static str;

    /// The number of first columns that are the primary key; 0 if rows are numbered by a column `seq` before all
    /// others.
    const KEYS: usize = 0;

    /// Constraints of the table beyond its columns', each after a comma.
    const CONSTRAINTS: &'static str = "";

    /// The columns, in the order in which they are hashed.
    fn columns() -> &'static [Column<Self>];

    /// Returns a row without values, to be read into.
    fn blank() -> Self;
}

/// The state that reading rows needs beyond their columns: rates by id, and names read before.
pub struct RowReader<'r> {
    names: Names,
    rates: Box<Rates<'r>>,
    is_unique: bool,
}

/// Finds a rate by its id.
type Rates<'r> = dyn FnMut(&[u8; 16]) -> Result<Option<Arc<Rate>>, Error> + 'r;

impl RowReader<'_> {
    /// Returns a reader of rows that name no rate.
    pub fn new() -> Self {
        Self::with_rates(|_| Ok(None))
    }
}

impl Default for RowReader<'_> {
    fn default() -> Self {
        Self::new()
    }
}

impl<'r> RowReader<'r> {
    /// Returns a reader that finds the rate of a row by its id.
    pub fn with_rates(rates: impl FnMut(&[u8; 16]) -> Result<Option<Arc<Rate>>, Error> + 'r) -> Self {
        Self { names: Names::default(), rates: Box::new(rates), is_unique: false }
    }

    /// Returns the rate of an id.
    pub(crate) fn rate(&mut self, id: &[u8; 16]) -> Result<Arc<Rate>, Error> {
        (self.rates)(id)?.ok_or_else(|| Error::corrupt("an unknown rate"))
    }

    fn text(&mut self, text: &str) -> Arc<str> {
        if self.is_unique { text.into() } else { self.names.of(text) }
    }
}

impl std::fmt::Debug for RowReader<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RowReader")
    }
}

/// The cache of names, so that a million rows of ten tenants hold ten names.
#[derive(Default)]
struct Names(HashSet<Arc<str>>);

/// The most cached names; there may be as many end users as exchanges.
const NAMES_MAX: usize = 16_384;

impl Names {
    fn of(&mut self, name: &str) -> Arc<str> {
        if let Some(known) = self.0.get(name) {
            return Arc::clone(known);
        }
        if self.0.len() >= NAMES_MAX {
            self.0.clear();
        }
        let new: Arc<str> = name.into();
        self.0.insert(Arc::clone(&new));
        new
    }
}

/// The type of a field that a column can hold.
pub(crate) trait Field: Sized {
    /// True if the field may have no value.
    const MAY_BE_ABSENT: bool = false;

    /// Returns the field as a value.
    fn value(&self) -> Value<'_>;

    /// Reads the field from a value.
    fn read(value: Value<'_>, reader: &mut RowReader<'_>) -> Result<Self, Error>;
}

/// Returns the error of a value that its column cannot have.
pub(crate) fn invalid() -> Error {
    Error::corrupt("an invalid value")
}

macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl Field for $number {
            fn value(&self) -> Value<'_> {
                Value::Number((*self).into())
            }

            fn read(value: Value<'_>, _: &mut RowReader<'_>) -> Result<Self, Error> {
                match value {
                    Value::Number(number) => Self::try_from(number).map_err(|_| invalid()),
                    _ => Err(invalid()),
                }
            }
        }
    )*};
}

numbers!(i32, i64, i128, u8, u16, u64);

macro_rules! words {
    ($($word:ty),*) => {$(
        impl Field for $word {
            fn value(&self) -> Value<'_> {
                Value::Text(self.name())
            }

            fn read(value: Value<'_>, _: &mut RowReader<'_>) -> Result<Self, Error> {
                let Value::Text(word) = value else { return Err(invalid()) };
                Self::ALL.into_iter().find(|one| one.name() == word).ok_or_else(invalid)
            }
        }
    )*};
}

words!(Class, Disagreement, Provenance, Share);

impl Field for bool {
    fn value(&self) -> Value<'_> {
        Value::Number((*self).into())
    }

    fn read(value: Value<'_>, _: &mut RowReader<'_>) -> Result<Self, Error> {
        match value {
            Value::Number(number) => Ok(number != 0),
            _ => Err(invalid()),
        }
    }
}

impl Field for Arc<str> {
    fn value(&self) -> Value<'_> {
        Value::Text(self)
    }

    fn read(value: Value<'_>, reader: &mut RowReader<'_>) -> Result<Self, Error> {
        match value {
            Value::Text(text) => Ok(reader.text(text)),
            _ => Err(invalid()),
        }
    }
}

impl Field for [u8; 16] {
    fn value(&self) -> Value<'_> {
        Value::Id(self)
    }

    fn read(value: Value<'_>, _: &mut RowReader<'_>) -> Result<Self, Error> {
        match value {
            Value::Id(id) => Ok(*id),
            _ => Err(invalid()),
        }
    }
}

impl Field for ExchangeId {
    fn value(&self) -> Value<'_> {
        self.0.value()
    }

    fn read(value: Value<'_>, reader: &mut RowReader<'_>) -> Result<Self, Error> {
        Field::read(value, reader).map(Self)
    }
}

impl Field for Currency {
    fn value(&self) -> Value<'_> {
        Value::Text(self.code())
    }

    fn read(value: Value<'_>, _: &mut RowReader<'_>) -> Result<Self, Error> {
        match value {
            Value::Text(code) => code.as_bytes().try_into().map(Self).map_err(|_| invalid()),
            _ => Err(invalid()),
        }
    }
}

/// The role of a whole request, which most exchanges have, is NULL.
impl Field for Role {
    const MAY_BE_ABSENT: bool = true;

    fn value(&self) -> Value<'_> {
        if self.is_leg() { Value::Text(self.name()) } else { Value::Null }
    }

    fn read(value: Value<'_>, _: &mut RowReader<'_>) -> Result<Self, Error> {
        match value {
            Value::Null => Ok(Self::Whole),
            Value::Text(word) => Self::ALL.into_iter().find(|one| one.name() == word).ok_or_else(invalid),
            _ => Err(invalid()),
        }
    }
}

impl<F: Field> Field for Option<F> {
    const MAY_BE_ABSENT: bool = true;

    fn value(&self) -> Value<'_> {
        self.as_ref().map_or(Value::Null, Field::value)
    }

    fn read(value: Value<'_>, reader: &mut RowReader<'_>) -> Result<Self, Error> {
        match value {
            Value::Null => Ok(None),
            value => F::read(value, reader).map(Some),
        }
    }
}
