//! Quarantine: a damaged file and its log are renamed, and a new file, which records that, takes their place.
//!
//! Law: nothing is deleted, only the damaged file is renamed, and after a crash at any step the file in its place still
//! records it.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::absent_months::{self, AbsentMonths};
use crate::error::Error;
use crate::file::File;
use crate::source::{Gap, Month, Range};
use crate::txn::Txn;
use crate::{Calendar, files, month, time_zone};

/// The suffix of the names of quarantined files; the time at which the damage was found follows.
const DAMAGED: &str = ".corrupt-";

/// The suffixes of the files that SQLite has beside a file.
const BESIDE: [&str; 3] = ["-wal", "-shm", "-journal"];

/// Quarantines a damaged file and creates a new one in its place, with a gap. Returns the number of gaps.
pub(crate) fn replace(
    ledger: &Path,
    path: &Path,
    month: Month,
    reason: &Error,
    calendar: &Calendar,
    who: &str,
    now_us: i64,
) -> Result<u64, Error> {
    let to = move_away(path, now_us)?;
    tracing::error!(
        file = %path.display(), moved_to = %to.display(), reason = %reason,
        "a file of the ledger is damaged and quarantined; a new one takes its place"
    );
    let moved = Moved { name: name(&to), reason: Some(&reason.message) };
    begin(ledger, path, month, Some(moved), calendar, who, now_us).map(|(_, gaps)| gaps)
}

/// Creates the file of a month that has none. Returns the file and the number of its gaps.
///
/// The new file has a gap from its first moment if a quarantined file is beside it, because the process that
/// quarantined that may have got no further; and if other files refer to the absent one.
pub(crate) fn create(
    ledger: &Path,
    path: &Path,
    month: Month,
    calendar: &Calendar,
    who: &str,
    now_us: i64,
) -> Result<(File, u64), Error> {
    begin(ledger, path, month, None, calendar, who, now_us)
}

/// A quarantined file, and the reason if that is known.
struct Moved<'r> {
    name: String,
    reason: Option<&'r str>,
}

fn begin(
    ledger: &Path,
    path: &Path,
    month: Month,
    now_moved: Option<Moved<'_>>,
    calendar: &Calendar,
    who: &str,
    now_us: i64,
) -> Result<(File, u64), Error> {
    orphans(path, now_us)?;
    let mut moved: Vec<_> = now_moved.into_iter().collect();
    for name in quarantined_beside(path, month)? {
        if moved.iter().all(|known| known.name != name) {
            moved.push(Moved { name, reason: None });
        }
    }
    let why =
        if moved.is_empty() { AbsentMonths::of(ledger, month)?.map(|_| "gone") } else { Some("corrupt") };
    let whole = Range::of_month(calendar, month);
    // The contents of the lost file are not known, so the gap is the whole month.
    let until_us = now_us.min(whole.until_us).max(whole.since_us);
    let gap = why.map(|why| Gap::unknown(whole.since_us, until_us, why));
    let file = File::create(path, month, now_us, |file| {
        let mut txn = Txn::begin(file)?;
        absent_months::follow(&txn, ledger, month)?;
        time_zone::write(&txn, calendar)?;
        gap.iter().try_for_each(|gap| txn.gap(gap))?;
        for Moved { name, reason } in &moved {
            let detail = serde_json::json!({ "file": name, "reason": reason }).to_string();
            txn.audit(now_us, "quarantined", who, &detail)?;
        }
        txn.commit()
    })?;
    Ok((file, gap.map_or(0, |_| 1)))
}

/// Returns the names of the quarantined files that were at a path: all if the path is of one month for ever, else those
/// that were quarantined during that month.
fn quarantined_beside(path: &Path, month: Month) -> io::Result<Vec<String>> {
    let prefix = name(&files::beside(path, DAMAGED));
    let is_months =
        path.file_stem().is_some_and(|stem| stem.to_string_lossy().ends_with(&month::name(month)));
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(files::directory(path))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let Some(stamp) = name.strip_prefix(&prefix) else { continue };
        if is_months || stamp.get(..7).and_then(month::read) == Some(month) {
            let base = BESIDE.iter().find_map(|suffix| name.strip_suffix(suffix)).unwrap_or(&name);
            found.insert(base.to_owned());
        }
    }
    Ok(found.into_iter().collect())
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Quarantines the log of a file that does not exist any more: SQLite would apply it to the new file.
fn orphans(path: &Path, now_us: i64) -> Result<(), Error> {
    for suffix in BESIDE {
        if files::beside(path, suffix).try_exists()? {
            move_away(path, now_us)?;
            return Ok(());
        }
    }
    Ok(())
}

/// Renames a file and the files that SQLite keeps beside it, to names with the time at which the damage was found. The
/// log comes first: after a crash in between, the missing log is noticed when the file is opened, but a log without
/// its file could be applied to a new one.
pub(crate) fn move_away(path: &Path, now_us: i64) -> Result<PathBuf, Error> {
    let stamp = jiff::Timestamp::from_microsecond(now_us)
        .map_or_else(|_| now_us.to_string(), |at| at.strftime("%Y-%m-%dT%H-%M-%SZ").to_string());
    let mut to = files::beside(path, &format!("{DAMAGED}{stamp}"));
    for n in 2.. {
        if !to.try_exists()? && !files::beside(&to, "-wal").try_exists()? {
            break;
        }
        to = files::beside(path, &format!("{DAMAGED}{stamp}-{n}"));
    }
    for suffix in BESIDE.into_iter().chain([""]) {
        match fs::rename(files::beside(path, suffix), files::beside(&to, suffix)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
    }
    files::sync_directory(path)?;
    Ok(to)
}
