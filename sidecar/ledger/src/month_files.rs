//! The files that the writer has open: the path of each month, the end of a month, and recovery from a damaged file.
//!
//! Laws: a crash at any instant leaves files that identify themselves by their facts. A file that other processes have
//! open is not renamed. After a fault every file is opened again before anything in it is trusted.

mod past_months;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rusqlite::types::ValueRef;

use crate::continuity::{CRASH, Continuity, ENTERED, UncleanEnd};
use crate::error::{Error, Fault};
use crate::file::{self, File};
use crate::lock::Lock;
use crate::loss_notes::{LossNote, LossNotes};
use crate::overflow::Loss;
use crate::redirects::{Redirect, Redirects};
use crate::ships_to::SHIPS_TO;
use crate::source::{DAY_US, Gap, Month};
use crate::status::StatusUpdate;
use crate::txn::{Txn, set_clean};
use crate::{Calendar, check, files, folder, month, quarantine, restored, time_zone};

/// The time for which the file of a past month stays open after its last row.
const IDLE_TIME: Duration = Duration::from_secs(30);

/// The interval of attempts to rename the file of a month that is over while other processes read it.
const MOVE_INTERVAL: Duration = Duration::from_secs(10);

/// The time for which other processes may read a month that is over before that is reported: a report takes seconds.
const READ_MAX: Duration = Duration::from_secs(60);

/// The furthest that the open month may begin in the future, microseconds: clocks are set back by less at times.
const AHEAD_MAX_US: i64 = DAY_US;

/// The length of a log beyond which it is checkpointed, bytes.
const LOG_MAX_BYTES: u64 = 4 << 20;

/// An open file, with its device and inode: a rename or removal by other means is noticed by them.
#[derive(Debug)]
struct Held {
    file: File,
    node: (u64, u64),
    used: Instant,
}

/// The writer's files.
#[derive(Debug, Default)]
pub(crate) struct MonthFiles {
    path: PathBuf,
    who: String,
    /// The ledger's calendar.
    pub calendar: Calendar,
    ships_to: Option<Arc<str>>,
    lock: Option<Lock>,
    notes: LossNotes,
    /// The time at which the first row ended that is in no file yet, microseconds since 1970.
    pub first_waiting_us: Option<i64>,
    /// The last heartbeat that is known to be in the open file, while that is not closed in order.
    alive_us: Option<i64>,
    files: HashMap<Month, Held>,
    /// The open month, while its file is open, and that file's path: `X.db`, or the month's own name while other
    /// processes still have the file of the month before open as `X.db`.
    open: Option<Month>,
    open_path: PathBuf,
    /// True after an I/O error: pages of the log that were acknowledged to SQLite may not be on the disk.
    io_failed: bool,
    redirects: Redirects,
    continuity: Continuity,
    tried_to_move: Option<Instant>,
    /// The time from which other processes had the open file open although its month is over.
    read_since: Option<Instant>,
    fault_message: Option<String>,
    /// Events since the status was last published.
    pub update: StatusUpdate,
}

impl MonthFiles {
    /// Returns the files of a ledger, none of them open. `calendar`: its calendar as known before they are opened.
    pub(crate) fn new(path: PathBuf, who: String, calendar: Calendar) -> Self {
        let notes = LossNotes::of(&path);
        Self { open_path: path.clone(), path, who, calendar, notes, ..Self::default() }
    }

    /// Returns the files with the central store to which their rows are shipped.
    pub(crate) fn shipping_to(self, ships_to: Option<Arc<str>>) -> Self {
        Self { ships_to, ..self }
    }

