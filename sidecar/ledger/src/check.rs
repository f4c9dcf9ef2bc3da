//! The check of a file before the writer uses it.
//!
//! Law: damage is found before a row is added to the file, and traffic does not wait for the check. The tables of which
//! reports are made are read as a whole each time, all pages only where that takes seconds at most. `tokenmeter ledger
//! verify` reads the rest.

use std::path::Path;

use rusqlite::Connection;
use rusqlite::types::ValueRef;

use crate::error::Error;
use crate::file::{self, File};
use crate::files;
use crate::schema::SCHEMA;
use crate::table::{ACT, CORRECTION, DEVICE, ENERGY, EXCHANGE, GAP, LINE, RATE, Table};

/// The longest file that is read as a whole if its last writer closed it, bytes.
const CLOSED_MAX_BYTES: u64 = 64 << 20;

/// The longest file that is read as a whole after a crash, bytes: a second or two of an ordinary disk, so that even at
/// twenty thousand rows a second the queue has room for the rows that arrive meanwhile.
const CRASHED_MAX_BYTES: u64 = 256 << 20;

/// The number of newest rows of each table that are read.
const NEWEST_ROWS: i64 = 1_024;

/// Checks a file that is about to be written. `in_order`: its last writer closed it.
pub(crate) fn before_writing(file: &File, in_order: bool) -> Result<(), Error> {
    let connection = &file.connection;
    SCHEMA.check(connection)?;
    let limit = if in_order { CLOSED_MAX_BYTES } else { CRASHED_MAX_BYTES };
    if files::length(&file.path) <= limit {
        pages(file, "quick_check")?;
    }
    for table in [&*RATE, &*LINE, &*DEVICE, &*ACT, &*GAP] {
        file::whole(connection, table, |_| Ok(()))?;
    }
    for table in [&*EXCHANGE, &*ENERGY, &*CORRECTION] {
        newest(file, table)?;
    }
    Ok(())
}

/// The fact with the last time at which every entered row was in the file itself, and none only in the log beside it.
pub(crate) const WHOLE: &str = "whole_us";

/// The error of a file that lacks its write-ahead log, with the remedy.
pub const LACKS_LOG: &str = "it was copied while a proxy wrote it, without the -wal beside it, which held its \
     newest rows: copy a ledger with `tokenmeter ledger backup`; if this is the ledger itself, start its proxy, which \
     enters a gap for what may be missing";

/// Returns true if a file was copied while it was written, without its log. False for a file that a proxy closed, has
/// open, or left with its log when it was killed.
pub(crate) fn lacks_log(file: &File) -> Result<bool, Error> {
    Ok(!has_log(&file.path) && had_log(&file.connection)?)
}

/// Returns true if a file has a log with content beside it.
pub(crate) fn has_log(path: &Path) -> bool {
    files::length(&files::beside(path, "-wal")) > 0
}

/// Returns true if rows of a file may have been only in its log after the last write.
pub(crate) fn had_log(connection: &Connection) -> Result<bool, Error> {
    let number = |name| file::number(connection, name);
    Ok(number("clean")? == Some(0) && number(WHOLE)? < number("alive_us")?)
}

/// Returns true if SQLite's own check, which is one transaction, would delay checkpoints of a file that may be written.
pub(crate) fn is_long_and_written(file: &File) -> Result<bool, Error> {
    let mode: String = file.connection.query_row("PRAGMA journal_mode", [], |row| row.get(0))?;
    Ok(mode == "wal" && files::length(&file.path) > CRASHED_MAX_BYTES)
}

/// Runs SQLite's own check: `quick_check` or `integrity_check`.
pub(crate) fn pages(file: &File, check: &str) -> Result<(), Error> {
    let result: String = file.connection.query_row(&format!("PRAGMA {check}(1)"), [], |row| row.get(0))?;
    if result == "ok" { Ok(()) } else { Err(Error::corrupt(result)) }
}

/// Checks that the newest rows of a table are complete up to the one that the table digest counts as the last.
fn newest(file: &File, table: &'static Table) -> Result<(), Error> {
    let entered = file::table_digest(&file.connection, table)?.entered;
    let kept = file::compacted(&file.connection, table)?.entered < entered;
    let mut expected = entered;
    table.each(&file.connection, "ORDER BY seq DESC LIMIT ?", &[NEWEST_ROWS], |values, _| {
        if values[0] != ValueRef::Integer(expected) {
            return Err(Error::corrupt(format!("row {expected} of the table {} is missing", table.name)));
        }
        expected -= 1;
        Ok(())
    })?;
    if kept && expected == entered {
        return Err(Error::corrupt(format!("the rows of the table {} are missing", table.name)));
    }
    Ok(())
}
