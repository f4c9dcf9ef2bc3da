//! Manual changes of a ledger: corrections of charges and other events, each with an entry in the audit trail.
//!
//! Law: a row is never changed. A correction is billed in the month of its exchange, or, if that is closed, in the open
//! one, and never in a month that has not begun.

use std::path::Path;

use price::Rate;
use rusqlite::types::ValueRef;

use crate::error::{Error, Fault};
use crate::file::{self, File};
use crate::files;
use crate::lock::{self, Lock};
use crate::quarantine;
use crate::source::{Correction, Month};
use crate::table::CORRECTION;
use crate::txn::{Txn, closed};
use crate::{Calendar, LedgerFolder, check, month};

/// A manual change of a ledger.
#[derive(Clone, Copy, Debug)]
pub struct Amendment<'a> {
    /// The action, in a word: `repriced`, `price_book`, ….
    pub what: &'a str,
    /// The actor.
    pub who: &'a str,
    /// Details, JSON.
    pub detail: &'a str,
    /// The time, microseconds since 1970.
    pub at_us: i64,
    /// The rates that the corrections name.
    pub rates: &'a [&'a Rate],
    /// The corrections to add; empty if only the event is recorded. Corrections of several months at once are all
    /// billed in the open one.
    pub corrections: &'a [Correction],
}

impl LedgerFolder {
    /// Enters an amendment into the month of its corrections, or else into the open one, all of it or nothing; also
    /// while another process writes the ledger. Returns the number of new corrections: one whose id exists changes
    /// nothing.
    ///
    /// # Errors
    /// If that month cannot be written, or none is open and another process is about to create one.
    pub fn amend(&self, amendment: &Amendment<'_>) -> Result<u64, Error> {
        let (path, calendar) = (&*self.path, self.calendar()?);
        let Some(month) = own_month(amendment, &calendar) else {
            return into_open(path, amendment, &calendar);
        };
        let past = files::of_month(path, month);
        if !past.try_exists()? {
            return into_open(path, amendment, &calendar);
        }
        let named = |error: Error| error.of(past.display());
        if let Some(new) = into_past(&past, amendment).map_err(named)? {
            return Ok(new);
        }
        // The month was closed. It may have some of them, from another process that entered the same corrections.
        let corrections = not_in(&past, amendment.corrections).map_err(named)?;
        into_open(path, &Amendment { corrections: &corrections, ..*amendment }, &calendar)
    }
}

/// Returns the month that all corrections are of, if it has begun.
fn own_month(amendment: &Amendment<'_>, calendar: &Calendar) -> Option<Month> {
    let mut months = amendment.corrections.iter().map(|correction| month::of_day(correction.line.key.day));
    let first = months.next()?;
    (first <= calendar.month(amendment.at_us) && months.all(|month| month == first)).then_some(first)
}

/// Enters an amendment into the file of a past month. Returns `None` if that is closed.
fn into_past(past: &Path, amendment: &Amendment<'_>) -> Result<Option<u64>, Error> {
    // The file of a closed month is read-only.
    if file::number(&File::open_read(past)?.connection, "closed_us")?.is_some() {
        return Ok(None);
    }
    let mut file = File::open(past)?;
    let new = write(&mut file, amendment, None)?;
    file.rest()?;
    Ok(new)
}

fn not_in(past: &Path, corrections: &[Correction]) -> Result<Vec<Correction>, Error> {
    let file = File::open_read(past)?;
    let mut missing = Vec::new();
    for correction in corrections {
        if !file::has(&file.connection, &CORRECTION, &correction.id.0)? {
            missing.push(correction.clone());
        }
    }
    Ok(missing)
}

/// Enters an amendment into the open month.
pub(crate) fn into_open(path: &Path, amendment: &Amendment<'_>, calendar: &Calendar) -> Result<u64, Error> {
    let named = |error: Error| error.of(path.display());
    let now = calendar.month(amendment.at_us);
    let here = files::of_month(path, now);
    let mut lock = None;
    let before = files::node(path).ok();
    // A file of a future month was created while the clock was wrong: nothing is billed there.
    let open = if path.try_exists()? { Some(File::open(path).map_err(named)?) } else { None };
    let early = open.as_ref().map(|file| file.month).filter(|month| *month > now);
    let mut file = if let (Some(open), None) = (open, early) {
        Ok(open)
    } else if here.try_exists()? {
        File::open(&here)
    } else if files::list(path)?.is_empty() {
        return Err(named(Error::new(Fault::Other, "there is no ledger here: check the path")));
    } else {
        let taken = Lock::take(path).map_err(|error| match early {
            Some(month) if error.fault == Fault::Locked => early_open(month, now),
            _ => error,
        });
        lock = Some(taken.map_err(named)?);
        let file = if early.is_some() { &here } else { path };
        quarantine::create(path, file, now, calendar, amendment.who, amendment.at_us).map(|(file, _)| file)
    }
    .map_err(named)?;
    // After a crash of the writer, closing the file empties its log. Only this fact records that no row is missing.
    let has_all =
        lock.is_none() && lock::writer(path).is_none() && !check::lacks_log(&file).map_err(named)?;
    let whole_us = has_all.then_some(amendment.at_us);
    let new =
        write(&mut file, amendment, whole_us).map_err(named)?.ok_or_else(|| named(closed(file.month)))?;
    drop((file, lock));
    // The writer renames the file when its month ends; an amendment entered at that moment may be in no file.
    if before.is_some() && files::node(path).ok() != before {
        return Err(named(Error::new(
            Fault::Locked,
            "it was renamed meanwhile, because its month ended: try again",
        )));
    }
    Ok(new)
}

/// Returns the error for a proxy that still writes a month that has not begun, with the remedy.
fn early_open(month: Month, now: Month) -> Error {
    let (month, now) = (month::name(month), month::name(now));
    Error::new(
        Fault::Locked,
        format!(
            "the open file has the rows of {month}, but the current month is {now}: the clock was or is \
             wrong; correct it, restart the proxy that writes this ledger, and try again"
        ),
    )
}

/// Enters an amendment into a file. Returns `None` if the month is closed. `whole_us`: the time from which no row of
/// the file is in a log.
fn write(file: &mut File, amendment: &Amendment<'_>, whole_us: Option<i64>) -> Result<Option<u64>, Error> {
    let mut txn = Txn::begin(file)?;
    if txn.is_closed()? {
        return Ok(None);
    }
    if let Some(now_us) = whole_us {
        let alive_us = txn.number("alive_us")?.unwrap_or(now_us);
        txn.fact(check::WHOLE, ValueRef::Integer(alive_us.max(now_us)))?;
    }
    let act = txn.audit(amendment.at_us, amendment.what, amendment.who, amendment.detail)?;
    txn.rates(amendment.rates.iter().copied())?;
    let new = txn.corrections(act, amendment.corrections)?;
    txn.commit()?;
    Ok(Some(new))
}