    /// The ledger's path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens or creates what the writer needs: the lock, and a file for the current month.
    pub(crate) fn ready(&mut self, now_us: i64) -> Result<(), Error> {
        if !self.lock.as_ref().is_some_and(Lock::holds) {
            // Without the lock another process may write these files, so none of them stays open.
            self.release();
            self.lock = None;
            let directory = files::directory(&self.path);
            if !directory.try_exists()? {
                // It may be a volume that is mounted later and would hide what is written here now.
                let message = format!("there is no directory {}: create or mount it", directory.display());
                return Err(Error::new(Fault::ReadOnly, message));
            }
            self.lock = match Lock::take(&self.path) {
                Ok(lock) => Some(lock),
                Err(error) => {
                    self.note_waiting(now_us, false);
                    return Err(error);
                }
            };
        }
        if let Some(open) = self.open {
            if self.is_over(open, now_us) {
                return self.turn(now_us);
            }
            self.fault_message = None;
            return Ok(());
        }
        self.note_waiting(now_us, true);
        match self.open_ledger(now_us) {
            Err(error) if error.fault == Fault::Corrupt => {
                self.quarantine_open(&error, now_us)?;
                self.open_ledger(now_us)
            }
            other => other,
        }
    }

    /// Returns the time until which every row is in a file.
    pub(crate) fn entered_us(&self, now_us: i64) -> i64 {
        self.first_waiting_us.map_or(now_us, |first_us| first_us.min(now_us))
    }

    /// Notes that rows may be in no file until one is open: a ledger that cannot be opened cannot record that.
    fn note_waiting(&mut self, now_us: i64, has_lock: bool) {
        self.notes.write(LossNote::Waiting { from_us: self.entered_us(now_us) }, has_lock);
    }

    /// Notes which rows this process lost at its end. Returns true if the next writer enters their gap.
    pub(crate) fn note_end(&mut self, lost: Loss) -> bool {
        if lost.span.rows == 0 && self.alive_us.is_none() {
            self.notes.settle(&[]);
            return true;
        }
        self.notes.write(LossNote::Ended { lost, alive_us: self.alive_us }, self.lock.is_some())
    }

    /// Notes that a heartbeat is in the file of a month.
    pub(crate) fn heartbeat_written(&mut self, month: Month, now_us: i64) {
        if self.open == Some(month) {
            self.alive_us = Some(now_us);
        }
    }

    /// Opens the file of the open month, or creates it, and records in it that this process writes it.
    fn open_ledger(&mut self, now_us: i64) -> Result<(), Error> {
        if self.continuity.is_first() {
            self.recover_past_months(now_us);
            folder::read_again(&mut self.calendar, &self.path, now_us)?;
        }
        let mut left = None;
        let path = self.path.clone();
        // The file that `ready` quarantines if it is damaged.
        self.open_path.clone_from(&path);
        if path.try_exists()? {
            let (file, disorder) = self.open_checked(&path)?;
            left = disorder;
            self.hold(file, true)?;
        } else {
            let now = self.calendar.month(now_us);
            let early = files::of_month(&path, now);
            if early.try_exists()? {
                // Its first rows came while the file of the month before could not be renamed.
                self.open_path.clone_from(&early);
                let (file, disorder) = self.open_checked(&early)?;
                // Renamed only if no other process has it open: SQLite finds the log by the name of the file.
                if file.settle()? {
                    file.rest()?;
                    files::rename(&early, &path)?;
                    return self.open_ledger(now_us);
                }
                left = disorder;
                self.hold(file, true)?;
            } else {
                let (file, gaps) = quarantine::create(&path, &path, now, &self.calendar, &self.who, now_us)?;
                self.update.gaps += gaps;
                self.hold(file, true)?;
            }
        }
        self.begin(left, now_us)?;
        let open = self.open;
        if open.is_some_and(|open| self.is_over(open, now_us)) { self.turn(now_us) } else { Ok(()) }
    }

