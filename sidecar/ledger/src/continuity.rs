//! Continuity: compares the file that is opened with the one that this process wrote before, and finds the gaps
//! between.
//!
//! Law: rows that were acknowledged into a file that was removed or replaced, and rows for which no file could be
//! opened, leave a gap.

use std::collections::BTreeMap;

use crate::Calendar;
use crate::error::Error;
use crate::file::{self, File};
use crate::loss_notes::LossNote;
use crate::source::Gap;

/// The end of a writer that did not close its file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UncleanEnd {
    /// The last heartbeat.
    pub alive_us: i64,
    /// The time until which every row was in a file then.
    pub entered_us: i64,
    /// The reason of the gap that follows.
    pub why: &'static str,
}

impl UncleanEnd {
    /// Returns the time of which rows may be missing.
    fn gap(&self, month_begin_us: i64, now_us: i64) -> (i64, i64) {
        if self.why != CRASH {
            return (self.alive_us.min(now_us), now_us);
        }
        if self.alive_us > now_us {
            // The clock was set back since the heartbeat, and it is not known how far.
            return (month_begin_us.min(now_us), self.alive_us.saturating_add(ENTRY_DELAY_US));
        }
        (self.entered_us.saturating_sub(ENTRY_DELAY_US).min(now_us), now_us)
    }
}

/// The name of the fact with the time until which every row was in a file at the last heartbeat.
pub(crate) const ENTERED: &str = "entered_us";

/// The longest time from the end of an exchange to its entry into the queue, by way of the outbox and a tokenizer, and
/// the longest between two heartbeats: rows of so long before a crash may be missing.
pub(crate) const ENTRY_DELAY_US: i64 = 10_000_000;

/// The reason of the gap of a process that did not end in order.
pub(crate) const CRASH: &str = "crash";

/// The history of the writer's open file.
#[derive(Debug, Default)]
pub(crate) struct Continuity {
    /// The file that this process writes, or wrote until a fault. `None` after a file was closed in order or
    /// quarantined: then any file may follow without a gap from here.
    written: Option<Written>,
    /// True once a file was opened.
    began: bool,
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

    /// Forgets the file, which was closed in order or has its gap: another one may follow without a gap.
    pub(crate) fn forget_file(&mut self) {
        self.written = None;
    }

    /// Returns the gaps for the file that is opened now. `left`: its last writer did not close it. `notes`: the loss
    /// notes of other processes.
    pub(crate) fn gaps(
        &self,
        file: &File,
        calendar: &Calendar,
        left: Option<UncleanEnd>,
        notes: &[LossNote],
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
        let month_begin_us = calendar.month_begin_us(file.month);
        // A writer that could not close the file, but noted all that it lost, has no other loss if the file has its last
        // heartbeat.
        let is_noted = |left: &UncleanEnd| {
            let same = |note: &LossNote| matches!(note, LossNote::Ended { alive_us, .. } if *alive_us == Some(left.alive_us));
            notes.iter().any(same)
        };
        let left = left.filter(|left| of_others && !is_noted(left));
        let waiting = notes.iter().filter_map(|note| match *note {
            LossNote::Waiting { from_us } => {
                Some(UncleanEnd { alive_us: from_us, entered_us: from_us, why: CRASH })
            }
            LossNote::Ended { .. } => None,
        });
        let unclean = left.into_iter().chain(waiting);
        let unclean = unclean.map(|end| (end.why, end.gap(month_begin_us, now_us)));
        let replaced = replaced_us.map(|replaced_us| ("replaced", (replaced_us.min(now_us), now_us)));
        let unknown = unclean.chain(replaced);
        // One gap for each reason.
        let mut times: BTreeMap<&str, (i64, i64)> = BTreeMap::new();
        for (why, (from_us, until_us)) in unknown {
            let (from, until) = times.entry(why).or_insert((from_us, until_us));
            (*from, *until) = (from_us.min(*from), until_us.max(*until));
        }
        let unknown =
            times.into_iter().map(|(why, (from_us, until_us))| Gap::unknown(from_us, until_us, why));
        let known = notes.iter().filter_map(|note| match note {
            LossNote::Ended { lost, .. } => lost.gap(),
            LossNote::Waiting { .. } => None,
        });
        Ok(unknown.chain(known).collect())
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
    pub(crate) fn opened(&mut self, file: &File, now_us: i64) -> Result<(), Error> {
        let instance = file::bytes(&file.connection, "instance")?.unwrap_or_default();
        if self.written.as_ref().is_none_or(|written| written.instance != instance) {
            self.written = Some(Written { instance, since_us: now_us });
        }
        self.began = true;
        Ok(())
    }
}
