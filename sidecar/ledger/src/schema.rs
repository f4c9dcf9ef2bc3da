//! The schema and its versions. A file has the version of its tables as SQLite's `user_version`.
//!
//! Law: a file of every released version opens; a file of a newer version is refused and not changed.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use price::Rate;
use rusqlite::Connection;

use crate::audit_event::AuditEvent;
use crate::column::{Absent, Column, Sql, Stored};
use crate::columns::VERSION;
use crate::energy::Energy;
use crate::error::{Error, Fault};
use crate::source::{DeviceTotal, Gap, MadeCorrection};
use crate::{DailyTotal, Row};

/// The `application_id`, by which a ledger differs from another program's SQLite file.
pub(crate) const APPLICATION: i64 = 0x746d_6c67;

/// The tables about the file itself.
const OF_FILE: &str = include_str!("schema/file.sql");

/// The views for SQL.
const VIEWS: &str = include_str!("schema/views.sql");

/// The place in [`VIEWS`] of the columns of `exchange` that came after version 1.
const LATER_COLUMNS: &str = "/* later columns */";

/// The columns of a type's table.
#[derive(Clone)]
struct Columns {
    table: &'static str,
    is_keyed: bool,
    constraints: &'static str,
    /// Each column's version, name and SQL type.
    definitions: Vec<(i64, String, &'static str)>,
    keys: Vec<String>,
}

impl Columns {
    fn of<T: Stored>() -> Self {
        let definitions = T::columns().iter().flat_map(|column| {
            let definition = definition(column);
            names(column).into_iter().map(move |name| (column.version, name, definition))
        });
        Self {
            table: T::TABLE,
            is_keyed: T::KEYS > 0,
            constraints: T::CONSTRAINTS,
            definitions: definitions.collect(),
            keys: T::columns()[..T::KEYS].iter().flat_map(names).collect(),
        }
    }

    /// Returns the name and the SQL type of each column that a version added.
    fn added(&self, version: i64) -> impl Iterator<Item = (&str, &'static str)> {
        self.definitions
            .iter()
            .filter(move |column| column.0 == version)
            .map(|(_, name, sql)| (&**name, *sql))
    }

    /// Returns the SQL that creates the table of version 1.
    fn create(&self) -> String {
        let columns: Vec<_> = self.added(1).map(|(name, sql)| format!("{name} {sql}")).collect();
        let (before, key, after) = match self.is_keyed {
            true => ("", format!(", PRIMARY KEY ({})", self.keys.join(", ")), ", WITHOUT ROWID"),
            false if columns[0].starts_with("id ") => {
                ("seq INTEGER PRIMARY KEY, ", ", UNIQUE (id)".to_owned(), "")
            }
            false => ("seq INTEGER PRIMARY KEY, ", String::new(), ""),
        };
        format!(
            "CREATE TABLE {} ({before}{}, mark INTEGER NOT NULL{key}{}) STRICT{after};\n",
            self.table,
            columns.join(", "),
            self.constraints
        )
    }

    /// Returns the SQL that adds the columns of a version.
    fn alter(&self, version: i64) -> String {
        let add = |(name, sql)| format!("ALTER TABLE {} ADD COLUMN {name} {sql};\n", self.table);
        self.added(version).map(add).collect()
    }