    /// Opens a file for writing, checks it and checkpoints its log. Returns the last heartbeat of a writer that did
    /// not close it in order.
    fn open_checked(&self, path: &Path) -> Result<(File, Option<UncleanEnd>), Error> {
        if files::length(path) == 0 {
            return Err(Error::corrupt("it is empty"));
        }
        // Before the file is opened, which may write a log.
        let has_log = check::has_log(path);
        let file = File::open(path)?;
        let in_order = file::number(&file.connection, "clean")? == Some(1);
        let alive = file::number(&file.connection, "alive_us")?;
        let entered = file::number(&file.connection, ENTERED)?;
        let why = if restored::is_copy(&file, has_log)? { Gap::RESTORED } else { CRASH };
        check::before_writing(&file, in_order)?;
        self.checkpoint(&file)?;
        let left = alive.filter(|_| !in_order);
        let left = left.map(|alive_us| UncleanEnd { alive_us, entered_us: entered.unwrap_or(alive_us), why });
        Ok((file, left))
    }

    /// Checkpoints a file. After a failed fsync the log is trusted only once it is in the file; otherwise a reader
    /// with an old snapshot may delay that.
    fn checkpoint(&self, file: &File) -> Result<(), Error> {
        match file.checkpoint_all() {
            Err(error) if error.fault == Fault::Locked && !self.io_failed => Ok(()),
            other => other,
        }
    }

    /// Records in the open month, in one transaction, that this process writes it from now on, and the gaps before.
    fn begin(&mut self, left: Option<UncleanEnd>, now_us: i64) -> Result<(), Error> {
        let (who, ships_to) = (self.who.clone(), self.ships_to.clone());
        let entered_us = self.entered_us(now_us);
        let notes = self.notes.others();
        let held = self.open.and_then(|month| self.files.get_mut(&month));
        let file = &mut held.ok_or_else(not_open)?.file;
        let others: Vec<_> = notes.iter().map(|(_, note)| *note).collect();
        let gaps = self.continuity.gaps(file, &self.calendar, left, &others, now_us)?;
        let mut txn = Txn::begin(file)?;
        gaps.iter().try_for_each(|gap| txn.gap(gap))?;
        if self.continuity.is_first() {
            txn.audit(now_us, "opened", &who, "{}")?;
        }
        // In the transaction of the gap: after a crash the file has the mark or the gap.
        restored::unmark(&txn)?;
        time_zone::record(&mut txn, &self.calendar, &who, now_us)?;
        let ships_to = ships_to.as_ref().map_or(ValueRef::Null, |store| ValueRef::Text(store.as_bytes()));
        txn.fact(SHIPS_TO, ships_to)?;
        txn.fact("clean", ValueRef::Integer(0))?;
        heartbeat(&txn, now_us, entered_us)?;
        txn.commit()?;
        // Into the file itself: SQLite drops a log that is damaged after a crash, and with it this record. Then the
        // loss of the log's rows would leave no trace.
        match file.checkpoint_all() {
            Err(error) if error.fault != Fault::Locked => return Err(error),
            _ => {}
        }
        self.continuity.opened(file, now_us)?;
        self.alive_us = Some(now_us);
        self.notes.settle(&notes);
        self.io_failed = false;
        self.update.gaps += gaps.len() as u64;
        Ok(())
    }

    fn hold(&mut self, file: File, as_open: bool) -> Result<(), Error> {
        let node = files::node(&file.path)?;
        let month = file.month;
        file.keep_log()?;
        self.files.insert(month, Held { file, node, used: Instant::now() });
        if as_open {
            self.open = Some(month);
            self.open_path.clone_from(&self.files[&month].file.path);
        }
        Ok(())
    }

    /// Returns the open month's file.
    pub(crate) fn open_file(&mut self) -> Result<&mut File, Error> {
        let held = self.open.and_then(|month| self.files.get_mut(&month));
        held.map(|held| &mut held.file).ok_or_else(not_open)
    }

    /// Returns the open month.
    pub(crate) fn open_month(&self) -> Option<Month> {
        self.open
    }

    /// Returns the month whose file takes the items of a month: that month, or the open one if it is redirected.
    pub(crate) fn target(&self, month: Month) -> Month {
        if self.redirects.has(month) { self.open.unwrap_or(month) } else { month }
    }

