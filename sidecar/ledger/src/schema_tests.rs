//! Versions of a file, by a next version of the schema that only these tests have.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::LazyLock;
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::types::ValueRef;

use super::{Kind, SCHEMA, Schema, VERSION};
use crate::table::{EXCHANGE, Table};
use crate::testing::{Contents, NOON_US, Place, rate, row, write_month};
use crate::{Store, close, file, files, month, table};

/// The next version, which adds a column to `exchange`.
fn next() -> Schema {
    let mut next = SCHEMA.clone();
    next.version += 1;
    next.tables[0].definitions.push((next.version, ADDED.to_owned(), "TEXT"));
    next
}

const ADDED: &str = "added";

/// The table `exchange` of the next version.
static NEXT_EXCHANGE: LazyLock<Table> = LazyLock::new(|| {
    let (first, later) = EXCHANGE.columns.split_at(EXCHANGE.first);
    Table::new("exchange", 0, first.to_vec(), [later, &[ADDED.to_owned()]].concat())
});

/// An empty file of this version.
fn new() -> Connection {
    let connection = Connection::open_in_memory().unwrap();
    SCHEMA.create(&connection).unwrap();
    connection
}

/// A closed month of 24 rows, written by this version.
fn closed_month() -> Place {
    let (place, month) = (Place::new(), month::of(NOON_US));
    let rows: Vec<_> = (0..24).map(|n| (month, row(n), None)).collect();
    let rates = [0, 1].map(|n| match rate(n) {
        price::Charge::Priced { rate, .. } => rate,
        price::Charge::Unpriced(_) => panic!("it has a price"),
    });
    let contents = Contents { rates: &rates, rows: rows.iter().collect(), ..Contents::default() };
    write_month(&place.ledger(), month, false, &contents);
    close(&place.ledger(), month, "ann", month::begin_us(month + 1)).unwrap();
    place
}

fn columns(connection: &Connection, table: &str) -> Vec<String> {
    let mut statement = connection.prepare(&format!("PRAGMA {table}")).unwrap();
    statement.query_map([], |row| row.get(1)).unwrap().map(Result::unwrap).collect()
}

/// Reads all rows of `exchange` as the next version, and checks each row checksum and the table digest.
fn read_as_next(connection: &Connection) -> usize {
    let mut rows = 0;
    file::whole(connection, &NEXT_EXCHANGE, |values| {
        rows += 1;
        assert_eq!(values.last(), Some(&ValueRef::Null));
        Ok(())
    })
    .unwrap();
    for table in table::digested_tables().into_iter().skip(1) {
        file::whole(connection, table, |_| Ok(())).unwrap();
    }
    rows
}

#[test]
fn every_version_adds_columns() {
    let versions: std::collections::BTreeSet<_> =
        SCHEMA.tables.iter().flat_map(|table| table.definitions.iter().map(|column| column.0)).collect();
    assert!(versions.into_iter().eq(1..=VERSION));
}

#[test]
fn kind_of_a_file_is_known_by_its_header() {
    let ledger = new();
    assert_eq!(SCHEMA.kind(&ledger).unwrap(), Kind::Ledger(VERSION));
    ledger.pragma_update(None, "user_version", VERSION + 1).unwrap();
    assert_eq!(SCHEMA.kind(&ledger).unwrap(), Kind::Newer(VERSION + 1));
    assert!(SCHEMA.known(&ledger).unwrap_err().message.contains("newer tokenmeter"));
    for unknown in [0, -1] {
        ledger.pragma_update(None, "user_version", unknown).unwrap();
        assert_eq!(SCHEMA.kind(&ledger).unwrap(), Kind::Invalid);
        assert!(SCHEMA.migrate(&ledger).is_err() && SCHEMA.read_as_newest(&ledger).is_err());
    }
    let other = Connection::open_in_memory().unwrap();
    assert_eq!(SCHEMA.kind(&other).unwrap(), Kind::Invalid, "empty");
    other.execute_batch("CREATE TABLE t (x)").unwrap();
    assert_eq!(SCHEMA.kind(&other).unwrap(), Kind::Foreign);
}

#[test]
fn migrated_file_equals_new_one() {
    let (old, new) = (new(), Connection::open_in_memory().unwrap());
    next().migrate(&old).unwrap();
    next().create(&new).unwrap();
    assert_eq!(next().kind(&old).unwrap(), Kind::Ledger(VERSION + 1));
    for name in ["exchange", "rate", "energy", "line", "exchanges", "spend_daily", "prices", "requests"] {
        let table = format!("table_info({name})");
        assert_eq!(columns(&old, &table), columns(&new, &table), "{name}");
    }
    assert_eq!(columns(&old, "table_info(exchanges)").last().unwrap(), ADDED, "the view has it, too");
}

