//! Absent months: other files of the ledger refer to them, and their own files do not exist.
//!
//! Law: a month must have a file if it was signed off or corrected, if a later month was closed after it, or if it had
//! a file when a later one was begun. Without that file a report is an error or has a note, and never a smaller sum.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use rusqlite::types::ValueRef;

use crate::error::Error;
use crate::file::{self, File};
use crate::source::{Gone, Month};
use crate::table::Digest;
use crate::txn::Txn;
use crate::{files, month};

/// The fact of a file that names the last month which had a file when this one was created.
const BEFORE: &str = "before";

/// Writes into a new file which month is the last before it.
pub(crate) fn follow(txn: &Txn<'_>, path: &Path, month: Month) -> Result<(), Error> {
    let names = files::list(path)?;
    let months = names.iter().filter_map(|file| files::month_in(path, file.file_name()?.to_str()?));
    match months.filter(|before| *before < month).max() {
        Some(before) => txn.fact(BEFORE, ValueRef::Integer(i64::from(before))),
        None => Ok(()),
    }
}

/// The months that must have a file, and those that have one.
#[derive(Default)]
pub(crate) struct AbsentMonths {
    seen: BTreeSet<Month>,
    /// The months that must have a file, with the evidence.
    expected: BTreeMap<Month, &'static str>,
    /// The digests of the closed months that have a file.
    digests: BTreeSet<Digest>,
    /// Closed months, each with the digest of the month that it was closed after.
    after: Vec<(Month, Digest)>,
}

impl AbsentMonths {
    /// Begins with the months that were signed off.
    pub(crate) fn new(path: &Path) -> io::Result<Self> {
        let signed = files::signed_off(path)?;
        let expected = signed.into_iter().map(|month| (month, "it was signed off")).collect();
        Ok(Self { expected, ..Self::default() })
    }

    /// Notes a month that has a file, readable or not.
    pub(crate) fn seen(&mut self, month: Month) {
        self.seen.insert(month);
    }

    /// Notes the month of a file, and the months that it corrects or follows. Parts that cannot be read are skipped:
    /// their own readers report them.
    pub(crate) fn read(&mut self, file: &File) {
        self.seen(file.month);
        // An adjustment is of no exchange: its month may never have had a file.
        let days = file.connection.prepare(
            "SELECT DISTINCT ifnull(day, ended_us / 86400000000) FROM correction WHERE exchange <> id",
        );
        let days =
            days.and_then(|mut days| days.query_map([], |row| row.get(0))?.collect::<Result<Vec<i32>, _>>());
        for day in days.unwrap_or_default() {
            self.expected.entry(month::of_day(day)).or_insert("it was corrected");
        }
        if let Ok(Some(before)) = file::number(&file.connection, BEFORE)
            && let Ok(before) = Month::try_from(before)
        {
            self.expected.entry(before).or_insert("a later month was begun after it");
        }
        let digest = |name| file::bytes(&file.connection, name).ok().flatten()?.try_into().ok();
        self.digests.extend(digest("digest"));
        self.after.extend(digest("previous").map(|previous| (file.month, previous)));
    }

    /// Returns the evidence that a month was there, if its file is absent.
    pub(crate) fn of(path: &Path, month: Month) -> Result<Option<&'static str>, Error> {
        let mut missing = Self::new(path)?;
        for file in files::list(path)? {
            // A file that cannot be read is reported by its own readers.
            if let Ok(file) = File::open_read(&file) {
                missing.read(&file);
            }
        }
        Ok(missing.named().find(|(gone, _)| *gone == month).map(|(_, why)| why))
    }

    /// Returns each absent month with the evidence.
    pub(crate) fn named(&self) -> impl Iterator<Item = (Month, &'static str)> {
        let gone = self.expected.iter().filter(|(month, _)| !self.seen.contains(month));
        gone.map(|(month, why)| (*month, *why))
    }

    /// Returns the absent months, also those that are known only because a later month was closed after them.
    pub(crate) fn all(&self, path: &Path) -> Vec<Gone> {
        let mut gone: Vec<_> = self
            .named()
            .map(|(month, why)| Gone { month, why: why.into(), file: files::of_month(path, month) })
            .collect();
        for (later, digest) in &self.after {
            if self.digests.contains(digest) || gone.iter().any(|gone| gone.month < *later) {
                continue;
            }
            let month = later - 1;
            let why = format!("{} was closed after it, or after one before it", month::name(*later)).into();
            gone.push(Gone { month, why, file: files::of_month(path, month) });
        }
        gone
    }
}
