//! The schema and its versions. A file has the version of its tables as SQLite's `user_version`.
//!
//! Law: a file of every released version opens; a file of a newer version is refused and not changed.

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

/// The place in [`VIEWS`] of the columns of `exchange` that came after version 3.
const LATER_COLUMNS: &str = "/* later columns */";

/// The columns of a type's table.
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

    /// Returns the SQL by which a connection reads the table of an earlier version as one of [`VERSION`]: a temporary
    /// view of the same name, which SQLite finds before the table.
    fn show_as_newest(&self, version: i64) -> String {
        let missing: String = { version + 1..=VERSION }
            .flat_map(|version| self.added(version))
            .map(|(name, _)| format!(", NULL AS {name}"))
            .collect();
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
        (Sql::Text, Absent::Null | Absent::Usual(_)) => "TEXT",
        (Sql::Text, Absent::Never | Absent::Empty) => "TEXT NOT NULL",
        (Sql::Id, Absent::Null | Absent::Usual(_)) => "BLOB",
        (Sql::Id, Absent::Never | Absent::Empty) => "BLOB NOT NULL",
        (_, Absent::Null | Absent::Usual(_)) => "INTEGER",
        (_, Absent::Never | Absent::Empty) => "INTEGER NOT NULL",
    }
}

/// Returns the table of each stored type.
fn tables() -> [Columns; 8] {
    [
        Columns::of::<Row>(),
        Columns::of::<Rate>(),
        Columns::of::<Energy>(),
        Columns::of::<DailyTotal>(),
        Columns::of::<DeviceTotal>(),
        Columns::of::<MadeCorrection>(),
        Columns::of::<AuditEvent>(),
        Columns::of::<Gap>(),
    ]
}

/// Returns the SQL that creates the tables of [`VERSION`].
pub(crate) fn newest_version() -> String {
    [first_version()].into_iter().chain((2..=VERSION).map(step)).collect()
}

/// Returns the SQL that creates the tables of version 1.
fn first_version() -> String {
    tables().iter().map(Columns::create).chain([OF_FILE.to_owned()]).collect()
}

/// Returns the SQL that migrates a file to a version from the one before.
fn step(to: i64) -> String {
    tables().iter().map(|table| table.alter(to)).collect()
}

/// Returns the SQL that creates or replaces the views.
fn views() -> String {
    let later = Row::columns().iter().filter(|column| column.version > 3);
    let later: String = later.map(|column| format!(",\n  exchange.{0} AS {0}", column.name)).collect();
    VIEWS.replace(LATER_COLUMNS, &later)
}

/// The kind of a file, by its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A ledger of a version that this program knows.
    Ledger(i64),
    /// A ledger of a newer version.
    Newer(i64),
    /// A SQLite file of another program.
    Foreign,
    /// Neither: an empty or damaged file.
    Invalid,
}

/// Creates tables and views in an empty file.
pub(crate) fn create(connection: &Connection) -> Result<(), Error> {
    connection.execute_batch(&newest_version())?;
    connection.execute_batch(&views())?;
    connection.pragma_update(None, "application_id", APPLICATION)?;
    connection.pragma_update(None, "user_version", VERSION)?;
    Ok(())
}

