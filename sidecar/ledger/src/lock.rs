//! The lock of a ledger's writer: the process that holds `X.db.lock` may write. The lock's file also keeps since when
//! rows may be in no file, because a ledger that cannot be opened cannot record that.
//!
//! Laws: of two processes one writes; the lock ends with the process, however it ends; a pending gap stays in the
//! lock's file until a writer has entered it.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::error::{Error, Fault};
use crate::files;

/// The right to write.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
    path: PathBuf,
    pending_gap_us: Option<i64>,
}

/// The file's length. It is written in place, so that a disk that has filled up since has room for it.
const BYTES: usize = 32;

impl Lock {
    /// Takes the lock of a ledger, or says who has it.
    pub(crate) fn take(ledger: &Path) -> Result<Self, Error> {
        let path = files::beside(ledger, ".lock");
        let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let said = content(&mut file);
                let holder = said.split_whitespace().next().unwrap_or("unknown");
                return Err(Error::new(
                    Fault::Locked,
                    format!(
                        "another process writes this ledger (process {holder}): give each a path of its own"
                    ),
                ));
            }
            Err(TryLockError::Error(error)) => return Err(error.into()),
        }
        let pending_gap_us =
            content(&mut file).split_whitespace().nth(1).and_then(|since| since.parse().ok());
        let mut lock = Self { file, path, pending_gap_us };
        lock.write();
        Ok(lock)
    }

    /// Returns since when rows may be in no file, microseconds since 1970: the writers since then could open none.
    pub(crate) fn pending_gap_us(&self) -> Option<i64> {
        self.pending_gap_us
    }

    /// Notes that from now on rows may be in no file; an earlier time stays.
    pub(crate) fn note_pending_gap(&mut self, since_us: i64) {
        self.pending_gap_us = Some(self.pending_gap_us.map_or(since_us, |owed| owed.min(since_us)));
        self.write();
    }

    /// The gap is entered, or there are no such rows.
    pub(crate) fn settle(&mut self) {
        self.pending_gap_us = None;
        self.write();
    }

    /// A disk that cannot be written keeps no process from the lock.
    fn write(&mut self) {
        let owed = self.pending_gap_us.map_or(String::new(), |since| since.to_string());
        let said = format!("{:<10} {owed:<20}\n", std::process::id());
        debug_assert_eq!(said.len(), BYTES);
        let written = self.file.seek(SeekFrom::Start(0)).and_then(|_| self.file.write_all(said.as_bytes()));
        let _ = written.and_then(|()| self.file.sync_data());
    }

    /// Returns true if the locked file is still the one that another process would lock.
    pub(crate) fn holds(&self) -> bool {
        is_at(&self.file, &self.path)
    }
}

/// Returns the process of this host that writes the ledger at `path`.
///
/// `None` where no process holds the lock, and where the holder is no process of this program that is seen here: this
/// process itself, or one of another host or container, which a rolling update ends soon.
pub fn writer_on_this_host(path: &Path) -> Option<u32> {
    let mut file = File::open(files::beside(path, ".lock")).ok()?;
    // A lock that is free is given back with the file.
    if !matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)) {
        return None;
    }
    let holder: u32 = content(&mut file).split_whitespace().next()?.parse().ok()?;
    let name = |process: &str| std::fs::read_to_string(format!("/proc/{process}/comm")).ok();
    let is_ours = holder != std::process::id() && name(&holder.to_string())? == name("self")?;
    is_ours.then_some(holder)
}

fn content(file: &mut File) -> String {
    let mut bytes = Vec::new();
    let _ = file.take(BYTES as u64).read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns true if an open file is the one that a path names.
pub(crate) fn is_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), std::fs::metadata(path)) {
        (Ok(open), Ok(named)) => (open.dev(), open.ino()) == (named.dev(), named.ino()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::{Lock, writer_on_this_host};
    use crate::error::Fault;
    use crate::testing::{NOON_US, Place};

    #[test]
    fn second_writer_is_refused_with_the_first_named() {
        let place = Place::new();
        let first = Lock::take(&place.ledger()).unwrap();
        let refused = Lock::take(&place.ledger()).unwrap_err();
        assert_eq!(refused.fault, Fault::Locked);
        assert!(refused.message.contains(&std::process::id().to_string()), "{refused}");
        drop(first);
        Lock::take(&place.ledger()).unwrap();
    }

    #[test]
    fn own_or_foreign_lock_has_no_other_writer() {
        let place = Place::new();
        assert_eq!(writer_on_this_host(&place.ledger()), None, "there is no lock");
        let lock = Lock::take(&place.ledger()).unwrap();
        assert_eq!(writer_on_this_host(&place.ledger()), None, "the holder is this process");
        for holder in ["1", "4294967294", "unknown"] {
            std::fs::write(place.path("x.db.lock"), format!("{holder:<31}\n")).unwrap();
            assert_eq!(writer_on_this_host(&place.ledger()), None, "{holder} is no process of this program");
        }
        drop(lock);
        assert_eq!(writer_on_this_host(&place.ledger()), None, "the lock is free");
    }

    #[test]
    fn pending_gap_outlives_the_process() {
        let place = Place::new();
        std::fs::write(place.path("x.db.lock"), "1234\n").unwrap();
        let mut lock = Lock::take(&place.ledger()).unwrap();
        assert_eq!(lock.pending_gap_us(), None, "as older ones are");
        lock.note_pending_gap(NOON_US);
        lock.note_pending_gap(NOON_US + 1);
        drop(lock);
        let mut lock = Lock::take(&place.ledger()).unwrap();
        assert_eq!(lock.pending_gap_us(), Some(NOON_US));
        lock.settle();
        drop(lock);
        assert_eq!(Lock::take(&place.ledger()).unwrap().pending_gap_us(), None);
        assert_eq!(std::fs::metadata(place.path("x.db.lock")).unwrap().len(), super::BYTES as u64);
    }

    #[test]
    fn lock_without_its_file_is_not_held() {
        let place = Place::new();
        let lock = Lock::take(&place.ledger()).unwrap();
        assert!(lock.holds());
        std::fs::remove_file(place.path("x.db.lock")).unwrap();
        assert!(!lock.holds());
        let _other = Lock::take(&place.ledger()).unwrap();
        assert!(!lock.holds());
    }
}
