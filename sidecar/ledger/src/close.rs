//! Closing a month: its file does not change any more, and late rows and corrections are billed in the open month.
//!
//! Laws: a month is closed once, after those before it, and only if it verifies. A crash at any point leaves it open or
//! closed; closing it again completes the sign-off.

use std::fs;
use std::path::Path;

use rusqlite::types::ValueRef;

use crate::absent_months::AbsentMonths;
use crate::difference::Difference;
use crate::error::{Error, Fault};
use crate::file::{self, File};
use crate::month_files::MonthFiles;
use crate::progress::OnProgress;
use crate::sign_off::{SignOff, utc};
use crate::source::Month;
use crate::table::Digest;
use crate::txn::Txn;
use crate::verify::verify_with;
use crate::{Calendar, LedgerFolder, digest, files, month, restored};

/// Closes a month and signs it off. If the month is closed already, its sign-off is written again, unchanged.
///
/// # Errors
/// If the month is not over, has no file, does not verify, is in a file that another process writes, or follows a month
/// that is open or absent; or if the disk fails.
pub fn close(path: &Path, wanted: Month, who: &str, now_us: i64) -> Result<SignOff, Error> {
    close_with(path, wanted, who, now_us, &|_| ())
}

/// Closes as [`close`], and reports the progress.
///
/// # Errors
/// As [`close`].
pub fn close_with(
    path: &Path,
    wanted: Month,
    who: &str,
    now_us: i64,
    on_progress: &OnProgress<'_>,
) -> Result<SignOff, Error> {
    files::is_whole(path)?;
    let name = month::name(wanted);
    let ledger = LedgerFolder::open(path);
    ledger.require_unshipped(&format!("tokenmeter ledger close {name}"))?;
    let refused = |why: String| Error::new(Fault::Other, format!("{name} cannot be closed: {why}"));
    let calendar = ledger.calendar()?;
    if wanted >= calendar.month(now_us) {
        let over = utc(calendar.month_begin_us(wanted + 1));
        return Err(refused(format!(
            "it is not over; it can be closed from {over} on (now: {})",
            utc(now_us)
        )));
    }
    move_out(path, wanted, &calendar, who, now_us).map_err(|error| refused(error.message))?;
    let to = files::of_month(path, wanted);
    if !to.try_exists()? {
        return Err(refused(format!("there is no file of it beside {}", path.display())));
    }
    let previous = previous(path, wanted)?;
    // No proxy may have opened the month since it was restored from a copy, so the gap is entered here.
    restored::past_gap(&to, &calendar, now_us).map_err(|error| error.of(to.display()))?;
    for verdict in verify_with(path, Some(wanted), on_progress)? {
        let reasons = verdict.differences.iter().filter(|difference| prevents_closing(difference));
        let differences: Vec<_> = reasons.map(Difference::to_string).collect();
        if !differences.is_empty() {
            return Err(refused(format!(
                "{} does not verify: {}",
                verdict.path.display(),
                differences.join("; ")
            )));
        }
    }
    let named = |error: Error| error.of(to.display());
    if file::number(&File::open_read(&to).map_err(named)?.connection, "closed_us").map_err(named)?.is_none() {
        let mut file = File::open(&to).map_err(named)?;
        freeze(&mut file, wanted, previous.as_ref(), who, now_us).map_err(named)?;
        // If the proxy still has the file open, it empties the log itself.
        file.rest().map_err(named)?;
    }
    let sign_off = {
        let file = File::open_read(&to).map_err(named)?;
        SignOff::of(&file.connection, &to).map_err(named)?
    };
    let signed = files::sign_off(path, wanted);
    sign_off.write(&signed).map_err(|error| error.of(signed.display()))?;
    read_only(&to, true).map_err(named)?;
    Ok(sign_off)
}