/// Returns the kind of a file, by its header.
pub(crate) fn kind(connection: &Connection) -> Result<Kind, Error> {
    let pragma = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    Ok(match (pragma("application_id")?, pragma("user_version")?) {
        (APPLICATION, version) if (1..=VERSION).contains(&version) => Kind::Ledger(version),
        (APPLICATION, version) if version > VERSION => Kind::Newer(version),
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
pub(crate) fn known(connection: &Connection) -> Result<i64, Error> {
    match kind(connection)? {
        Kind::Ledger(version) => Ok(version),
        Kind::Newer(version) => Err(Error::new(
            Fault::Other,
            format!(
                "it is a ledger of version {version}, and this tokenmeter supports versions up to {VERSION}: \
                 use a newer tokenmeter, or another path"
            ),
        )),
        Kind::Foreign => Err(Error::new(
            Fault::Other,
            "it is another program's SQLite file: give the ledger a path of its own",
        )),
        Kind::Invalid => Err(Error::corrupt("it does not have the header of a ledger")),
    }
}

/// Makes a connection read a file of an earlier version as one of [`VERSION`], without a change of the file.
pub(crate) fn read_as_newest(connection: &Connection) -> Result<(), Error> {
    let version = known(connection)?;
    if version < VERSION {
        // In memory, because nothing may be writable.
        let views: String = tables().iter().map(|table| table.show_as_newest(version)).collect();
        connection.execute_batch(&format!("PRAGMA temp_store = MEMORY;\n{views}"))?;
    }
    Ok(())
}

/// Changes a file to an earlier version. Nothing is lost if the later columns are empty.
#[cfg(test)]
pub(crate) fn downgrade(connection: &Connection, to: i64) {
    let mut sql = String::new();
    let views = "SELECT name FROM sqlite_master WHERE type = 'view'";
    let mut statement = connection.prepare(views).expect("it is SQL");
    for name in statement.query_map([], |row| row.get::<_, String>(0)).expect("it has views") {
        sql.push_str(&format!("DROP VIEW {};\n", name.expect("a view has a name")));
    }
    for table in tables() {
        for (name, _) in (to + 1..=VERSION).flat_map(|version| table.added(version)) {
            sql.push_str(&format!("ALTER TABLE {} DROP COLUMN {name};\n", table.table));
        }
    }
    connection.execute_batch(&format!("{sql}PRAGMA user_version = {to}")).expect("the columns are there");
}

/// Migrates a file to [`VERSION`], each step in a transaction of its own.
pub(crate) fn migrate(connection: &Connection) -> Result<(), Error> {
    migrate_by(connection, step)
}

fn migrate_by(connection: &Connection, step: impl Fn(i64) -> String) -> Result<(), Error> {
    loop {
        let version = known(connection)?;
        if version == VERSION {
            return Ok(());
        }
        let (step, views) = (step(version + 1), views());
        connection.execute_batch("BEGIN IMMEDIATE")?;
        // Another process may have migrated the file meanwhile.
        let taken = match known(connection) {
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

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::{Kind, VERSION, create, kind, known, migrate, migrate_by, tables};

    fn new() -> Connection {
        let connection = Connection::open_in_memory().unwrap();
        create(&connection).unwrap();
        connection
    }

    #[test]
    fn every_version_adds_columns() {
        let versions: std::collections::BTreeSet<_> =
            tables().iter().flat_map(|table| table.definitions.iter().map(|column| column.0)).collect();
        assert!(versions.into_iter().eq(1..=VERSION));
    }

    #[test]
    fn kind_of_a_file_is_known_by_its_header() {
        let ledger = new();
        assert_eq!(kind(&ledger).unwrap(), Kind::Ledger(VERSION));
        ledger.pragma_update(None, "user_version", VERSION + 1).unwrap();
        assert_eq!(kind(&ledger).unwrap(), Kind::Newer(VERSION + 1));
        assert!(known(&ledger).unwrap_err().message.contains("newer tokenmeter"));
        ledger.pragma_update(None, "user_version", 0).unwrap();
        assert_eq!(kind(&ledger).unwrap(), Kind::Invalid);
        let other = Connection::open_in_memory().unwrap();
        assert_eq!(kind(&other).unwrap(), Kind::Invalid, "empty");
        other.execute_batch("CREATE TABLE t (x)").unwrap();
        assert_eq!(kind(&other).unwrap(), Kind::Foreign);
    }

    /// A file of version 1, as it was made before there was another.
    fn first() -> Connection {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(&super::first_version()).unwrap();
        connection.execute_batch("CREATE VIEW exchanges AS SELECT id FROM exchange").unwrap();
        connection.pragma_update(None, "application_id", super::APPLICATION).unwrap();
        connection.pragma_update(None, "user_version", 1).unwrap();
        connection
    }

    fn old_columns(connection: &Connection) -> Vec<String> {
        let mut statement = connection.prepare("PRAGMA main.table_info(exchange)").unwrap();
        statement.query_map([], |row| row.get(1)).unwrap().map(Result::unwrap).collect()
    }

    fn columns(connection: &Connection, table: &str) -> Vec<String> {
        let mut statement = connection.prepare(&format!("PRAGMA table_info({table})")).unwrap();
        statement.query_map([], |row| row.get(1)).unwrap().map(Result::unwrap).collect()
    }

    #[test]
    fn migrated_file_equals_new_one() {
        let old = first();
        migrate(&old).unwrap();
        assert_eq!(kind(&old).unwrap(), Kind::Ledger(VERSION));
        let new = new();
        for name in ["exchange", "rate", "energy", "line", "exchanges", "spend_daily", "prices", "requests"] {
            assert_eq!(columns(&old, name), columns(&new, name), "{name}");
        }
    }

    #[test]
    fn old_file_reads_as_newest_unchanged() {
        let old = first();
        super::read_as_newest(&old).unwrap();
        for table in crate::table::digested_tables() {
            let count = format!("SELECT count(*) FROM ({})", table.select());
            assert_eq!(old.query_row(&count, [], |row| row.get::<_, i64>(0)).unwrap(), 0, "{}", table.name);
        }
        assert_eq!(kind(&old).unwrap(), Kind::Ledger(1));
        assert!(!old_columns(&old).contains(&"role".to_owned()));
    }

    #[test]
    fn failed_step_leaves_the_file_as_it_was() {
        let connection = first();
        assert!(migrate_by(&connection, |_| "CREATE TABLE a (x); CREATE TABLE a (x)".to_owned()).is_err());
        assert!(connection.is_autocommit());
        assert_eq!(kind(&connection).unwrap(), Kind::Ledger(1));
        migrate_by(&connection, |version| format!("CREATE TABLE a{version} (x)")).unwrap();
        assert_eq!(kind(&connection).unwrap(), Kind::Ledger(VERSION));
    }

    #[test]
    fn negative_money_is_written_right() {
        let connection = Connection::open_in_memory().unwrap();
        create(&connection).unwrap();
        connection
            .execute_batch(
                "INSERT INTO rate VALUES (x'00000000000000000000000000000001', 'v', 'b', 'e', 'standard', 0, 'USD', 1, 1,
                 1, 1, 1, 1, 1, 0, 0, NULL, NULL, NULL, NULL, NULL)",
            )
            .unwrap();
        for (pico, day) in [
            (-1_i128, 1),
            (-1_000_000, 2),
            (-1_000_001, 3),
            (-999_999, 4),
            (-12_345_678_901_234_567, 5),
            (7, 6),
        ] {
            let (high, low) = (pico.div_euclid(1_000_000), pico.rem_euclid(1_000_000));
            connection
                .execute_batch(&format!(
                    "INSERT INTO line VALUES ({day}, 't', '', 'u', 'p', 'm', 'e', 'none', 'none',
                     x'00000000000000000000000000000001', 'correction', 0, 0,0,0,0,0,0,0, {high}, {low}, 0,0,0,0,0,0,0,0,0,0,
                     NULL, NULL, NULL, NULL, NULL)"
                ))
                .unwrap();
            let sql = "SELECT cost FROM spend_daily WHERE day = date(?1 * 86400, 'unixepoch')";
            let cost: String = connection.query_row(sql, [day], |row| row.get(0)).unwrap();
            assert_eq!(cost, text::Decimal { least: 12, ..text::money(pico) }.to_string());
        }
    }
}
