//! Absent months: the files of a ledger name them, and their own files are not there.
//!
//! Law: a month that was signed off, corrected, closed before a month that is there, or there when that was begun, has
//! to be there; an absent one is reported, never summed over.

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

/// The fact that names the last month whose file was there when a file was made.
const BEFORE: &str = "before";

/// States in a new file of a ledger which month is before it.
pub(crate) fn follow(txn: &Txn<'_>, path: &Path, month: Month) -> Result<(), Error> {
    let names = files::list(path)?;
    let months = names.iter().filter_map(|file| files::month_in(path, file.file_name()?.to_str()?));
    match months.filter(|before| *before < month).max() {
        Some(before) => txn.fact(BEFORE, ValueRef::Integer(i64::from(before))),
        None => Ok(()),
    }
}

/// Months that are named, and those that are there.
#[derive(Default)]
pub(crate) struct AbsentMonths {
    seen: BTreeSet<Month>,
    told: BTreeMap<Month, &'static str>,
    /// The digest of each closed month that was seen, and the one each was closed after.
    digests: BTreeSet<Digest>,
    after: Vec<(Month, Digest)>,
}

impl AbsentMonths {
    /// Begins with the months that were signed off.
    pub(crate) fn new(path: &Path) -> io::Result<Self> {
        let signed = files::signed_off(path)?;
        let told = signed.into_iter().map(|month| (month, "it was signed off")).collect();
        Ok(Self { told, ..Self::default() })
    }

    /// Notes a file that is there, whether or not it can be read.
    pub(crate) fn seen(&mut self, month: Month) {
        self.seen.insert(month);
    }

    /// Notes a file that is there, and the months that it corrects or follows. What cannot be read is reported by what
    /// needs it.
    pub(crate) fn read(&mut self, file: &File) {
        self.seen(file.month);
        let days = file.connection.prepare("SELECT DISTINCT ended_us / 86400000000 FROM correction");
        let days =
            days.and_then(|mut days| days.query_map([], |row| row.get(0))?.collect::<Result<Vec<i32>, _>>());
        for day in days.unwrap_or_default() {
            self.told.entry(month::of_day(day)).or_insert("it was corrected");
        }
        if let Ok(Some(before)) = file::number(&file.connection, BEFORE)
            && let Ok(before) = Month::try_from(before)
        {
            self.told.entry(before).or_insert("a later month was begun after it");
        }
        let digest = |name| file::bytes(&file.connection, name).ok().flatten()?.try_into().ok();
        self.digests.extend(digest("digest"));
        self.after.extend(digest("previous").map(|previous| (file.month, previous)));
    }

    /// Returns the evidence that a month was there, if its file is absent.
    pub(crate) fn of(path: &Path, month: Month) -> Result<Option<&'static str>, Error> {
        let mut missing = Self::new(path)?;
        for file in files::list(path)? {
            // What cannot be read is reported by what needs it.
            if let Ok(file) = File::open_read(&file) {
                missing.read(&file);
            }
        }
        Ok(missing.named().find(|(gone, _)| *gone == month).map(|(_, why)| why))
    }

    /// Returns each absent month with the evidence.
    pub(crate) fn named(&self) -> impl Iterator<Item = (Month, &'static str)> {
        let gone = self.told.iter().filter(|(month, _)| !self.seen.contains(month));
        gone.map(|(month, why)| (*month, *why))
    }

    /// The same, and those that are known only by what was closed after them.
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
