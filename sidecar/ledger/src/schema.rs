//! The schema and its versions: `user_version` of a file says which one its tables have.
//!
//! Law: a file of every version that was ever released opens, and one of a version that does not exist
//! yet is refused and not touched.

use rusqlite::Connection;

use crate::error::{Error, Fault};

/// The version that this program writes.
pub(crate) const VERSION: i64 = 2;

/// `application_id`: what tells a ledger from another program's SQLite file.
pub(crate) const APPLICATION: i64 = 0x746d_6c67;

/// The tables of version 1.
pub(crate) const TABLES: &str = include_str!("schema/1.sql");

/// The views for SQL.
const VIEWS: &str = include_str!("schema/views.sql");

/// The steps from one version to the next, from version 1 on.
const STEPS: &[&str] = &[include_str!("schema/2.sql")];

/// Shows a connection that only reads the tables of a file of version 1 as those of [`VERSION`].
const OLD_AS_NEW: &str = include_str!("schema/1_as_2.sql");

/// The kind of a file, by its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A ledger of this version, which this program knows.
    Ledger(i64),
    /// A ledger of a version that this program does not know.
    Newer(i64),
    /// A SQLite file of another program.
    Foreign,
    /// Nothing that makes sense.
    Nothing,
}

/// Makes the tables in an empty file.
pub(crate) fn create(connection: &Connection) -> Result<(), Error> {
    connection.execute_batch(TABLES)?;
    STEPS.iter().try_for_each(|step| connection.execute_batch(step))?;
    connection.execute_batch(VIEWS)?;
    connection.pragma_update(None, "application_id", APPLICATION)?;
    connection.pragma_update(None, "user_version", VERSION)?;
    Ok(())
}

/// The kind of a file, by its header.
pub(crate) fn kind(connection: &Connection) -> Result<Kind, Error> {
    let pragma = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    Ok(match (pragma("application_id")?, pragma("user_version")?) {
        (APPLICATION, version) if (1..=VERSION).contains(&version) => Kind::Ledger(version),
        (APPLICATION, version) if version > VERSION => Kind::Newer(version),
        (APPLICATION, _) => Kind::Nothing,
        // A file that was cut to nothing looks like a new one. A ledger is never made in place, so it is not.
        (0, 0) if pragma("schema_version")? == 0 => Kind::Nothing,
        _ => Kind::Foreign,
    })
}

/// Refuses what is no ledger of a version that can be read.
pub(crate) fn known(connection: &Connection) -> Result<i64, Error> {
    match kind(connection)? {
        Kind::Ledger(version) => Ok(version),
        Kind::Newer(version) => Err(Error::new(
            Fault::Other,
            format!(
                "it is a ledger of version {version}, and this tokenmeter knows up to {VERSION}: use a newer \
                 tokenmeter, or another path"
            ),
        )),
        Kind::Foreign => Err(Error::new(
            Fault::Other,
            "it is another program's SQLite file: give the ledger a path of its own",
        )),
        Kind::Nothing => Err(Error::corrupt("it does not hold what a ledger begins with")),
    }
}

/// Makes a file that is only read, and stays as it is, look like one of [`VERSION`].
pub(crate) fn read_as_newest(connection: &Connection) -> Result<(), Error> {
    if known(connection)? < VERSION {
        connection.execute_batch(OLD_AS_NEW)?;
    }
    Ok(())
}

/// Brings a file up to [`VERSION`], each step in a transaction of its own.
pub(crate) fn migrate(connection: &Connection) -> Result<(), Error> {
    migrate_by(connection, STEPS)
}

fn migrate_by(connection: &Connection, steps: &[&str]) -> Result<(), Error> {
    loop {
        let version = known(connection)?;
        let Some(step) = usize::try_from(version - 1).ok().and_then(|at| steps.get(at)) else {
            return Ok(());
        };
        connection.execute_batch("BEGIN IMMEDIATE")?;
        // Another process may have taken the step meanwhile.
        let taken = match known(connection) {
            Ok(now) if now == version => connection
                .execute_batch(&format!("{step}; {VIEWS}; PRAGMA user_version = {}; COMMIT", version + 1))
                .map_err(Error::from),
            Ok(_) => connection.execute_batch("ROLLBACK").map_err(Error::from),
            Err(error) => Err(error),
        };
        if let Err(error) = taken {
            // The step's own error says more than this one's.
            let _ = connection.execute_batch("ROLLBACK");
            return Err(error);
        }
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::{Kind, STEPS, VERSION, create, kind, known, migrate_by};

    fn new() -> Connection {
        let connection = Connection::open_in_memory().unwrap();
        create(&connection).unwrap();
        connection
    }

    #[test]
    fn every_version_has_a_migration() {
        assert_eq!(i64::try_from(STEPS.len()).unwrap(), VERSION - 1);
    }

    #[test]
    fn files_are_told_apart() {
        let ours = new();
        assert_eq!(kind(&ours).unwrap(), Kind::Ledger(VERSION));
        ours.pragma_update(None, "user_version", VERSION + 1).unwrap();
        assert_eq!(kind(&ours).unwrap(), Kind::Newer(VERSION + 1));
        assert!(known(&ours).unwrap_err().message.contains("newer tokenmeter"));
        ours.pragma_update(None, "user_version", 0).unwrap();
        assert_eq!(kind(&ours).unwrap(), Kind::Nothing);
        let other = Connection::open_in_memory().unwrap();
        assert_eq!(kind(&other).unwrap(), Kind::Nothing, "empty");
        other.execute_batch("CREATE TABLE t (x)").unwrap();
        assert_eq!(kind(&other).unwrap(), Kind::Foreign);
    }

    /// A file of version 1, as it was made before there was another.
    fn first() -> Connection {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(super::TABLES).unwrap();
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
        migrate_by(&old, STEPS).unwrap();
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
        assert!(migrate_by(&connection, &["CREATE TABLE a (x); CREATE TABLE a (x)"]).is_err());
        assert!(connection.is_autocommit());
        assert_eq!(kind(&connection).unwrap(), Kind::Ledger(1));
        migrate_by(&connection, &["CREATE TABLE a (x)"]).unwrap();
        assert_eq!(kind(&connection).unwrap(), Kind::Ledger(2));
    }

    #[test]
    fn negative_money_is_written_right() {
        let connection = Connection::open_in_memory().unwrap();
        create(&connection).unwrap();
        connection
            .execute_batch(
                "INSERT INTO rate VALUES (x'00000000000000000000000000000001', 'v', 'b', 'e', 'standard', 0, 'USD', 1, 1,
                 1, 1, 1, 1, 1, 0, 0, NULL, NULL, NULL, NULL)",
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
                     NULL, NULL, NULL, NULL)"
                ))
                .unwrap();
            let sql = "SELECT cost FROM spend_daily WHERE day = date(?1 * 86400, 'unixepoch')";
            let cost: String = connection.query_row(sql, [day], |row| row.get(0)).unwrap();
            assert_eq!(cost, text::Decimal { least: 12, ..text::money(pico) }.to_string());
        }
    }
}
