//! The check of a file when it is opened.
//!
//! Law: a damaged file is noticed before anything is added to it, and traffic does not wait for that. The daily totals,
//! of which reports are made, are read whole each time; all pages only where that takes seconds at most. `tokenmeter
//! ledger verify` reads the rest.

use std::path::Path;

use rusqlite::Connection;
use rusqlite::types::ValueRef;

use crate::error::Error;
use crate::file::{self, File};
use crate::files;
use crate::table::{ACT, CORRECTION, DEVICE, ENERGY, EXCHANGE, GAP, LINE, RATE, Table};

/// A file that was left in order is read whole up to this length, bytes.
const IN_ORDER: u64 = 64 << 20;

/// One that was not, up to this: a second or two of an ordinary disk, so that even at twenty thousand rows a
/// second what comes meanwhile finds room in the queue.
const NOT_IN_ORDER: u64 = 256 << 20;

/// So many of the newest rows are read.
const NEWEST: i64 = 1_024;

/// Looks at a file that is about to be written.
pub(crate) fn look(file: &File, in_order: bool) -> Result<(), Error> {
    let connection = &file.connection;
    let limit = if in_order { IN_ORDER } else { NOT_IN_ORDER };
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

/// The fact that says when all that was entered into a file was known to be in it, and in no log beside it.
pub(crate) const WHOLE: &str = "whole_us";

/// The error for a file that lacks its log, with the remedy.
pub const LACKS_LOG: &str = "it was copied while a proxy wrote it, without the -wal beside it, which held its \
     newest rows: copy a ledger with `tokenmeter ledger backup`; if this is the ledger itself, start its proxy, which \
     enters a gap for what may be missing";

/// Returns whether a file was copied while it was written, without its log. A file that a proxy closed in order, has
/// open, or left with its log when it was killed was not.
pub(crate) fn lacks_log(file: &File) -> Result<bool, Error> {
    Ok(!has_log(&file.path) && had_log(&file.connection)?)
}

/// Returns true if a log that is not empty lies beside a file.
pub(crate) fn has_log(path: &Path) -> bool {
    files::length(&files::beside(path, "-wal")) > 0
}

/// Returns true if some rows of a file were in a log when it was written last.
pub(crate) fn had_log(connection: &Connection) -> Result<bool, Error> {
    let number = |name| file::number(connection, name);
    Ok(number("clean")? == Some(0) && number(WHOLE)? < number("alive_us")?)
}

/// Returns whether SQLite's own check, which is one transaction, would delay checkpoints of a file that may be written.
pub(crate) fn is_long_and_written(file: &File) -> Result<bool, Error> {
    let mode: String = file.connection.query_row("PRAGMA journal_mode", [], |row| row.get(0))?;
    Ok(mode == "wal" && files::length(&file.path) > NOT_IN_ORDER)
}

/// SQLite's own check.
pub(crate) fn pages(file: &File, check: &str) -> Result<(), Error> {
    let said: String = file.connection.query_row(&format!("PRAGMA {check}(1)"), [], |row| row.get(0))?;
    if said == "ok" { Ok(()) } else { Err(Error::corrupt(said)) }
}

/// The newest rows of a table are there, without a hole, and the last is the one that was entered last.
fn newest(file: &File, table: &'static Table) -> Result<(), Error> {
    let entered = file::table_digest(&file.connection, table)?.entered;
    let kept = file::compacted(&file.connection, table)?.entered < entered;
    let mut expected = entered;
    table.each(&file.connection, "ORDER BY seq DESC LIMIT ?", &[NEWEST], |values, _| {
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
