//! Corrections: what is added to charges after the fact, by a person, with an act that says who.
//!
//! Law: a row is never changed; what is corrected in a closed month is billed in the open one, and never in
//! a month that has not begun.

use std::path::Path;

use price::Rate;

use crate::aside;
use crate::entry::{Entry, closed};
use crate::failure::{Failure, Fault};
use crate::file::File;
use crate::files;
use crate::keeper::node;
use crate::lock::Lock;
use crate::month;
use crate::report::source::{Correction, Month};

/// What is done to a ledger by hand.
#[derive(Clone, Copy, Debug)]
pub struct Amendment<'a> {
    /// What was done, in a word: `repriced`, `price_book`, ….
    pub what: &'a str,
    /// Who did it.
    pub who: &'a str,
    /// What else there is to know, JSON.
    pub detail: &'a str,
    /// When, microseconds since 1970.
    pub at_us: i64,
    /// The rates that the corrections name.
    pub rates: &'a [&'a Rate],
    /// What is added; may be nothing, where only the act is to be kept.
    pub corrections: &'a [Correction],
}

/// Enters an amendment into the open month, all of it or nothing; also while the ledger is being written
/// by another process. How many corrections were new: one whose id is there already changes nothing.
///
/// # Errors
/// The open month cannot be written, or there is none and another process is about to make one.
pub fn amend(path: &Path, amendment: &Amendment<'_>) -> Result<u64, Failure> {
    let named = |failure: Failure| failure.of(path.display());
    let now = month::of(amendment.at_us);
    let here = files::of_month(path, now);
    let mut lock = None;
    let before = node(path).ok();
    // A file of a month to come was made while the clock was wrong: nothing is billed there.
    let open = if path.try_exists()? { Some(File::open(path).map_err(named)?) } else { None };
    let early = open.as_ref().map(|file| file.month).filter(|month| *month > now);
    let mut file = if let (Some(open), None) = (open, early) {
        Ok(open)
    } else if here.try_exists()? {
        File::open(&here)
    } else if files::list(path)?.is_empty() {
        return Err(named(Failure::new(Fault::Other, "there is no ledger here: is the path right?")));
    } else {
        let taken = Lock::take(path).map_err(|failure| match early {
            Some(month) if failure.fault == Fault::Locked => early_open(month, now),
            _ => failure,
        });
        lock = Some(taken.map_err(named)?);
        let file = if early.is_some() { &here } else { path };
        aside::create(path, file, now, amendment.who, amendment.at_us).map(|(file, _)| file)
    }
    .map_err(named)?;
    let new = write(&mut file, amendment).map_err(named)?;
    drop((file, lock));
    // The writer moves the file when its month ends; what was written into it just then may be in no file.
    if before.is_some() && node(path).ok() != before {
        return Err(named(Failure::new(Fault::Locked, "it was moved while this was written: do it again")));
    }
    Ok(new)
}

/// What to do where the proxy still writes a month that has not begun.
fn early_open(month: Month, now: Month) -> Failure {
    let (month, now) = (month::name(month), month::name(now));
    Failure::new(
        Fault::Locked,
        format!(
            "the open file is of {month}, and it is {now}: the clock was or is wrong; set it right, restart the proxy \
             that writes this ledger, and do it again"
        ),
    )
}

fn write(file: &mut File, amendment: &Amendment<'_>) -> Result<u64, Failure> {
    let month = file.month;
    let mut entry = Entry::begin(file)?;
    if entry.is_closed()? {
        return Err(closed(month));
    }
    let act = entry.act(amendment.at_us, amendment.what, amendment.who, amendment.detail)?;
    entry.rates(amendment.rates.iter().copied())?;
    let new = entry.corrections(act, amendment.corrections)?;
    entry.commit()?;
    Ok(new)
}
