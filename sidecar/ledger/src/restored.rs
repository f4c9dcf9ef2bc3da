//! Restored files: those put back from a copy, which lack the rows entered after the copy was made.
//!
//! Law: a gap records that before anything is entered.

use std::path::Path;

use rusqlite::types::ValueRef;

use crate::error::Error;
use crate::file::{self, File};
use crate::source::{Gap, Range};
use crate::txn::Txn;
use crate::{Calendar, check};

/// The time of a copy made by `tokenmeter ledger backup`, microseconds since 1970. The first writer of the file removes
/// it.
const COPIED: &str = "copied_us";

/// Marks a file as a copy.
pub(crate) fn mark(copy: &Txn<'_>, now_us: i64) -> Result<(), Error> {
    copy.fact(COPIED, ValueRef::Integer(now_us))
}

/// Removes the mark once the gap is entered.
pub(crate) fn unmark(txn: &Txn<'_>) -> Result<(), Error> {
    match txn.number(COPIED)? {
        Some(_) => txn.fact(COPIED, ValueRef::Null),
        None => Ok(()),
    }
}

/// Returns the time at which `tokenmeter ledger backup` made a file; `None` if it did not, or if a process wrote to the
/// file since.
pub(crate) fn copied_us(file: &File) -> Result<Option<i64>, Error> {
    file::number(&file.connection, COPIED)
}

/// Returns true if the open month's file was restored from a copy. `has_log`: it had a log before it was opened, as a
/// killed process leaves it and a copy does not.
pub(crate) fn is_copy(file: &File, has_log: bool) -> Result<bool, Error> {
    Ok(copied_us(file)?.is_some() || (!has_log && check::had_log(&file.connection)?))
}

/// Enters the gap into the file of a past month that was restored from a copy and is not closed. Returns the number of
/// gaps. A file that cannot be read is skipped: its own readers report it.
pub(crate) fn past_gap(path: &Path, calendar: &Calendar, now_us: i64) -> Result<u64, Error> {
    let Some(copied_us) = File::open_read(path).and_then(|file| copied_us(&file)).ok().flatten() else {
        return Ok(0);
    };
    let mut file = File::open(path)?;
    let Range { since_us: begin_us, until_us: end_us } = Range::of_month(calendar, file.month);
    // Rows entered after the month's end may be of any of its days.
    let from_us = if copied_us < end_us { copied_us } else { begin_us };
    let mut txn = Txn::begin(&mut file)?;
    txn.gap(&Gap::unknown(from_us, now_us.min(end_us), Gap::RESTORED))?;
    unmark(&txn)?;
    txn.commit()?;
    file.rest()?;
    Ok(1)
}
