//! The tables of a file: their SQL statements, and the checksums of their rows (column `mark`).
//!
//! Law: a row is written with a checksum of all its columns, and a row whose checksum is wrong is never used. A
//! flipped bit may cost a report, and never makes a wrong sum.

use std::sync::LazyLock;

use price::Rate;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, Row as Found, Statement};

use crate::audit_event::AuditEvent;
use crate::column::{Column, Stored};
use crate::energy::Energy;
use crate::error::Error;
use crate::source::{DeviceTotal, Gap, MadeCorrection};
use crate::{DailyTotal, Row, schema};

/// A row's columns, in the order of the table's, without the row checksum.
pub(crate) type Values<'a> = Vec<ValueRef<'a>>;

/// One table.
pub(crate) struct Table {
    pub name: &'static str,
    /// All columns but the row checksum. The first of a numbered table is `seq`; those of later versions come last.
    pub columns: Vec<String>,
    /// The number of columns of version 1. A later column is hashed only if it is not NULL, so that older rows keep
    /// their row checksums.
    pub first: usize,
    /// The number of first columns that are the key; 0 if rows are numbered.
    keys: usize,
    sql: Sql,
}

/// The statements of a table, built once: the commit of a row needs a dozen.
struct Sql {
    select: String,
    select_one: String,
    insert: String,
    insert_new: String,
    replace: String,
}

/// A BLAKE3 hash.
pub type Digest = [u8; 32];

/// Returns the checksum in a row: the first bytes of its digest.
pub(crate) fn row_checksum(digest: &Digest) -> i64 {
    let mut first = [0; 8];
    first.copy_from_slice(&digest[..8]);
    i64::from_le_bytes(first)
}

impl Table {
    /// Returns the table of a type.
    fn of<T: Stored>() -> Self {
        let (first, later): (Vec<_>, Vec<_>) = T::columns().iter().partition(|column| column.version == 1);
        let names =
            |columns: Vec<&Column<T>>| columns.into_iter().flat_map(schema::names).collect::<Vec<_>>();
        let seq = if T::KEYS == 0 { vec!["seq".to_owned()] } else { Vec::new() };
        Self::new(T::TABLE, T::KEYS, [seq, names(first)].concat(), names(later))
    }

    /// Returns a table, by its columns of version 1 and those of later versions.
    pub(crate) fn new(name: &'static str, keys: usize, first: Vec<String>, later: Vec<String>) -> Self {
        let number = first.len();
        let columns = [first, later].concat();
        let all = columns.join(", ");
        let key: Vec<_> = columns[..keys].iter().map(|column| format!("{column} = ?")).collect();
        let places = vec!["?"; columns.len() + 1].join(", ");
        let insert = |verb| format!("{verb} INTO {name} ({all}, mark) VALUES ({places})");
        let select = format!("SELECT {all}, mark FROM {name}");
        let sql = Sql {
            select_one: format!("{select} WHERE {}", key.join(" AND ")),
            select,
            insert: insert("INSERT"),
            insert_new: format!("{} ON CONFLICT (id) DO NOTHING", insert("INSERT")),
            replace: insert("INSERT OR REPLACE"),
        };
        Self { name, columns, first: number, keys, sql }
    }

    /// Returns true if rows are numbered, so that the table digest is a chain; else they have a key, and it is a sum.
    pub(crate) fn is_numbered(&self) -> bool {
        self.keys == 0
    }

    /// Returns the `SELECT` of all columns and the row checksum; a `WHERE` and an `ORDER BY` may follow.
    pub(crate) fn select(&self) -> &str {
        &self.sql.select
    }

    /// Returns the `SELECT` of the row with a key, with all columns and the row checksum.
    pub(crate) fn select_one(&self) -> &str {
        &self.sql.select_one
    }

    /// Returns the `INSERT` of all columns and the row checksum.
    pub(crate) fn insert(&self) -> &str {
        &self.sql.insert
    }

    /// Returns the `INSERT` that does nothing if the table has a row with the same `id`.
    pub(crate) fn insert_new(&self) -> &str {
        &self.sql.insert_new
    }

    /// Returns the `INSERT` that replaces a row with the same key.
    pub(crate) fn replace(&self) -> &str {
        &self.sql.replace
    }

