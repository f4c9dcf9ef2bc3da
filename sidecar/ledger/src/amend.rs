//! Corrections: what is added to charges after the fact, by a person, with an act that says who.
//!
//! Law: a row is never changed; what is corrected is billed in its own month, or, if that is closed, in the
//! open one, and never in a month that has not begun.

use std::path::Path;

use price::Rate;
use rusqlite::types::ValueRef;

use crate::error::{Error, Fault};
use crate::file::{self, File};
use crate::files;
use crate::lock::Lock;
use crate::month;
use crate::quarantine;
use crate::source::{Correction, Month};
use crate::table::CORRECTION;
use crate::txn::{Txn, closed};
use crate::{check, overview};

/// A manual change of a ledger.
#[derive(Clone, Copy, Debug)]
pub struct Amendment<'a> {
    /// The action, in a word: `repriced`, `price_book`, ….
    pub what: &'a str,
    /// The actor.
    pub who: &'a str,
    /// Details, JSON.
    pub detail: &'a str,
    /// When, microseconds since 1970.
    pub at_us: i64,
    /// The rates that the corrections name.
    pub rates: &'a [&'a Rate],
    /// The corrections to add; none where only the event is to be kept. Those of several months at once are all billed
    /// in the open one.
    pub corrections: &'a [Correction],
}

/// Enters an amendment into the month of its corrections, or else into the open one, all of it or nothing;
/// also while the ledger is being written by another process. How many corrections were new: one whose id is
/// there already changes nothing.
///
/// # Errors
/// That month cannot be written, or none is open and another process is about to make one.
pub fn amend(path: &Path, amendment: &Amendment<'_>) -> Result<u64, Error> {
    let Some(month) = own_month(amendment) else { return into_open(path, amendment) };
    let past = files::of_month(path, month);
    if !past.try_exists()? {
        return into_open(path, amendment);
    }
    let named = |error: Error| error.of(past.display());
    if let Some(new) = into_past(&past, amendment).map_err(named)? {
        return Ok(new);
    }
    // Closed since another process entered the same ones, it has them.
    let corrections = not_in(&past, amendment.corrections).map_err(named)?;
    into_open(path, &Amendment { corrections: &corrections, ..*amendment })
}

/// The month that all corrections are of, if it has begun.
fn own_month(amendment: &Amendment<'_>) -> Option<Month> {
    let mut months = amendment.corrections.iter().map(|correction| month::of(correction.ended_us));
    let first = months.next()?;
    (first <= month::of(amendment.at_us) && months.all(|month| month == first)).then_some(first)
}

/// Enters it into the file of a past month, unless that is closed.
fn into_past(past: &Path, amendment: &Amendment<'_>) -> Result<Option<u64>, Error> {
    // One that is closed may not even be opened to be written.
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

fn into_open(path: &Path, amendment: &Amendment<'_>) -> Result<u64, Error> {
    let named = |error: Error| error.of(path.display());
    let now = month::of(amendment.at_us);
    let here = files::of_month(path, now);
    let mut lock = None;
    let before = files::node(path).ok();
    // A file of a month to come was made while the clock was wrong: nothing is billed there.
    let open = if path.try_exists()? { Some(File::open(path).map_err(named)?) } else { None };
    let early = open.as_ref().map(|file| file.month).filter(|month| *month > now);
    let mut file = if let (Some(open), None) = (open, early) {
        Ok(open)
    } else if here.try_exists()? {
        File::open(&here)
    } else if files::list(path)?.is_empty() {
        return Err(named(Error::new(Fault::Other, "there is no ledger here: is the path right?")));
    } else {
        let taken = Lock::take(path).map_err(|error| match early {
            Some(month) if error.fault == Fault::Locked => early_open(month, now),
            _ => error,
        });
        lock = Some(taken.map_err(named)?);
        let file = if early.is_some() { &here } else { path };
        quarantine::create(path, file, now, amendment.who, amendment.at_us).map(|(file, _)| file)
    }
    .map_err(named)?;
    // UncleanEnd by a crash: its log goes into it when it is let go, and nothing else would say so.
    let has_all =
        lock.is_none() && overview::writer(path).is_none() && !check::lacks_log(&file).map_err(named)?;
    let whole_us = has_all.then_some(amendment.at_us);
    let new =
        write(&mut file, amendment, whole_us).map_err(named)?.ok_or_else(|| named(closed(file.month)))?;
    drop((file, lock));
    // The writer moves the file when its month ends; what was written into it just then may be in no file.
    if before.is_some() && files::node(path).ok() != before {
        return Err(named(Error::new(Fault::Locked, "it was moved while this was written: do it again")));
    }
    Ok(new)
}

/// The remedy where the proxy still writes a month that has not begun.
fn early_open(month: Month, now: Month) -> Error {
    let (month, now) = (month::name(month), month::name(now));
    Error::new(
        Fault::Locked,
        format!(
            "the open file is of {month}, and it is {now}: the clock was or is wrong; set it right, restart the proxy \
             that writes this ledger, and do it again"
        ),
    )
}

/// Enters it into a file, unless its month is closed. `whole_us`: nothing of the file will be in a log afterwards.
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
