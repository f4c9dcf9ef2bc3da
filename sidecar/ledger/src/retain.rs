//! Retention: the rows of months that are long over are deleted; their daily totals stay, and the table digests of the
//! rows, so that the month's digest can still be made.
//!
//! Laws: a step is short, because the writer takes it between two commits. A crash between steps loses no sum, because
//! the table digests of the rows are stored before the first is deleted. Rows that are not shipped yet stay. A file
//! that cannot be read stops no other. After a jump of the clock nothing is deleted until it has run steadily for a
//! day.

use std::path::Path;

use rusqlite::types::ValueRef;

use crate::amend::{self, Amendment};
use crate::close::read_only;
use crate::error::Error;
use crate::file::{self, File};
use crate::files;
use crate::source::DAY_US;
use crate::table::{ENERGY, EXCHANGE};
use crate::txn::Txn;
use crate::{Calendar, month};

/// The most rows of each table that one step deletes.
const STEP_ROWS: i64 = 2_000;

/// The most pages that one step returns to the disk.
const STEP_PAGES: i64 = 2_000;

/// The time for which a clock must run steadily before it is trusted, and the longest time between two readings of it.
const STEADY_US: i64 = DAY_US;

/// The shortest time between two readings of the clock that are stored, microseconds.
const READING_US: u64 = 60_000_000;

/// The next action after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Another step.
    Step,
    /// Nothing.
    Nothing,
    /// Nothing yet: rows are old enough to be deleted, and are not shipped.
    Wait,
}

/// Takes a step. `may_forget` returns false for a file whose rows are not shipped yet, or whose usage events are not
/// accepted.
pub(crate) fn step(
    path: &Path,
    calendar: &Calendar,
    keep_days: u32,
    may_forget: &dyn Fn(&Path) -> bool,
    who: &str,
    now_us: i64,
) -> Result<Next, Error> {
    if !is_steady(path, now_us).map_err(|error| error.of(path.display()))? {
        return Ok(Next::Nothing);
    }
    let mut next = Next::Nothing;
    let mut left = None;
    for name in files::list(path)? {
        if name == path {
            continue;
        }
        match of_file(path, &name, calendar, keep_days, may_forget, who, now_us) {
            Ok(Next::Step) => return Ok(Next::Step),
            Ok(Next::Wait) => next = Next::Wait,
            Ok(Next::Nothing) => {}
            // Reported after the others: nothing of a file that cannot be read is deleted.
            Err(error) => {
                left.get_or_insert(error.of(name.display()));
            }
        }
    }
    left.map_or(Ok(next), Err)
}

/// Returns true if the clock has run without a jump for long enough to be trusted. The open file has two facts for
/// that: the last reading, and the time from which there was no jump. A clock that is wrong for some hours deletes
/// nothing.
fn is_steady(path: &Path, now_us: i64) -> Result<bool, Error> {
    if !path.try_exists()? {
        return Ok(false);
    }
    let mut file = File::open(path)?;
    let txn = Txn::begin(&mut file)?;
    let past_us = txn.number("looked_us")?.map_or(u64::MAX, |last_us| last_us.abs_diff(now_us));
    let jumped = past_us > STEADY_US.unsigned_abs();
    let since_us = txn.number("steady_us")?.filter(|_| !jumped).unwrap_or(now_us);
    if past_us > READING_US {
        txn.fact("looked_us", ValueRef::Integer(now_us))?;
        txn.fact("steady_us", ValueRef::Integer(since_us))?;
        txn.commit()?;
    }
    Ok(now_us.saturating_sub(since_us) >= STEADY_US)
}

/// Takes a step of one file.
fn of_file(
    path: &Path,
    name: &Path,
    calendar: &Calendar,
    keep_days: u32,
    may_forget: &dyn Fn(&Path) -> bool,
    who: &str,
    now_us: i64,
) -> Result<Next, Error> {
    let (month, closed, left) = {
        let file = File::open_read(name)?;
        let closed = file::number(&file.connection, "closed_us")?.is_some();
        (file.month, closed, left(&file)?)
    };
    let kept_us = now_us.saturating_sub(i64::from(keep_days) * DAY_US);
    if calendar.month_begin_us(month + 1) > kept_us || !left {
        return Ok(Next::Nothing);
    }
    if !may_forget(name) {
        return Ok(Next::Wait);
    }
    if closed {
        read_only(name, false)?;
    }
    let done = compact(name);
    if closed {
        read_only(name, true)?;
    }
    if done? {
        let detail = serde_json::json!({ "month": month::name(month), "keep_days": keep_days }).to_string();
        let act = Amendment {
            what: "compacted",
            who,
            detail: &detail,
            at_us: now_us,
            rates: &[],
            corrections: &[],
        };
        amend::into_open(path, &act, calendar)?;
        tracing::info!(
            month = month::name(month),
            "the rows of this month were deleted; its daily totals stay"
        );
    }
    Ok(Next::Step)
}

/// Returns true if a file has rows or unused pages.
fn left(file: &File) -> Result<bool, Error> {
    for table in [&*EXCHANGE, &*ENERGY] {
        let sql = format!("SELECT EXISTS (SELECT 1 FROM {})", table.name);
        if file.connection.query_row(&sql, [], |row| row.get(0))? {
            return Ok(true);
        }
    }
    Ok(file.connection.pragma_query_value(None, "freelist_count", |row| row.get::<_, i64>(0))? > 0)
}

/// Deletes some rows of one file, or returns some pages to the disk. Returns true after the last step.
fn compact(path: &Path) -> Result<bool, Error> {
    let mut file = File::open(path)?;
    let mut txn = Txn::begin(&mut file)?;
    let connection = txn.settled()?;
    let mut gone = 0;
    for table in [&*ENERGY, &*EXCHANGE] {
        file::set_compacted(connection, table, &file::table_digest(connection, table)?)?;
        let sql = format!(
            "DELETE FROM {0} WHERE seq IN (SELECT seq FROM {0} ORDER BY seq LIMIT {STEP_ROWS})",
            table.name
        );
        gone += connection.execute(&sql, [])?;
    }
    txn.commit()?;
    if gone == 0 {
        // SQLite frees one page for each row of the result.
        let mut statement = file.connection.prepare(&format!("PRAGMA incremental_vacuum({STEP_PAGES})"))?;
        let mut rows = statement.query([])?;
        while rows.next()?.is_some() {}
    }
    let last = !left(&file)?;
    file.rest()?;
    Ok(last)
}
