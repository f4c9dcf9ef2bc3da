//! Backup: a copy of each file of a ledger in another folder, also while a proxy writes the ledger.
//!
//! Laws: a copy gets its name once it is complete, on the disk and verified. It replaces an earlier copy only if it has
//! everything of it; a damaged copy is quarantined. A file that cannot be copied is an error of its own and stops no
//! other.

use std::fmt;
use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use rusqlite::backup::{Backup, StepResult};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags, OptionalExtension};

use crate::error::{Error, Fault};
use crate::file::{self, File};
use crate::lock::{self, Lock};
use crate::progress::{OnProgress, Progress};
use crate::source::Month;
use crate::table::{self, EXCHANGE};
use crate::txn::Txn;
use crate::{check, close, digest, files, folder, month, quarantine, restored, verify};

/// The number of attempts if a month ends during the copy and its file is renamed.
const COPY_ATTEMPTS: usize = 5;

/// One file of a backup and its outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MonthCopy {
    /// The copy, a file of the backup.
    pub path: PathBuf,
    /// Its month; `None` if the file could not be read.
    pub month: Option<Month>,
    /// The number of exchanges ever entered into it.
    pub rows: u64,
    /// The outcome.
    pub done: Result<CopyOutcome, Error>,
}

/// The outcome of backing up one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CopyOutcome {
    /// The file was copied, and the copy verified.
    Copied,
    /// The file was copied, and the damaged copy in its place was renamed to this.
    Replaced(PathBuf),
    /// The existing copy has everything of the file, and was verified.
    Unchanged,
    /// The ledger has no file of this month any more. The copy was verified and stays.
    Kept,
}

/// Copies every file of a ledger and every sign-off into a folder, under their own names.
///
/// # Errors
/// If there is no such ledger or folder, or the folder is the ledger's own or has another ledger. Nothing is written
/// then.
pub fn backup(path: &Path, folder: &Path, now_us: i64) -> Result<Vec<MonthCopy>, Error> {
    backup_with(path, folder, now_us, &|_| ())
}

/// Copies as [`backup`], and reports the progress of each file.
///
/// # Errors
/// As [`backup`].
pub fn backup_with(
    path: &Path,
    folder: &Path,
    now_us: i64,
    on_progress: &OnProgress<'_>,
) -> Result<Vec<MonthCopy>, Error> {
    let named = |error: io::Error| Error::from(error).of(path.display());
    let refused = |why: &str| Error::new(Fault::Other, why).of(folder.display());
    files::is_whole(path).map_err(named)?;
    if !folder.is_dir() {
        return Err(refused("there is no such folder: create or mount it"));
    }
    if folder.canonicalize().ok() == files::directory(path).canonicalize().ok() {
        return Err(refused("the ledger itself is in this folder: name another one"));
    }
    let Some(name) = path.file_name() else { return Err(refused("the ledger has no file name")) };
    let target = folder.join(name);
    if lock::writer(&target).is_none() {
        let names = files::list(path).map_err(named)?;
        refuse_other_ledger(&names, &target).map_err(|error| error.of(folder.display()))?;
    }
    let _one_at_a_time = Lock::take(&target).map_err(|error| error.of(target.display()))?;
    let mut tries = 0;
    loop {
        tries += 1;
        let names = files::list(path).map_err(named)?;
        if names.is_empty() {
            return Err(
                Error::new(Fault::Other, "there is no ledger here: check the path").of(path.display())
            );
        }
        // The open file's name may still have the copy of an earlier month, which a past month's copy moves away first.
        let mut copies: Vec<_> =
            names.iter().map(|from| copy(from, &target, folder, now_us, on_progress)).collect();
        if tries < COPY_ATTEMPTS && files::list(path).map_err(named)? != names {
            continue;
        }
        if copies.iter().all(|copy| copy.done.is_ok()) {
            remove_former_names(&names, &target).map_err(|error| error.of(folder.display()))?;
        }
        copies.extend(
            without_original(&copies, &target, on_progress)
                .map_err(|error| Error::from(error).of(folder.display()))?,
        );
        for month in files::signed_off(path).map_err(named)? {
            let (from, to) = (files::sign_off(path, month), files::sign_off(&target, month));
            if let Some(error) = sign_off(&from, &to).err() {
                copies.push(MonthCopy { path: to, month: Some(month), rows: 0, done: Err(error) });
            }
        }
        return Ok(copies);
    }
}

