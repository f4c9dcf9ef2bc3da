//! Retention: the rows of months that are long over are deleted; their daily totals stay, and the table digests of the
//! rows, so that the month's digest can still be made.
//!
//! Laws: a step is short, because the writer takes it between two commits; a crash between steps loses nothing, because
//! a deletion is recorded before it begins; rows that another store has yet to get stay; a file that cannot be read
//! keeps no other; after a jump of the clock nothing is deleted until it has run on for a day.

use std::path::Path;

use rusqlite::types::ValueRef;

use crate::amend::{Amendment, amend};
use crate::close::read_only;
use crate::error::Error;
use crate::file::{self, File};
use crate::files;
use crate::month;
use crate::source::DAY_US;
use crate::table::{ENERGY, EXCHANGE};
use crate::txn::Txn;

/// So many rows of each table one step takes away.
const ROWS: i64 = 2_000;

/// So many pages one step gives back to the disk.
const PAGES: i64 = 2_000;

/// The time for which a clock must run on before it is trusted, and the longest time between two looks at it.
const STEADY_US: i64 = DAY_US;

/// A look so soon after another, microseconds, is not written down.
const LOOK_US: u64 = 60_000_000;

/// The next action after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Another step.
    Step,
    /// Nothing.
    Nothing,
    /// Nothing yet: rows are old enough to go, and may not.
    Wait,
}

/// Takes a step. Of a file whose rows another store has yet to get, `may_forget` says no.
pub(crate) fn step(
    path: &Path,
    keep_days: u32,
    may_forget: &dyn Fn(&Path) -> bool,
    who: &str,
    now_us: i64,
) -> Result<Next, Error> {
    let kept_us = now_us.saturating_sub(i64::from(keep_days) * DAY_US);
    if !is_steady(path, now_us).map_err(|error| error.of(path.display()))? {
        return Ok(Next::Nothing);
    }
    let mut next = Next::Nothing;
    let mut left = None;
    for name in files::list(path)? {
        if name == path {
            continue;
        }
        match of_file(path, &name, keep_days, kept_us, may_forget, who, now_us) {
            Ok(Next::Step) => return Ok(Next::Step),
            Ok(Next::Wait) => next = Next::Wait,
            Ok(Next::Nothing) => {}
            // The others are looked at first: of a month that cannot be read nothing is taken away.
            Err(error) => {
                left.get_or_insert(error.of(name.display()));
            }
        }
    }
    left.map_or(Ok(next), Err)
}

/// Returns true if the clock has run on without a jump for long enough to be trusted, by the open file's facts: since
/// when it has, and when it was last looked at. A clock that was wrong for hours has deleted nothing; deleted rows are
/// gone for good.
fn is_steady(path: &Path, now_us: i64) -> Result<bool, Error> {
    if !path.try_exists()? {
        return Ok(false);
    }
    let mut file = File::open(path)?;
    let txn = Txn::begin(&mut file)?;
    let past_us = txn.number("looked_us")?.map_or(u64::MAX, |last_us| last_us.abs_diff(now_us));
    let jumped = past_us > STEADY_US.unsigned_abs();
    let since_us = txn.number("steady_us")?.filter(|_| !jumped).unwrap_or(now_us);
    if past_us > LOOK_US {
        txn.fact("looked_us", ValueRef::Integer(now_us))?;
        txn.fact("steady_us", ValueRef::Integer(since_us))?;
        txn.commit()?;
    }
    Ok(now_us.saturating_sub(since_us) >= STEADY_US)
}

/// A step of one file.
fn of_file(
    path: &Path,
    name: &Path,
    keep_days: u32,
    kept_us: i64,
    may_forget: &dyn Fn(&Path) -> bool,
    who: &str,
    now_us: i64,
) -> Result<Next, Error> {
    let (month, closed, left) = {
        let file = File::open_read(name)?;
        let closed = file::number(&file.connection, "closed_us")?.is_some();
        (file.month, closed, left(&file)?)
    };
    if month::begin_us(month + 1) > kept_us || !left {
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
        amend(path, &act)?;
        tracing::info!(month = month::name(month), "the rows of this month were taken away; its lines stay");
    }
    Ok(Next::Step)
}

/// Returns true if there are rows, or unused pages.
fn left(file: &File) -> Result<bool, Error> {
    for table in [&*EXCHANGE, &*ENERGY] {
        let sql = format!("SELECT EXISTS (SELECT 1 FROM {})", table.name);
        if file.connection.query_row(&sql, [], |row| row.get(0))? {
            return Ok(true);
        }
    }
    Ok(file.connection.pragma_query_value(None, "freelist_count", |row| row.get::<_, i64>(0))? > 0)
}

/// One step of one file. Whether it was the last.
fn compact(path: &Path) -> Result<bool, Error> {
    let mut file = File::open(path)?;
    let mut txn = Txn::begin(&mut file)?;
    let connection = txn.settled()?;
    let mut gone = 0;
    for table in [&*ENERGY, &*EXCHANGE] {
        file::set_compacted(connection, table, &file::table_digest(connection, table)?)?;
        let sql = format!(
            "DELETE FROM {0} WHERE seq IN (SELECT seq FROM {0} ORDER BY seq LIMIT {ROWS})",
            table.name
        );
        gone += connection.execute(&sql, [])?;
    }
    txn.commit()?;
    if gone == 0 {
        // Each row of the pragma's answer is a page given back.
        let mut statement = file.connection.prepare(&format!("PRAGMA incremental_vacuum({PAGES})"))?;
        let mut rows = statement.query([])?;
        while rows.next()?.is_some() {}
    }
    let last = !left(&file)?;
    file.rest()?;
    Ok(last)
}