    /// Returns the values of the key.
    pub(crate) fn key<'a, 'v>(&self, values: &'a [ValueRef<'v>]) -> &'a [ValueRef<'v>] {
        &values[..self.keys]
    }

    /// Returns the hash of a row.
    pub(crate) fn digest(&self, values: &[ValueRef<'_>], scratch: &mut Vec<u8>) -> Digest {
        debug_assert_eq!(values.len(), self.columns.len(), "{}", self.name);
        scratch.clear();
        write(scratch, ValueRef::Text(self.name.as_bytes()));
        let (first, later) = values.split_at(self.first.min(values.len()));
        for value in first {
            write(scratch, *value);
        }
        for (name, value) in self.columns[first.len()..].iter().zip(later) {
            if *value != ValueRef::Null {
                write(scratch, ValueRef::Text(name.as_bytes()));
                write(scratch, *value);
            }
        }
        blake3::hash(scratch).into()
    }

    /// Returns the values and the hash of a row that [`Self::select`] found, if its checksum is right.
    pub(crate) fn read<'a>(
        &self,
        row: &'a Found<'_>,
        scratch: &mut Vec<u8>,
    ) -> Result<(Values<'a>, Digest), Error> {
        match self.read_as_it_is(row, scratch)? {
            (values, digest, true) => Ok((values, digest)),
            (values, _, false) => Err(self.changed(&values)),
        }
    }

    /// Returns the values and the hash of a row; true if its checksum is right.
    pub(crate) fn read_as_it_is<'a>(
        &self,
        row: &'a Found<'_>,
        scratch: &mut Vec<u8>,
    ) -> Result<(Values<'a>, Digest, bool), Error> {
        let values = (0..self.columns.len()).map(|at| row.get_ref(at)).collect::<Result<Values<'_>, _>>()?;
        let digest = self.digest(&values, scratch);
        let right = row.get::<_, i64>(self.columns.len())? == row_checksum(&digest);
        Ok((values, digest, right))
    }

    /// Returns the error of a row whose checksum is wrong, with the row's key.
    pub(crate) fn changed(&self, values: &[ValueRef<'_>]) -> Error {
        let named = ["seq", "id", "day", "tenant", "model", "name", "version", "entry"];
        let each = self.columns.iter().zip(values).filter(|(column, _)| named.contains(&column.as_str()));
        let each: Vec<_> = each
            .filter_map(|(column, value)| match value {
                ValueRef::Integer(number) => Some(format!("{column} {number}")),
                ValueRef::Text(text) => Some(format!("{column} {:?}", String::from_utf8_lossy(text))),
                ValueRef::Blob(id) => match <[u8; 16]>::try_from(*id) {
                    Ok(id) if self.name == "exchange" => Some(format!("{column} {}", meter::ExchangeId(id))),
                    _ => None,
                },
                _ => None,
            })
            .collect();
        Error::corrupt(format!(
            "a row of the table {} is not as it was written ({})",
            self.name,
            each.join(", ")
        ))
    }

    /// Reads rows. `rest` is a `WHERE` and an `ORDER BY`, or empty.
    ///
    /// # Errors
    /// If a row's checksum is wrong.
    pub(crate) fn each(
        &self,
        connection: &Connection,
        rest: &str,
        parameters: &[i64],
        mut each: impl FnMut(&[ValueRef<'_>], &Digest) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.each_as_it_is(connection, rest, parameters, |values, digest, right| match right {
            true => each(values, digest),
            false => Err(self.changed(values)),
        })
    }

    /// Reads rows, also those whose checksum is wrong, for which the callback's last argument is false.
    pub(crate) fn each_as_it_is(
        &self,
        connection: &Connection,
        rest: &str,
        parameters: &[i64],
        mut each: impl FnMut(&[ValueRef<'_>], &Digest, bool) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut statement = connection.prepare(&format!("{} {rest}", self.select()))?;
        let mut rows = statement.query(rusqlite::params_from_iter(parameters))?;
        let mut scratch = Vec::new();
        while let Some(row) = rows.next()? {
            let (values, digest, right) = self.read_as_it_is(row, &mut scratch)?;
            each(&values, &digest, right)?;
        }
        Ok(())
    }
}

/// Executes a statement with a row and its checksum. Returns true if a row was written.
pub(crate) fn execute(
    statement: &mut Statement<'_>,
    values: &[ValueRef<'_>],
    digest: &Digest,
) -> Result<bool, Error> {
    bind(statement, values)?;
    statement.raw_bind_parameter(values.len() + 1, row_checksum(digest))?;
    Ok(statement.raw_execute()? > 0)
}

/// Binds values to the first parameters of a statement.
pub(crate) fn bind(statement: &mut Statement<'_>, values: &[ValueRef<'_>]) -> Result<(), Error> {
    for (at, value) in values.iter().enumerate() {
        statement.raw_bind_parameter(at + 1, ToSqlOutput::Borrowed(*value))?;
    }
    Ok(())
}

/// Appends a value in the form that is hashed: its type, its length if that varies, its bytes.
pub(crate) fn write(bytes: &mut Vec<u8>, value: ValueRef<'_>) {
    match value {
        ValueRef::Null => bytes.push(0),
        ValueRef::Integer(number) => {
            bytes.push(1);
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        // No column has this type. One written by another program must not have the hash of another value.
        ValueRef::Real(number) => {
            bytes.push(2);
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        ValueRef::Text(text) | ValueRef::Blob(text) => {
            bytes.push(if matches!(value, ValueRef::Text(_)) { 3 } else { 4 });
            bytes.extend_from_slice(&(text.len() as u64).to_le_bytes());
            bytes.extend_from_slice(text);
        }
    }
}

/// The tables of the ledger's types; their columns are in [`crate::columns`].
pub(crate) static EXCHANGE: LazyLock<Table> = LazyLock::new(Table::of::<Row>);
pub(crate) static RATE: LazyLock<Table> = LazyLock::new(Table::of::<Rate>);
pub(crate) static ENERGY: LazyLock<Table> = LazyLock::new(Table::of::<Energy>);
pub(crate) static LINE: LazyLock<Table> = LazyLock::new(Table::of::<DailyTotal>);
pub(crate) static DEVICE: LazyLock<Table> = LazyLock::new(Table::of::<DeviceTotal>);
pub(crate) static CORRECTION: LazyLock<Table> = LazyLock::new(Table::of::<MadeCorrection>);
pub(crate) static ACT: LazyLock<Table> = LazyLock::new(Table::of::<AuditEvent>);
pub(crate) static GAP: LazyLock<Table> = LazyLock::new(Table::of::<Gap>);

/// The digest of each other table.
pub(crate) static SEAL: LazyLock<Table> = LazyLock::new(|| of_file("seal", &["name", "entered", "digest"]));

/// Facts about the file.
pub(crate) static FACT: LazyLock<Table> = LazyLock::new(|| of_file("fact", &["name", "value"]));

/// A table about the file itself, whose key is the first column.
fn of_file(name: &'static str, columns: &[&str]) -> Table {
    Table::new(name, 1, columns.iter().map(|&column| column.to_owned()).collect(), Vec::new())
}

/// Every table that has a digest.
pub(crate) fn digested_tables() -> [&'static Table; 8] {
    [&EXCHANGE, &ENERGY, &CORRECTION, &RATE, &LINE, &DEVICE, &ACT, &GAP]
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;
    use rusqlite::types::ValueRef;

    use super::{FACT, SEAL, Table, digested_tables, of_file, row_checksum};
    use crate::Row;
    use crate::schema::SCHEMA;

    /// The row checksum comes after the columns of version 1.
    #[test]
    fn columns_and_their_order_match_the_schema() {
        let connection = Connection::open_in_memory().unwrap();
        SCHEMA.create(&connection).unwrap();
        for table in digested_tables().into_iter().chain([&*SEAL, &*FACT]) {
            let mut statement = connection.prepare(&format!("PRAGMA table_info({})", table.name)).unwrap();
            let names: Vec<String> =
                statement.query_map([], |row| row.get(1)).unwrap().map(Result::unwrap).collect();
            let mut expected = table.columns.clone();
            expected.insert(table.first, "mark".to_owned());
            assert_eq!(names, expected, "{}", table.name);
        }
    }

    #[test]
    fn row_checksum_covers_columns_and_table() {
        let values = [ValueRef::Integer(1), ValueRef::Text(b"ab"), ValueRef::Null];
        let digest = |values: &[ValueRef<'_>]| FACT_LIKE.digest(values, &mut Vec::new());
        let right = digest(&values);
        for other in [
            [ValueRef::Integer(2), ValueRef::Text(b"ab"), ValueRef::Null],
            [ValueRef::Integer(1), ValueRef::Blob(b"ab"), ValueRef::Null],
            [ValueRef::Integer(1), ValueRef::Text(b"ab"), ValueRef::Text(b"")],
            [ValueRef::Integer(1), ValueRef::Null, ValueRef::Text(b"ab")],
        ] {
            assert_ne!(row_checksum(&digest(&other)), row_checksum(&right));
        }
        assert_ne!(SEAL.digest(&values, &mut Vec::new()), right, "another table");
    }

    #[test]
    fn every_token_type_has_a_column() {
        let table = Table::of::<Row>();
        assert!(
            meter::TokenType::ALL.iter().all(|kind| table.columns.iter().any(|name| name == kind.name()))
        );
    }

    #[test]
    fn null_in_later_column_keeps_checksum() {
        let names = |names: [&str; 2]| names.map(str::to_owned).to_vec();
        let table = Table::new("like", 1, names(["a", "b"]), Vec::new());
        let later = Table::new("like", 1, names(["a", "b"]), names(["c", "d"]));
        let (one, null) = (ValueRef::Integer(1), ValueRef::Null);
        let digest = |values: &[ValueRef<'_>]| later.digest(values, &mut Vec::new());
        assert_eq!(digest(&[one, one, null, null]), table.digest(&[one, one], &mut Vec::new()));
        assert_ne!(digest(&[one, one, one, null]), digest(&[one, one, null, null]));
        assert_ne!(digest(&[one, one, one, null]), digest(&[one, one, null, one]));
    }

    static FACT_LIKE: std::sync::LazyLock<Table> =
        std::sync::LazyLock::new(|| of_file("like", &["a", "b", "c"]));
}