    /// Returns the SQL by which a connection reads the table of one version as that of a later one: a temporary view of
    /// the same name, which SQLite finds before the table.
    fn show_as(&self, from: i64, to: i64) -> String {
        let missing = (from + 1..=to).flat_map(|version| self.added(version));
        let missing: String = missing.map(|(name, _)| format!(", NULL AS {name}")).collect();
        match missing.is_empty() {
            true => String::new(),
            false => format!("CREATE TEMP VIEW {0} AS SELECT *{missing} FROM main.{0};\n", self.table),
        }
    }
}

/// Returns the names of a column in a file: two for a sum.
pub(crate) fn names<T>(column: &Column<T>) -> Vec<String> {
    match column.sql {
        Sql::Sum(name) => ["high", "low"].map(|half| format!("{name}_{half}")).to_vec(),
        _ => vec![column.name.to_owned()],
    }
}

/// Returns the SQL type of a column in a file.
fn definition<T>(column: &Column<T>) -> &'static str {
    match (column.sql, column.absent) {
        (Sql::Text, Absent::Null) => "TEXT",
        (Sql::Text, Absent::Never | Absent::Empty) => "TEXT NOT NULL",
        (Sql::Id, Absent::Null) => "BLOB",
        (Sql::Id, Absent::Never | Absent::Empty) => "BLOB NOT NULL",
        (_, Absent::Null) => "INTEGER",
        (_, Absent::Never | Absent::Empty) => "INTEGER NOT NULL",
    }
}

/// A version of the schema, with all before it.
#[derive(Clone)]
pub(crate) struct Schema {
    version: i64,
    tables: Vec<Columns>,
}

/// The schema of this program, of the version [`VERSION`].
pub(crate) static SCHEMA: LazyLock<Schema> = LazyLock::new(|| Schema {
    version: VERSION,
    tables: vec![
        Columns::of::<Row>(),
        Columns::of::<Rate>(),
        Columns::of::<Energy>(),
        Columns::of::<DailyTotal>(),
        Columns::of::<DeviceTotal>(),
        Columns::of::<MadeCorrection>(),
        Columns::of::<AuditEvent>(),
        Columns::of::<Gap>(),
    ],
});

/// The kind of a file, by its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A ledger of a version that this program knows.
    Ledger(i64),
    /// A ledger of a newer version.
    Newer(i64),
    /// A SQLite file of another program.
    Foreign,
    /// Neither: an empty or damaged file.
    Invalid,
}

impl Schema {
    /// Returns the SQL that creates the tables.
    pub(crate) fn tables(&self) -> String {
        let first = self.tables.iter().map(Columns::create).chain([OF_FILE.to_owned()]);
        first.chain((2..=self.version).map(|version| self.step(version))).collect()
    }

    /// Returns the SQL that migrates a file to a version from the one before.
    fn step(&self, to: i64) -> String {
        self.tables.iter().map(|table| table.alter(to)).collect()
    }

    /// Returns the SQL that creates or replaces the views.
    fn views(&self) -> String {
        let exchange = self.tables.iter().filter(|table| table.table == Row::TABLE);
        let later = exchange.flat_map(|table| (2..=self.version).flat_map(|version| table.added(version)));
        let later: String = later.map(|(name, _)| format!(",\n  exchange.{name} AS {name}")).collect();
        VIEWS.replace(LATER_COLUMNS, &later)
    }

    /// Creates tables and views in an empty file.
    pub(crate) fn create(&self, connection: &Connection) -> Result<(), Error> {
        connection.execute_batch(&self.tables())?;
        connection.execute_batch(&self.views())?;
        connection.pragma_update(None, "application_id", APPLICATION)?;
        connection.pragma_update(None, "user_version", self.version)?;
        Ok(())
    }

    /// Returns the kind of a file, by its header.
    fn kind(&self, connection: &Connection) -> Result<Kind, Error> {
        let pragma = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
        Ok(match (pragma("application_id")?, pragma("user_version")?) {
            (APPLICATION, version) if (1..=self.version).contains(&version) => Kind::Ledger(version),
            (APPLICATION, version) if version > self.version => Kind::Newer(version),
            (APPLICATION, _) => Kind::Invalid,
            // A file truncated to nothing looks like a new SQLite file. But a ledger is never created in place.
            (0, 0) if pragma("schema_version")? == 0 => Kind::Invalid,
            _ => Kind::Foreign,
        })
    }