/// Returns true if a month with a difference cannot be closed.
fn prevents_closing(difference: &Difference) -> bool {
    match difference {
        // An interrupted close left none: it is written again.
        Difference::SignOff { .. } => false,
        Difference::Contents(_)
        | Difference::Duplicate(_)
        | Difference::Absent(_)
        | Difference::Previous(_)
        | Difference::Digest { .. } => true,
    }
}

/// The error of a month that is still in the open file of a running proxy.
const NOT_MOVED: &str = "the proxy that writes this ledger has not moved the month out of the open file yet, which it \
                         does within seconds of the month's end if no other process has the file open: try again in \
                         a minute, and if that does not help, end the process that reads the file";

/// Moves the month out of the open file if no running proxy does.
fn move_out(path: &Path, wanted: Month, calendar: &Calendar, who: &str, now_us: i64) -> Result<(), Error> {
    if !path.try_exists()? || File::open_read(path)?.month != wanted {
        return Ok(());
    }
    let mut month_files = MonthFiles::new(path.to_owned(), who.to_owned(), calendar.clone());
    month_files.ready(now_us).map_err(|error| match error.fault {
        Fault::Locked => Error::new(Fault::Locked, NOT_MOVED),
        _ => error,
    })?;
    month_files.end(now_us)?;
    if path.try_exists()? && File::open_read(path)?.month == wanted {
        return Err(Error::new(
            Fault::Locked,
            "another process reads the open file, so the month cannot be moved out of it: try again later",
        ));
    }
    Ok(())
}

/// Returns the digest of the last month before `wanted`. Every earlier month must be closed and have its file: the
/// digest is part of the next month's, which would never verify again once an absent month is restored.
fn previous(path: &Path, wanted: Month) -> Result<Option<Digest>, Error> {
    let mut previous = None;
    let mut missing = AbsentMonths::new(path)?;
    for name in files::list(path)? {
        let named = |error: Error| error.of(name.display());
        let file = File::open_read(&name).map_err(named)?;
        missing.read(&file);
        if file.month >= wanted {
            continue;
        }
        let digest = file::bytes(&file.connection, "digest").map_err(named)?;
        let Some(digest) = digest.and_then(|digest| Digest::try_from(digest).ok()) else {
            return Err(Error::new(
                Fault::Other,
                format!("{} is not closed; close it first", month::name(file.month)),
            ));
        };
        previous = Some(digest);
    }
    if let Some((gone, why)) = missing.named().find(|(gone, _)| *gone < wanted) {
        return Err(Error::new(
            Fault::Other,
            format!(
                "the file of {} is gone ({why}): put {} back from a copy first",
                month::name(gone),
                files::of_month(path, gone).display()
            ),
        ));
    }
    Ok(previous)
}

/// Closes the month in one transaction: its digest, and the facts that say who closed it and when.
fn freeze(
    file: &mut File,
    month: Month,
    previous: Option<&Digest>,
    who: &str,
    now_us: i64,
) -> Result<(), Error> {
    let mut txn = Txn::begin(file)?;
    if txn.is_closed()? {
        return Ok(());
    }
    txn.audit(now_us, "closed", who, "{}")?;
    let digest = digest::month(txn.settled()?, month, previous)?;
    txn.fact("digest", ValueRef::Blob(&digest))?;
    txn.fact("previous", previous.map_or(ValueRef::Null, |previous| ValueRef::Blob(previous)))?;
    txn.fact("closed_by", ValueRef::Text(who.as_bytes()))?;
    txn.fact("closed_us", ValueRef::Integer(now_us))?;
    txn.fact("clean", ValueRef::Integer(1))?;
    txn.commit()
}

/// Forbids or allows writing to a file.
pub(crate) fn read_only(path: &Path, forbid: bool) -> Result<(), Error> {
    use std::os::unix::fs::PermissionsExt;
    let mode = fs::metadata(path)?.permissions().mode();
    let mode = if forbid { mode & !0o222 } else { mode | 0o200 };
    Ok(fs::set_permissions(path, fs::Permissions::from_mode(mode))?)
}

#[cfg(test)]
#[path = "close_tests.rs"]
mod tests;