    /// Tries months again that could not be written for some time. Called once for each batch, before it is entered.
    pub(crate) fn begin_batch(&mut self) {
        self.redirects.end_old(Instant::now());
    }

    /// Redirects the items of a month to the open one.
    pub(crate) fn redirect(&mut self, month: Month, why: Redirect) {
        self.redirects.add(month, why);
        self.files.remove(&month);
    }

    /// Returns the file of a month, opened or created if necessary.
    pub(crate) fn file(&mut self, month: Month, now_us: i64) -> Result<&mut File, Error> {
        if !self.files.contains_key(&month) {
            let path = files::of_month(&self.path, month);
            let file = if path.try_exists()? {
                let file = File::open(&path)?;
                if file.month != month {
                    return Err(Error::corrupt(format!(
                        "{} holds {}",
                        path.display(),
                        month::name(file.month)
                    )));
                }
                file
            } else {
                let (file, gaps) =
                    quarantine::create(&self.path, &path, month, &self.calendar, &self.who, now_us)?;
                self.update.gaps += gaps;
                file
            };
            self.checkpoint(&file)?;
            self.hold(file, false)?;
        }
        let held = self.files.get_mut(&month).ok_or_else(|| Error::new(Fault::Other, "no file"))?;
        held.used = Instant::now();
        Ok(&mut held.file)
    }

    /// Returns true if a month's file is not open here and says that the month is closed. Such a file is read-only.
    pub(crate) fn is_closed(&self, month: Month) -> Result<bool, Error> {
        let path = files::of_month(&self.path, month);
        if self.files.contains_key(&month) || !path.try_exists()? {
            return Ok(false);
        }
        Ok(file::number(&File::open_read(&path)?.connection, "closed_us")?.is_some())
    }

    /// Returns true if a month's file says that it is closed, also while it is open here, or cannot be read.
    fn is_closed_or_unreadable(&self, month: Month) -> Result<bool, Error> {
        if !files::of_month(&self.path, month).try_exists()? {
            return Ok(false);
        }
        // An unreadable file must not become the open one.
        let closed = self.open_past(month).and_then(|file| file::number(&file.connection, "closed_us"));
        Ok(closed.map_or(true, |closed| closed.is_some()))
    }

    /// Returns true if the path of an open file still leads to that file.
    pub(crate) fn is_there(&self, month: Month) -> bool {
        self.files
            .get(&month)
            .is_some_and(|held| files::node(&held.file.path).is_ok_and(|node| node == held.node))
    }

    /// Returns true if the writer should wait for a month that cannot be written.
    pub(crate) fn waits(&mut self, month: Month) -> bool {
        // The next attempt opens it again: nothing in it is trusted after a fault.
        self.files.remove(&month);
        self.redirects.waits(month)
    }

    /// Notes that a month was written.
    pub(crate) fn written(&mut self, month: Month) {
        self.redirects.written(month);
    }

    /// Opens the file of a past month for reading.
    pub(crate) fn open_past(&self, month: Month) -> Result<File, Error> {
        File::open_read(&files::of_month(&self.path, month))
    }

    /// Does what is due without a batch: closes idle files, writes a heartbeat, checkpoints.
    pub(crate) fn tick(&mut self, now_us: i64) -> Result<(), Error> {
        let idle: Vec<Month> = self
            .files
            .iter()
            .filter(|(month, held)| Some(**month) != self.open && held.used.elapsed() > IDLE_TIME)
            .map(|(month, _)| *month)
            .collect();
        // A file that is at rest has no log, so that it can be copied and read by itself.
        for month in idle {
            let rested = self.files.remove(&month).map(|held| held.file.rest());
            if let Some(Err(error)) = rested {
                self.past_month_failed(month, &error, now_us);
            }
        }
        // Before the heartbeat, which would succeed in a file that has no name any more.
        if self.open.is_some_and(|open| !self.is_there(open)) {
            return Err(gone(&self.open_path));
        }
        let entered_us = self.entered_us(now_us);
        let txn = Txn::begin(self.open_file()?)?;
        heartbeat(&txn, now_us, entered_us)?;
        txn.commit()?;
        self.alive_us = Some(now_us);
        self.checkpoint_long_logs(now_us)
    }

