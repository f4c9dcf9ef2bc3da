//! What becomes of a damaged file: it is moved away with what belongs to it, and a new one that says so
//! takes its place.
//!
//! Law: nothing is deleted, and only the file that is damaged is moved.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::entry::Entry;
use crate::failure::Failure;
use crate::file::File;
use crate::report::source::{Gap, Month};
use crate::{files, month};

/// Moves a damaged file away and makes a new one of a month in its place, with the gap and the act.
pub(crate) fn replace(
    path: &Path,
    month: Month,
    reason: &Failure,
    who: &str,
    now_us: i64,
) -> Result<(), Failure> {
    let to = aside(path, now_us)?;
    tracing::error!(
        file = %path.display(), moved_to = %to.display(), reason = %reason,
        "a file of the ledger is damaged; a new one is begun"
    );
    orphans(path, now_us)?;
    let mut file = File::create(path, month, now_us)?;
    let mut entry = Entry::begin(&mut file)?;
    entry.gap(&Gap {
        // What the file held can only be guessed by its name: a month.
        from_us: month::begin_us(month),
        until_us: now_us.min(month::begin_us(month + 1)).max(month::begin_us(month)),
        why: "corrupt".into(),
        lost_rows: None,
        totals_kept: false,
    })?;
    let name = to.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let detail = serde_json::json!({ "file": name, "reason": reason.said }).to_string();
    entry.act(now_us, "quarantined", who, &detail)?;
    entry.commit()
}

/// Moves away what belongs to a file that is not there: a log of another file must not be taken for
/// the new one's.
pub(crate) fn orphans(path: &Path, now_us: i64) -> Result<(), Failure> {
    for suffix in ["-wal", "-shm", "-journal"] {
        if files::beside(path, suffix).try_exists()? {
            aside(path, now_us)?;
            return Ok(());
        }
    }
    Ok(())
}

/// Gives a file and what belongs to it names that say when it was found damaged. The log goes first:
/// without its file it is nothing, and the file without its log would be an older state of itself.
fn aside(path: &Path, now_us: i64) -> Result<PathBuf, Failure> {
    let stamp = jiff::Timestamp::from_microsecond(now_us)
        .map_or_else(|_| now_us.to_string(), |at| at.strftime("%Y-%m-%dT%H-%M-%SZ").to_string());
    let mut to = files::beside(path, &format!(".corrupt-{stamp}"));
    for n in 2.. {
        if !to.try_exists()? && !files::beside(&to, "-wal").try_exists()? {
            break;
        }
        to = files::beside(path, &format!(".corrupt-{stamp}-{n}"));
    }
    for suffix in ["-wal", "-shm", "-journal", ""] {
        match fs::rename(files::beside(path, suffix), files::beside(&to, suffix)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
    }
    files::sync_directory(path)?;
    Ok(to)
}