/// Removes copies under former names of files. A month that begins while another process reads the open file gets that
/// file's name later; the copy under the new name has everything of the former one.
fn remove_former_names(names: &[PathBuf], target: &Path) -> Result<(), Error> {
    let folder = files::directory(target);
    let copies: Vec<_> = names.iter().filter_map(|name| Some(folder.join(name.file_name()?))).collect();
    for former in files::list(target)?.iter().filter(|name| !copies.contains(name)) {
        let Ok(old) = File::open_read(former) else { continue };
        let id = file::bytes(&old.connection, "instance")?;
        for copy in &copies {
            let new = File::open_read(copy)?;
            if id.is_some() && file::bytes(&new.connection, "instance")? == id && lacks(&new, &old)?.is_none()
            {
                fs::remove_file(former)?;
                break;
            }
        }
    }
    Ok(())
}

/// The identity of a file, by its facts.
struct Identity {
    file: File,
    instance: Vec<u8>,
    /// True for a copy that no proxy has written to.
    is_copy: bool,
    is_closed: bool,
}

impl Identity {
    /// Returns the identities of the files that can be read.
    fn each(names: &[PathBuf]) -> Result<Vec<Self>, Error> {
        let mut found = Vec::new();
        for file in names.iter().filter_map(|name| File::open_read(name).ok()) {
            if let Some(instance) = file::bytes(&file.connection, "instance")? {
                let is_copy = restored::copied_us(&file)?.is_some();
                let is_closed = file::number(&file.connection, "closed_us")?.is_some();
                found.push(Self { file, instance, is_copy, is_closed });
            }
        }
        Ok(found)
    }

    fn is_same_file(&self, other: &Self) -> bool {
        self.instance == other.instance
    }

    fn is_same_month(&self, other: &Self) -> bool {
        self.file.month == other.file.month
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (path, month) = (self.file.path.display(), month::name(self.file.month));
        write!(f, "{path} is of {month} and has the id {}", digest::hex(&self.instance))
    }
}

/// Refuses a folder that has files of another ledger.
///
/// A folder with a copy of a file of this ledger is this ledger's, unless a proxy wrote to the copy. A ledger whose
/// earlier files are all lost has no file in common with its copies: then the folder is accepted if it has only marked
/// copies and closed files, which have no mark, and all of other months.
fn refuse_other_ledger(names: &[PathBuf], target: &Path) -> Result<(), Error> {
    let (own, there) = (Identity::each(names)?, Identity::each(&files::list(target)?)?);
    let is_written_there = |copy: &&Identity| {
        let original = own.iter().find(|own| own.is_same_file(copy));
        !copy.is_copy
            && !copy.is_closed
            && original.is_some_and(|own| matches!(lacks(&own.file, &copy.file), Ok(Some(_))))
    };
    let foreign = if there.iter().any(|copy| own.iter().any(|own| own.is_same_file(copy))) {
        there.iter().find(is_written_there)
    } else if there.iter().all(|copy| copy.is_copy || copy.is_closed) && there.iter().any(|copy| copy.is_copy)
    {
        there.iter().find(|copy| own.iter().any(|own| own.is_same_month(copy)))
    } else {
        there.first()
    };
    let (Some(foreign), Some(own)) = (foreign, own.last()) else { return Ok(()) };
    let message = format!(
        "the folder has files of another ledger: {foreign}, but in the ledger {own}; nothing was copied: give \
         each ledger a folder of its own"
    );
    Err(Error::new(Fault::Other, message))
}

/// Returns the verified copies of months of which the ledger has no file any more.
fn without_original(
    copies: &[MonthCopy],
    target: &Path,
    on_progress: &OnProgress<'_>,
) -> io::Result<Vec<MonthCopy>> {
    let names = files::list(target)?;
    let others = names.into_iter().filter(|path| copies.iter().all(|copy| copy.path != *path));
    let found = others.filter_map(|path| {
        let mut kept = MonthCopy { path, month: None, rows: 0, done: Ok(CopyOutcome::Kept) };
        let verified = File::open_read(&kept.path).and_then(|file| {
            kept.month = Some(file.month);
            if copies.iter().any(|copy| copy.month == kept.month) {
                return Ok(Vec::new());
            }
            kept.rows = rows(&file)?;
            Ok(verify::contents(&file, on_progress)?.differences)
        });
        let damage = match verified {
            Ok(differences) => differences.join("; "),
            Err(error) => error.message,
        };
        if !damage.is_empty() {
            let message =
                format!("the ledger no longer has a file of this month, and its copy is damaged: {damage}");
            kept.done = Err(Error::corrupt(message).of(kept.path.display()));
        }
        // A copy of a month that was copied now is one under a former name.
        copies.iter().all(|copy| copy.month.is_none() || copy.month != kept.month).then_some(kept)
    });
    Ok(found.collect())
}