    /// Checkpoints long logs.
    pub(crate) fn checkpoint_long_logs(&mut self, now_us: i64) -> Result<(), Error> {
        let mut failed = Vec::new();
        for (month, held) in &self.files {
            // SQLite reuses the log's file from its beginning and does not shorten it, so a long one may be
            // checkpointed.
            if files::length(&files::beside(&held.file.path, "-wal")) <= LOG_MAX_BYTES {
                continue;
            }
            let done = held.file.log_bytes().and_then(|bytes| {
                // A reader with an old snapshot prevents a complete checkpoint; the next call tries again.
                if bytes > LOG_MAX_BYTES { held.file.checkpoint("PASSIVE").map(|_| ()) } else { Ok(()) }
            });
            failed.extend(done.err().map(|error| (*month, error)));
        }
        let mut of_open = Ok(());
        for (month, error) in failed {
            if Some(month) == self.open {
                of_open = Err(error);
            } else {
                self.past_month_failed(month, &error, now_us);
            }
        }
        of_open
    }

    /// Keeps a month that is over as the open one and reports it: the operator has to act, and rows are entered
    /// meanwhile.
    fn stay(&mut self, fault: Fault, message: String) {
        self.update.faults.push(fault);
        self.fault_message = Some(message);
    }

    /// Returns the fault that the operator has to correct although rows are entered.
    pub(crate) fn fault_message(&self) -> Option<&str> {
        self.fault_message.as_deref()
    }

    /// Returns true if a month is not the current one: it is past, or begins so late that the clock was wrong.
    fn is_over(&self, open: Month, now_us: i64) -> bool {
        open < self.calendar.month(now_us)
            || self.calendar.month_begin_us(open) > now_us.saturating_add(AHEAD_MAX_US)
    }

    /// Renames the file of a month that is over and opens the next; not while other processes have it open, because
    /// theirs would go on under the old name: SQLite finds the log by the name, and two logs would damage the file.
    fn turn(&mut self, now_us: i64) -> Result<(), Error> {
        if self.tried_to_move.is_some_and(|at| at.elapsed() < MOVE_INTERVAL) {
            return Ok(());
        }
        self.tried_to_move = Some(Instant::now());
        // Until the file is settled, each return leaves the month open, and its file takes rows meanwhile.
        let Some(open) = self.open else { return Ok(()) };
        let to = files::of_month(&self.path, open);
        let from = self.open_path.clone();
        if from != to && to.try_exists()? {
            self.stay(
                Fault::Other,
                format!(
                    "{} and {} hold the same month: move one of them away",
                    self.path.display(),
                    to.display()
                ),
            );
            return Ok(());
        }
        let now = self.calendar.month(now_us);
        // The clock was set back, or was ahead when the month was begun.
        if now < open && self.is_closed_or_unreadable(now)? {
            self.stay(
                Fault::Other,
                format!(
                    "{} is of {}, and {} is closed already: check the clock",
                    self.path.display(),
                    month::name(open),
                    month::name(now)
                ),
            );
            return Ok(());
        }
        self.fault_message = None;
        if !self.open_file()?.settle()? {
            if self.read_since.get_or_insert_with(Instant::now).elapsed() >= READ_MAX {
                let (path, over) = (from.display(), month::name(open));
                let message = format!(
                    "{path} has the rows of {over}, which is over, and cannot be renamed to {} while another \
                     program reads it: end that \
                     program or its transaction (`fuser {path}` names the process); until then rows of {} go to {}",
                    to.display(),
                    month::name(now),
                    files::of_month(&self.path, now).display()
                );
                self.stay(Fault::Locked, message);
            }
            return Ok(());
        }
        self.read_since = None;
        // This file is closed in order, so until the next one is open only the lock's file can record lost rows.
        self.note_waiting(now_us, true);
        set_clean(self.open_file()?, now_us)?;
        self.alive_us = None;
        if let Some(held) = self.files.remove(&open) {
            held.file.rest()?;
        }
        self.open = None;
        // Before the rename: if that fails, the next file is no replacement of this one, which was closed in order.
        self.continuity.forget_file();
        if from != to {
            files::rename(&from, &to)?;
        }
        tracing::info!(file = %to.display(), "the ledger's open month is over; its file was renamed");
        self.tried_to_move = None;
        if let Some(mut held) = self.files.remove(&self.calendar.month(now_us)) {
            // Rows of the new month came while the old file could not be renamed: their file becomes the open one.
            set_clean(&mut held.file, now_us)?;
            held.file.rest()?;
        }
        self.open_ledger(now_us)
    }

