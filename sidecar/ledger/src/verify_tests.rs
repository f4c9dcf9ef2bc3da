//! Verification beside a writer: in steps, and with the same findings as at once.

use rusqlite::Connection;

use super::{Recount, contents, contents_by};
use crate::check;
use crate::file::File;
use crate::files;
use crate::month_files::MonthFiles;
use crate::testing::{NOON_US, Place, row};
use crate::txn::Txn;

const ROWS: u64 = 1_000;

fn enter(file: &mut File, rows: std::ops::Range<u64>) {
    let mut txn = Txn::begin(file).unwrap();
    for row in rows.map(row) {
        if let price::Charge::Priced { rate, .. } = &row.charge {
            txn.rates([&**rate]).unwrap();
        }
        txn.exchanges([&row]).unwrap();
    }
    txn.commit().unwrap();
}

fn written(place: &Place) -> MonthFiles {
    let mut month_files = MonthFiles::new(place.ledger(), "test".into(), crate::Calendar::default());
    month_files.ready(NOON_US).unwrap();
    enter(month_files.open_file().unwrap(), 0..ROWS);
    month_files
}

/// A reader of an old state would keep the log from being emptied.
#[test]
fn log_can_be_emptied_between_steps() {
    let place = Place::new();
    let mut month_files = written(&place);
    let file = File::open_read(&place.ledger()).unwrap();
    let mut next = ROWS;
    let found = contents_by(&file, 100, &mut |_| {
        if next < 2 * ROWS {
            enter(month_files.open_file().unwrap(), next..next + 50);
            next += 50;
        }
        assert_eq!(month_files.open_file().unwrap().checkpoint("TRUNCATE").unwrap(), (0, 0));
        assert_eq!(files::length(&files::beside(&place.ledger(), "-wal")), 0);
    })
    .unwrap();
    assert_eq!(found.differences, Vec::<String>::new());
    assert!(next > ROWS + 500, "{next} rows: it was read in many steps");
    assert_eq!(found.rows, next, "what was entered meanwhile is read too");
    month_files.end(NOON_US).unwrap();
}

#[test]
fn progress_reaches_the_number_of_rows() {
    let place = Place::new();
    written(&place).end(NOON_US).unwrap();
    let file = File::open_read(&place.ledger()).unwrap();
    let mut reported = Vec::new();
    contents_by(&file, 300, &mut |progress| reported.push(progress)).unwrap();
    assert!(reported.iter().all(|progress| progress.month == Some(file.month)));
    let steps: Vec<_> =
        reported.iter().map(|progress| (progress.step, progress.done_rows, progress.total_rows)).collect();
    let rows = |done| ("reading rows", done, Some(ROWS));
    let pages = ("checking pages", 0, None);
    assert_eq!(steps, [pages, rows(300), rows(600), rows(900), rows(1_000), rows(1_000)]);
}

#[test]
fn steps_find_what_is_wrong_wherever_it_is() {
    for (sql, difference) in [
        (
            "UPDATE exchange SET input = input + 1 WHERE seq = 250",
            "a row of the table exchange is not as it was",
        ),
        ("DELETE FROM exchange WHERE seq = 200", "has 999 rows, which are not the 1000 rows"),
        ("DELETE FROM exchange WHERE seq = 1000", "has 999 rows, which are not the 1000 rows"),
        ("UPDATE line SET exchanges = 1", "table line"),
    ] {
        let place = Place::new();
        written(&place).end(NOON_US).unwrap();
        Connection::open(place.ledger()).unwrap().execute_batch(sql).unwrap();
        let file = File::open_read(&place.ledger()).unwrap();
        let found = contents_by(&file, 100, &mut |_| {}).unwrap().differences;
        assert!(found.iter().any(|found| found.contains(difference)), "{sql}: {found:?}");
        assert_eq!(found, contents(&file, &|_| ()).unwrap().differences);
    }
}

/// They would drop or hide rows while every row that is left is correct.
#[test]
fn altered_objects_are_reported_and_stop_the_writer() {
    const KEPT: [&str; 2] =
        ["CREATE INDEX mine ON exchange (tenant)", "CREATE VIEW mine AS SELECT * FROM exchanges"];
    for sql in [
        "CREATE TRIGGER t BEFORE INSERT ON exchange WHEN new.tenant = 'a' BEGIN SELECT RAISE(IGNORE); END",
        "CREATE UNIQUE INDEX u ON exchange (id, tenant)",
        "DROP VIEW exchanges; CREATE VIEW exchanges AS SELECT * FROM exchange WHERE tenant <> 'a'",
        "DROP VIEW gaps",
        "ALTER TABLE exchange RENAME TO other; CREATE VIEW exchange AS SELECT * FROM other",
        "ALTER TABLE line ADD COLUMN x INTEGER",
    ]
    .into_iter()
    .chain(KEPT)
    {
        let place = Place::new();
        written(&place).end(NOON_US).unwrap();
        Connection::open(place.ledger()).unwrap().execute_batch(sql).unwrap();
        let file = File::open_read(&place.ledger()).unwrap();
        let found = contents(&file, &|_| ()).map(|found| found.differences).unwrap_or_default();
        let is_found = found.iter().any(|found| found.contains("is not as tokenmeter creates it"));
        assert_eq!(is_found, !KEPT.contains(&sql), "{sql}: {found:?}");
        assert_eq!(check::before_writing(&file, true).is_err(), !KEPT.contains(&sql), "{sql}");
    }
}

/// An operator's trigger, added while the writer has the file open.
#[test]
fn triggers_have_no_effect() {
    let place = Place::new();
    let mut month_files = written(&place);
    let sql = "CREATE TRIGGER t BEFORE INSERT ON exchange BEGIN SELECT RAISE(IGNORE); END";
    Connection::open(place.ledger()).unwrap().execute_batch(sql).unwrap();
    enter(month_files.open_file().unwrap(), ROWS..ROWS + 50);
    let connection = Connection::open(place.ledger()).unwrap();
    let rows: i64 = connection.query_row("SELECT count(*) FROM exchange", [], |row| row.get(0)).unwrap();
    assert_eq!(rows, ROWS as i64 + 50);
    month_files.end(NOON_US).unwrap();
}

/// Of a file that is too long for SQLite's own check while it is written.
#[test]
fn row_not_found_by_id_is_reported() {
    let place = Place::new();
    written(&place).end(NOON_US).unwrap();
    let first_error = || {
        let file = File::open_read(&place.ledger()).unwrap();
        let mut sums = Recount { by_id: true, ..Recount::default() };
        while sums.step(&file.connection, 300).unwrap() {}
        sums.errors.messages().next()
    };
    assert_eq!(first_error(), None);
    // The index of another table, which is empty.
    let sql = "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET rootpage = \
               (SELECT rootpage FROM sqlite_schema WHERE name = 'sqlite_autoindex_energy_1') \
               WHERE name = 'sqlite_autoindex_exchange_1'";
    Connection::open(place.ledger()).unwrap().execute_batch(sql).unwrap();
    assert_eq!(first_error().unwrap(), "row 1 of the table exchange is not found by its id");
}