fn rows(file: &File) -> Result<u64, Error> {
    Ok(u64::try_from(file::table_digest(&file.connection, &EXCHANGE)?.entered).unwrap_or(0))
}

/// Copies one file of the ledger whose backup is at `target`.
fn copy(from: &Path, target: &Path, folder: &Path, now_us: i64, on_progress: &OnProgress<'_>) -> MonthCopy {
    let to = folder.join(from.file_name().unwrap_or_default());
    let mut copy = MonthCopy { path: to.clone(), month: None, rows: 0, done: Ok(CopyOutcome::Unchanged) };
    copy.done = (|| {
        let source = folder::open(from)?;
        copy.month = Some(source.month);
        copy.rows = rows(&source)?;
        if check::lacks_log(&source)? {
            return Err(Error::corrupt(check::LACKS_LOG).of(from.display()));
        }
        let there = There::find(&to, &source, on_progress)?;
        if matches!(there, There::Unchanged) {
            return Ok(CopyOutcome::Unchanged);
        }
        let new = files::beside(&to, ".new");
        let made = write(&source, &new, now_us, on_progress).and_then(|()| {
            let done = match there {
                There::OfMonth(there) => {
                    move_away(there, target)?;
                    CopyOutcome::Copied
                }
                There::Damaged => CopyOutcome::Replaced(quarantine::move_away(&to, now_us)?),
                There::Nothing | There::Unchanged | There::Outdated => CopyOutcome::Copied,
            };
            files::rename(&new, &to)?;
            Ok(done)
        });
        made.inspect_err(|_| _ = fs::remove_file(&new))
    })();
    copy
}

/// The copy that an earlier backup left where a file is to be copied.
enum There {
    Nothing,
    /// The copy has everything of the file.
    Unchanged,
    /// The file has everything of the copy.
    Outdated,
    /// The copy is of an earlier month, when that was the open one.
    OfMonth(File),
    /// The copy is damaged, so that it cannot be compared. It is quarantined and not deleted: it may have the only rows
    /// left of what the ledger lost.
    Damaged,
}

impl There {
    /// Compares what is at `to` with the file to be copied.
    ///
    /// # Errors
    /// If the copy has something that the file lacks, or cannot be read for a reason other than damage.
    fn find(to: &Path, source: &File, on_progress: &OnProgress<'_>) -> Result<Self, Error> {
        if !to.try_exists()? {
            return Ok(Self::Nothing);
        }
        match Self::compare(to, source, on_progress) {
            Err(error) if error.fault == Fault::Corrupt => Ok(Self::Damaged),
            found => found.map_err(|error| error.of(to.display())),
        }
    }

    fn compare(to: &Path, source: &File, on_progress: &OnProgress<'_>) -> Result<Self, Error> {
        let there = File::open_read(to)?;
        if check::has_log(to) {
            return Err(kept("another program wrote it and left a log beside it"));
        }
        if there.month != source.month {
            return Ok(Self::OfMonth(there));
        }
        if let Some(lacks) = lacks(source, &there)? {
            return Err(kept(&lacks));
        }
        if !lacks_nothing_of(&there, source)? || check::lacks_log(&there)? {
            return Ok(Self::Outdated);
        }
        let is_good = verify::contents(&there, on_progress)?.differences.is_empty();
        Ok(if is_good { Self::Unchanged } else { Self::Damaged })
    }
}

