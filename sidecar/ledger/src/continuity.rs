//! Continuity: compares the file that is opened with the one that this process wrote before, and finds the gaps
//! between.
//!
//! Law: rows that were acknowledged into a file that was removed or replaced, and rows for which no file could be
//! opened, leave a gap.

use crate::Calendar;
use crate::error::Error;
use crate::file::{self, File};
use crate::lock::Lock;
use crate::source::Gap;

/// The end of a writer that did not close its file: its last heartbeat, and the reason of the gap that follows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UncleanEnd {
    pub alive_us: i64,
    pub why: &'static str,
}

/// The history of the writer's open file.
#[derive(Debug, Default)]
pub(crate) struct Continuity {
    /// The file that this process writes, or wrote until a fault. `None` after a file was closed in order or
    /// quarantined: then any file may follow without a gap from here.
    written: Option<Written>,
    /// True once a file was opened.
    began: bool,
    /// The time from which rows of earlier processes may be in no file, microseconds since 1970.
    pending_gap_us: Option<i64>,
}

/// A file, by the id among its facts and not by its path, which another file can have.
#[derive(Debug)]
struct Written {
    instance: Vec<u8>,
    /// The time at which this process opened it first.
    since_us: i64,
}

impl Continuity {
    /// Returns true until the first file is opened.
    pub(crate) fn is_first(&self) -> bool {
        !self.began
    }

    /// Takes over the pending gap of earlier writers, and notes one of this process: until it opens a file, its rows
    /// are in none.
    pub(crate) fn inherit(&mut self, lock: &mut Lock, now_us: i64) {
        self.pending_gap_us = self.pending_gap_us.or(lock.pending_gap_us());
        lock.note_pending_gap(now_us);
    }

    /// Forgets the file, which was closed in order or has its gap: another one may follow without a gap.
    pub(crate) fn forget_file(&mut self) {
        self.written = None;
    }

    /// Returns the gaps for the file that is opened now. `left`: its last writer did not close it.
    pub(crate) fn gaps(
        &self,
        file: &File,
        calendar: &Calendar,
        left: Option<UncleanEnd>,
        now_us: i64,
    ) -> Result<Vec<Gap>, Error> {
        let replaced_us = self.replaced_us(file, calendar)?;
        if replaced_us.is_some() {
            tracing::error!(
                file = %file.path.display(),
                "the ledger's file was replaced while it was in use: the rows entered until now are in the former file, \
                 if that still exists; a gap records it"
            );
        }
        // Rows that this process could not enter are still queued, or in overflow totals with a gap of their own. Only
        // rows of other processes, or in another file, need a gap here.
        let of_others = self.is_first() || replaced_us.is_some();
        let left = left.map(|left| (left.why, left.alive_us));
        let pending = self.pending_gap_us.map(|pending_gap_us| ("crash", pending_gap_us));
        let replaced = replaced_us.map(|replaced_us| ("replaced", replaced_us));
        let since = [left, pending].map(|since| since.filter(|_| of_others)).into_iter().chain([replaced]);
        let gaps = since.flatten().map(|(why, since_us)| Gap {
            from_us: since_us.min(now_us),
            until_us: now_us,
            why: why.into(),
            lost_rows: None,
            totals_kept: false,
        });
        Ok(gaps.collect())
    }

    /// Returns the time from which rows were entered into another file; `None` if this is the file written before.
    fn replaced_us(&self, file: &File, calendar: &Calendar) -> Result<Option<i64>, Error> {
        let Some(written) = &self.written else { return Ok(None) };
        if file::bytes(&file.connection, "instance")?.as_ref() == Some(&written.instance) {
            return Ok(None);
        }
        // A file created since then lacks the whole month; an older one may be a restored copy with its earlier rows.
        let is_new = file::number(&file.connection, "created_us")?.is_some_and(|us| us >= written.since_us);
        Ok(Some(if is_new {
            calendar.month_begin_us(file.month).min(written.since_us)
        } else {
            written.since_us
        }))
    }

    /// Notes that the file is open and has its gaps.
    pub(crate) fn opened(&mut self, file: &File, lock: Option<&mut Lock>, now_us: i64) -> Result<(), Error> {
        let instance = file::bytes(&file.connection, "instance")?.unwrap_or_default();
        if self.written.as_ref().is_none_or(|written| written.instance != instance) {
            self.written = Some(Written { instance, since_us: now_us });
        }
        self.began = true;
        self.pending_gap_us = None;
        lock.map(Lock::settle);
        Ok(())
    }

    /// Removes the pending gap of this process at its end, if every row is in a file; one of earlier writers stays.
    pub(crate) fn settle_pending_gap(&self, lock: Option<&mut Lock>) {
        if self.pending_gap_us.is_none() {
            lock.map(Lock::settle);
        }
    }
}
