//! Continuity: whether the file that is opened is the one that this process wrote before, and the gap in it if not.
//!
//! Law: rows that were acknowledged into a file that is not there any more, and rows that no file could be
//! opened for, leave a gap.

use crate::error::Error;
use crate::file::{self, File};
use crate::lock::Lock;
use crate::month;
use crate::source::Gap;

/// The last sign of life in a file that was left without order, and the reason of the gap that follows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UncleanEnd {
    pub alive_us: i64,
    pub why: &'static str,
}

/// The file that this process wrote last, if that was not put away in order, and what was before it.
#[derive(Debug, Default)]
pub(crate) struct Continuity {
    written: Option<Written>,
    /// Some file was opened.
    began: bool,
    /// Since when rows of another process may be in no file.
    pending_gap_us: Option<i64>,
}

#[derive(Debug)]
struct Written {
    instance: Vec<u8>,
    since_us: i64,
}

impl Continuity {
    /// Returns true if no file was opened yet.
    pub(crate) fn is_first(&self) -> bool {
        !self.began
    }

    /// Takes over the pending gap of the writers before, and notes one of our own.
    pub(crate) fn inherit(&mut self, lock: &mut Lock, now_us: i64) {
        self.pending_gap_us = self.pending_gap_us.or(lock.pending_gap_us());
        lock.note_pending_gap(now_us);
    }

    /// The file was put away, or what has to be said of it is said: any may follow.
    pub(crate) fn forget_file(&mut self) {
        self.written = None;
    }

    /// Returns the gaps for a file that is opened now, and that its last writer may have left without order.
    pub(crate) fn gaps(&self, file: &File, left: Option<UncleanEnd>, now_us: i64) -> Result<Vec<Gap>, Error> {
        let replaced_us = self.replaced_us(file)?;
        if replaced_us.is_some() {
            tracing::error!(
                file = %file.path.display(),
                "the ledger's file is another one than before: what was entered until now is in that, if it is \
                 anywhere; a gap says so"
            );
        }
        // After a fault of our own the overflow totals have a gap; rows of another process have none but this.
        let of_others = self.is_first() || replaced_us.is_some();
        let left = left.map(|left| (left.why, left.alive_us));
        let owed = self.pending_gap_us.map(|pending_gap_us| ("crash", pending_gap_us));
        let replaced = replaced_us.map(|replaced_us| ("replaced", replaced_us));
        let since = [left, owed].map(|since| since.filter(|_| of_others)).into_iter().chain([replaced]);
        let gaps = since.flatten().map(|(why, since_us)| Gap {
            from_us: since_us.min(now_us),
            until_us: now_us,
            why: why.into(),
            lost_rows: None,
            totals_kept: false,
        });
        Ok(gaps.collect())
    }

    /// Since when rows were entered into another file than this.
    fn replaced_us(&self, file: &File) -> Result<Option<i64>, Error> {
        let Some(written) = &self.written else { return Ok(None) };
        if file::bytes(&file.connection, "instance")?.as_ref() == Some(&written.instance) {
            return Ok(None);
        }
        // A new file has nothing of the month; of another it is not known what it has.
        let is_new = file::number(&file.connection, "created_us")?.is_some_and(|us| us >= written.since_us);
        Ok(Some(if is_new { month::begin_us(file.month).min(written.since_us) } else { written.since_us }))
    }

    /// The file is open, with its gaps.
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

    /// The end has come, and nothing waits that no file has.
    pub(crate) fn settle_pending_gap(&self, lock: Option<&mut Lock>) {
        if self.pending_gap_us.is_none() {
            lock.map(Lock::settle);
        }
    }
}