/// Writes a complete copy to the disk and verifies it.
fn write(source: &File, new: &Path, now_us: i64, on_progress: &OnProgress<'_>) -> Result<(), Error> {
    match fs::remove_file(new) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    files::make(new)?;
    let mut connection = Connection::open_with_flags(
        new,
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    on_progress(Progress { step: "copying", month: Some(source.month), done_rows: 0, total_rows: None });
    // The source is in a transaction, so all pages are of one snapshot.
    match Backup::new(&source.connection, &mut connection)?.step(-1)? {
        StepResult::Done => {}
        _ => return Err(Error::new(Fault::Locked, "the file is locked by another process: try again")),
    }
    let mode: String = connection.query_row("PRAGMA journal_mode = DELETE", [], |row| row.get(0))?;
    connection.close().map_err(|(_, error)| error)?;
    if mode != "delete" {
        return Err(Error::new(Fault::Locked, "another process opened the copy: try again"));
    }
    let is_closed = file::number(&source.connection, "closed_us")?.is_some();
    if !is_closed {
        // The copy includes the rows in the log of the original, so it lacks none. But the writer that uses it after a
        // restore must enter a gap, because the original may have later rows: hence the mark, and "not clean".
        let mut file = File::open(new)?;
        let txn = Txn::begin(&mut file)?;
        let alive_us = txn.number("alive_us")?.unwrap_or(now_us);
        txn.fact(check::WHOLE, ValueRef::Integer(alive_us.max(now_us)))?;
        restored::mark(&txn, now_us)?;
        txn.fact("clean", ValueRef::Integer(0))?;
        txn.commit()?;
        file.rest()?;
    }
    close::read_only(new, is_closed)?;
    fs::File::open(new)?.sync_all()?;
    let differences = verify::contents(&File::open_read(new)?, on_progress)?.differences;
    if !differences.is_empty() {
        let message = format!("it does not verify and was not copied: {}", differences.join("; "));
        return Err(Error::corrupt(message).of(source.path.display()));
    }
    Ok(())
}

/// Renames the copy of a month that is not the open one any more, unless the month's own name has a copy with
/// everything of it.
fn move_away(there: File, target: &Path) -> Result<(), Error> {
    let to = files::of_month(target, there.month);
    if !to.try_exists()? {
        let from = there.path.clone();
        drop(there);
        return Ok(files::rename(&from, &to)?);
    }
    let compared = File::open_read(&to).and_then(|to| lacks(&to, &there));
    let refused = |why: &str| kept(&format!("{}: {why}", to.display())).of(there.path.display());
    match compared.map_err(|error| refused(&error.message))? {
        Some(lacks) => Err(refused(&lacks)),
        None => Ok(()),
    }
}

/// Returns the first difference by which a copy has more than its file; `None` if the file has all of it.
fn lacks(file: &File, copy: &File) -> Result<Option<String>, Error> {
    let fact = |of: &File, name: &str| file::bytes(&of.connection, name);
    if fact(file, "instance")? != fact(copy, "instance")? {
        return Ok(Some("it is the copy of another file of the same month".to_owned()));
    }
    let closed = fact(copy, "digest")?;
    if closed.is_some() && closed != fact(file, "digest")? {
        return Ok(Some(
            "its month is closed, and in the ledger it is open or closed with another digest".to_owned(),
        ));
    }
    for table in table::digested_tables().into_iter().filter(|table| table.is_numbered()) {
        let (has, had) =
            (file::table_digest(&file.connection, table)?, file::table_digest(&copy.connection, table)?);
        if had.entered > has.entered {
            return Ok(Some(format!(
                "it has {} rows of the table {}, and the ledger has {}",
                had.entered, table.name, has.entered
            )));
        }
        let last = |of: &File| -> Result<Option<i64>, Error> {
            let sql = format!("SELECT mark FROM {} WHERE seq = ?", table.name);
            Ok(of.connection.query_row(&sql, [had.entered], |row| row.get(0)).optional()?)
        };
        // A row that retention deleted from either cannot be compared.
        if let (Some(here), Some(there)) = (last(file)?, last(copy)?)
            && here != there
        {
            return Ok(Some(format!("its row {} of the table {} differs", had.entered, table.name)));
        }
    }
    Ok(None)
}

/// Returns true if a copy has every row and every daily total of a file.
fn lacks_nothing_of(copy: &File, file: &File) -> Result<bool, Error> {
    for table in table::digested_tables() {
        if file::table_digest(&copy.connection, table)? != file::table_digest(&file.connection, table)?
            || file::compacted(&copy.connection, table)? != file::compacted(&file.connection, table)?
        {
            return Ok(false);
        }
    }
    Ok(file::number(&copy.connection, "closed_us")? == file::number(&file.connection, "closed_us")?)
}

fn kept(why: &str) -> Error {
    let message = format!("the existing copy was not replaced: {why}; move it away and run the backup again");
    Error::new(Fault::Other, message)
}

fn sign_off(from: &Path, to: &Path) -> Result<(), Error> {
    let document = fs::read(from)?;
    match fs::read(to) {
        Ok(there) if there == document => return Ok(()),
        Ok(_) => return Err(kept("it is another sign-off of the same month").of(to.display())),
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(Error::from(error).of(to.display())),
    }
    let new = files::beside(to, ".new");
    match fs::remove_file(&new) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    let mut file = files::make(&new)?;
    file.write_all(&document)?;
    close::read_only(&new, true)?;
    file.sync_all()?;
    Ok(files::rename(&new, to)?)
}

#[cfg(test)]
#[path = "backup_tests.rs"]
mod tests;
