//! The past months that a fault or a crash left: their recovery at the start, and damaged ones.

use super::MonthFiles;
use crate::error::{Error, Fault};
use crate::file::File;
use crate::redirects::Redirect;
use crate::source::Month;
use crate::{files, month, restored};

impl MonthFiles {
    /// Closes the past months that a crash left with a log, and enters the gaps of those restored from a copy.
    pub(super) fn recover_past_months(&mut self, now_us: i64) {
        for path in files::list(&self.path).unwrap_or_default() {
            if path == self.path {
                continue;
            }
            let left = ["-wal", "-journal"].iter().any(|suffix| files::beside(&path, suffix).exists());
            let settled = restored::past_gap(&path, &self.calendar, now_us).and_then(|gaps| {
                self.update.gaps += gaps;
                if !left {
                    return Ok(());
                }
                let file = File::open(&path)?;
                file.checkpoint_all()?;
                file.rest().map(|_| ())
            });
            let month = path.file_name().and_then(|name| files::month_in(&self.path, name.to_str()?));
            if let (Err(error), Some(month)) = (settled, month) {
                self.past_month_failed(month, &error, now_us);
            }
        }
    }

    /// Quarantines the damaged file of a past month. One that was signed off stays in its place, because a new file
    /// there would be an open month again; the operator has to restore it, and its late rows go to the open month.
    pub(crate) fn quarantine_past(&mut self, month: Month, error: &Error, now_us: i64) -> Result<(), Error> {
        self.files.remove(&month);
        if files::sign_off(&self.path, month).try_exists()? {
            self.update.faults.push(Fault::Corrupt);
            tracing::error!(
                month = month::name(month), reason = %error,
                "a closed month of the ledger is damaged: put its file back from a copy"
            );
            self.redirect(month, Redirect::Closed);
            return Ok(());
        }
        self.replace(&files::of_month(&self.path, month), month, error, now_us)
    }

    /// Handles a fault of a past month for which no row waits. The open month is not affected.
    pub(super) fn past_month_failed(&mut self, month: Month, error: &Error, now_us: i64) {
        self.files.remove(&month);
        let left = match error.fault {
            Fault::Corrupt => self.quarantine_past(month, error, now_us).err(),
            _ => Some(error.clone()),
        };
        if let Some(error) = left {
            self.io_failed |= error.fault == Fault::Io;
            self.update.faults.push(error.fault);
            tracing::warn!(
                month = month::name(month), reason = %error,
                "the file of a past month of the ledger cannot be closed"
            );
        }
    }
}