    /// Closes all files in order, so that the next writer enters no gap.
    pub(crate) fn end(&mut self, now_us: i64) -> Result<(), Error> {
        // A past month that fails is only reported, because the open one still has to be closed in order.
        let past: Vec<Month> = self.files.keys().copied().filter(|month| Some(*month) != self.open).collect();
        for month in past {
            let Some(mut held) = self.files.remove(&month) else { continue };
            if let Err(error) = set_clean(&mut held.file, now_us).and_then(|()| held.file.rest()) {
                self.past_month_failed(month, &error, now_us);
            }
        }
        if self.open.is_some() {
            set_clean(self.open_file()?, now_us)?;
            self.alive_us = None;
            if let Some(held) = self.open.and_then(|open| self.files.remove(&open)) {
                held.file.rest()?;
            }
        }
        self.open = None;
        self.lock = None;
        Ok(())
    }

    /// Closes all files after a fault, as they are.
    pub(crate) fn fail(&mut self, fault: Fault) {
        self.io_failed |= fault == Fault::Io;
        self.release();
    }

    /// Closes all files with their logs, as after a kill.
    fn release(&mut self) {
        self.files.clear();
        self.open = None;
    }

    /// Quarantines the damaged open file with its log, and creates a new one.
    pub(crate) fn quarantine_open(&mut self, error: &Error, now_us: i64) -> Result<(), Error> {
        let open = self.open;
        // Before the rename: an open connection would write into the quarantined file.
        self.release();
        let path = std::mem::replace(&mut self.open_path, self.path.clone());
        let named = path.file_name().and_then(|name| files::month_in(&self.path, name.to_str()?));
        self.continuity.forget_file();
        self.alive_us = None;
        self.replace(&path, named.or(open).unwrap_or(self.calendar.month(now_us)), error, now_us)
    }

    fn replace(&mut self, path: &Path, month: Month, error: &Error, now_us: i64) -> Result<(), Error> {
        self.update.faults.push(Fault::Corrupt);
        let gaps = quarantine::replace(&self.path, path, month, error, &self.calendar, &self.who, now_us)?;
        self.update.quarantined += 1;
        self.update.gaps += gaps;
        Ok(())
    }
}

/// Writes a heartbeat: the time, and that until which every row is in a file.
pub(crate) fn heartbeat(txn: &Txn<'_>, now_us: i64, entered_us: i64) -> Result<(), Error> {
    txn.fact("alive_us", ValueRef::Integer(now_us))?;
    txn.fact(ENTERED, ValueRef::Integer(entered_us))
}

/// Returns the error of a file that was removed or replaced while it was written.
pub(crate) fn gone(path: &Path) -> Error {
    Error::new(Fault::Io, format!("{} was removed or replaced while it was open", path.display()))
}

fn not_open() -> Error {
    Error::new(Fault::Other, "no month is open")
}

#[cfg(test)]
#[path = "month_files_tests.rs"]
mod tests;