#[test]
fn migrated_rows_keep_their_checksums() {
    let place = closed_month();
    let path = files::of_month(&place.ledger(), month::of(NOON_US));
    make_writable(&path);
    let connection = Connection::open(&path).unwrap();
    let rows = "SELECT group_concat(mark) FROM exchange";
    let before: String = connection.query_row(rows, [], |row| row.get(0)).unwrap();
    next().migrate(&connection).unwrap();
    assert_eq!(read_as_next(&connection), 24);
    assert_eq!(connection.query_row(rows, [], |row| row.get::<_, String>(0)).unwrap(), before);
    // The checksum of a row covers a value of the column.
    connection.execute_batch("UPDATE exchange SET added = 'x' WHERE seq = 7").unwrap();
    let error = file::whole(&connection, &NEXT_EXCHANGE, |_| Ok(())).unwrap_err();
    assert!(error.message.contains("exchange is not as it was written (seq 7"), "{error}");
}

/// A month that is closed is read as the next version, and not written.
#[test]
fn old_file_reads_as_newest_unchanged() {
    let place = closed_month();
    let path = files::of_month(&place.ledger(), month::of(NOON_US));
    let before = std::fs::read(&path).unwrap();
    let connection = Connection::open_with_flags(&path, rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    next().read_as_newest(&connection).unwrap();
    assert_eq!(read_as_next(&connection), 24);
    assert_eq!(next().kind(&connection).unwrap(), Kind::Ledger(VERSION));
    assert!(!columns(&connection, "main.table_info(exchange)").contains(&ADDED.to_owned()));
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

#[test]
fn file_of_next_version_is_refused_unchanged() {
    let place = closed_month();
    let path = files::of_month(&place.ledger(), month::of(NOON_US));
    make_writable(&path);
    next().migrate(&Connection::open(&path).unwrap()).unwrap();
    let before = std::fs::read(&path).unwrap();
    let refused = [file::File::open(&path).unwrap_err(), file::File::open_read(&path).unwrap_err()];
    for error in refused {
        assert!(error.message.contains("use a newer tokenmeter"), "{error}");
    }
    assert!(Store::open_read(&path).is_err());
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

/// A step is one transaction.
#[test]
fn failed_step_leaves_the_file_as_it_was() {
    let connection = new();
    let mut failing = next();
    failing.tables[1].definitions.push((failing.version, "input".to_owned(), "TEXT"));
    let error = failing.migrate(&connection).unwrap_err();
    assert!(error.message.contains("duplicate column name: input"), "{error}");
    assert!(connection.is_autocommit());
    assert_eq!(SCHEMA.kind(&connection).unwrap(), Kind::Ledger(VERSION));
    assert!(!columns(&connection, "table_info(exchange)").contains(&ADDED.to_owned()));
    next().migrate(&connection).unwrap();
    assert_eq!(next().kind(&connection).unwrap(), Kind::Ledger(VERSION + 1));
}

#[test]
fn concurrent_migrations_take_a_step_once() {
    let place = Place::new();
    SCHEMA.create(&Connection::open(place.ledger()).unwrap()).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let connection = Connection::open(place.ledger()).unwrap();
                connection.busy_timeout(Duration::from_secs(30)).unwrap();
                next().migrate(&connection).unwrap();
            });
        }
    });
    let connection = Connection::open(place.ledger()).unwrap();
    assert_eq!(next().kind(&connection).unwrap(), Kind::Ledger(VERSION + 1));
}

fn make_writable(path: &Path) {
    std::fs::set_permissions(path, Permissions::from_mode(0o600)).unwrap();
}

#[test]
fn negative_money_is_written_right() {
    let connection = new();
    connection
        .execute_batch(
            "INSERT INTO rate VALUES (x'00000000000000000000000000000001', 'v', 'b', 'e', 'standard', 0, 'USD', 1, 1,
             1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0)",
        )
        .unwrap();
    for (pico, day) in
        [(-1_i128, 1), (-1_000_000, 2), (-1_000_001, 3), (-999_999, 4), (-12_345_678_901_234_567, 5), (7, 6)]
    {
        let (high, low) = (pico.div_euclid(1_000_000), pico.rem_euclid(1_000_000));
        connection
            .execute_batch(&format!(
                "INSERT INTO line VALUES ({day}, 't', '', 'u', 'p', 'm', 'e', 'none', 'none',
                 x'00000000000000000000000000000001', 'correction', 0, 0,0,0,0,0,0,0,0,0,0,0,0,0,0, {high}, {low},
                 0,0,0,0,0,0,0,0,0,0)"
            ))
            .unwrap();
        let sql = "SELECT cost FROM spend_daily WHERE day = date(?1 * 86400, 'unixepoch')";
        let cost: String = connection.query_row(sql, [day], |row| row.get(0)).unwrap();
        assert_eq!(cost, text::Decimal { least: 12, ..text::money(pico) }.to_string());
    }
}
