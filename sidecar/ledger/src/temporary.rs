//! A temporary SQLite database for data that may be too large for memory while a ledger is read.
//!
//! SQLite keeps it in memory while it is small, and deletes its file at the end; `SQLITE_TMPDIR` or `TMPDIR` is its
//! folder.

use rusqlite::Connection;

use crate::error::Error;

/// Opens a temporary database with tables, in one transaction, because nothing of it outlives the process.
pub(crate) fn open(tables: &str) -> Result<Connection, Error> {
    let file = Connection::open("").map_err(no_room)?;
    let begin = "PRAGMA journal_mode = OFF; PRAGMA cache_size = -16384; PRAGMA foreign_keys = OFF";
    file.execute_batch(&format!("{begin}; {tables}; BEGIN")).map_err(no_room)?;
    Ok(file)
}

/// Returns the error of a temporary database that cannot be written or read.
pub(crate) fn no_room(error: impl Into<Error>) -> Error {
    error.into().of("the temporary file for corrections (TMPDIR names its folder)")
}