    /// Returns the version of a ledger.
    ///
    /// # Errors
    /// If the file is not a ledger, or is one of a newer version.
    pub(crate) fn known(&self, connection: &Connection) -> Result<i64, Error> {
        match self.kind(connection)? {
            Kind::Ledger(version) => Ok(version),
            Kind::Newer(version) => Err(Error::new(
                Fault::Other,
                format!(
                    "it is a ledger of version {version}, and this tokenmeter supports versions up to {}: \
                     use a newer tokenmeter, or another path",
                    self.version
                ),
            )),
            Kind::Foreign => Err(Error::new(
                Fault::Other,
                "it is another program's SQLite file: give the ledger a path of its own",
            )),
            Kind::Invalid => Err(Error::corrupt("it does not have the header of a ledger")),
        }
    }

    /// Checks that the objects of a file are as this program creates them: a trigger or a unique index could reject rows that
    /// the writer enters, and a view could hide some. Other indexes, and tables and views of other names, change nothing.
    ///
    /// # Errors
    /// If one is not.
    pub(crate) fn check(&self, connection: &Connection) -> Result<(), Error> {
        let version = self.known(connection)?;
        let fresh = Connection::open_in_memory()?;
        Self { version, tables: self.tables.clone() }.create(&fresh)?;
        let mut found = objects(connection)?;
        let altered = |(kind, name): &(String, String)| {
            Error::corrupt(format!("the {kind} `{name}` is not as tokenmeter creates it"))
        };
        for (object, sql) in objects(&fresh)? {
            // The views of an earlier version are those of its program.
            let is_free = object.0 == "view" && version < self.version;
            if found.remove(&object) != Some(sql) && !is_free {
                return Err(altered(&object));
            }
        }
        let rejects = |kind: &str, sql: &str| {
            kind == "trigger" || kind == "index" && sql.to_ascii_uppercase().contains("UNIQUE")
        };
        match found.iter().find(|((kind, _), sql)| rejects(kind, sql)) {
            Some((object, _)) => Err(altered(object)),
            None => Ok(()),
        }
    }

    /// Makes a connection read a file of an earlier version as one of this version, without a change of the file.
    pub(crate) fn read_as_newest(&self, connection: &Connection) -> Result<(), Error> {
        let version = self.known(connection)?;
        if version < self.version {
            // In memory, because nothing may be writable.
            let views: String =
                self.tables.iter().map(|table| table.show_as(version, self.version)).collect();
            connection.execute_batch(&format!("PRAGMA temp_store = MEMORY;\n{views}"))?;
        }
        Ok(())
    }

    /// Migrates a file to this version, each step in a transaction of its own.
    pub(crate) fn migrate(&self, connection: &Connection) -> Result<(), Error> {
        loop {
            let version = self.known(connection)?;
            if version == self.version {
                return Ok(());
            }
            let (step, views) = (self.step(version + 1), self.views());
            connection.execute_batch("BEGIN IMMEDIATE")?;
            // Another process may have migrated the file meanwhile.
            let taken = match self.known(connection) {
                Ok(now) if now == version => connection
                    .execute_batch(&format!("{step}; {views}; PRAGMA user_version = {}; COMMIT", version + 1))
                    .map_err(Error::from),
                Ok(_) => connection.execute_batch("ROLLBACK").map_err(Error::from),
                Err(error) => Err(error),
            };
            if let Err(error) = taken {
                // The step's own error is the useful one.
                let _ = connection.execute_batch("ROLLBACK");
                return Err(error);
            }
        }
    }
}

/// Returns the SQL of each object of a file, by its type and name.
fn objects(connection: &Connection) -> Result<BTreeMap<(String, String), String>, Error> {
    let mut statement =
        connection.prepare("SELECT type, name, sql FROM main.sqlite_schema WHERE sql IS NOT NULL")?;
    let rows = statement.query_map([], |row| Ok(((row.get(0)?, row.get(1)?), row.get(2)?)))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

#[cfg(test)]
#[path = "schema_tests.rs"]
mod tests;
