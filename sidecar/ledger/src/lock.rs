//! Who writes a ledger: the process that holds `X.db.lock`.
//!
//! Law: of two processes one writes; the lock ends with the process, however it ends.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::failure::{Failure, Fault};
use crate::files;

/// The right to write.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
    path: PathBuf,
}

impl Lock {
    /// Takes the lock of a ledger, or says who has it.
    pub(crate) fn take(ledger: &Path) -> Result<Self, Failure> {
        let path = files::beside(ledger, ".lock");
        let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                let _ = file.read_to_string(&mut holder);
                let holder = holder.lines().next().unwrap_or("unknown").to_owned();
                return Err(Failure::new(
                    Fault::Locked,
                    format!(
                        "another process writes this ledger (process {holder}): give each a path of its own"
                    ),
                ));
            }
            Err(TryLockError::Error(error)) => return Err(error.into()),
        }
        // For people; a full disk must not keep anybody from the lock.
        let _ = file
            .set_len(0)
            .and_then(|()| file.seek(SeekFrom::Start(0)))
            .and_then(|_| writeln!(file, "{}", std::process::id()));
        Ok(Self { file, path })
    }

    /// Whether the file that is locked is still the one that others would lock.
    pub(crate) fn holds(&self) -> bool {
        is_at(&self.file, &self.path)
    }
}

/// Whether an open file is the one that a path names.
pub(crate) fn is_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), std::fs::metadata(path)) {
        (Ok(open), Ok(named)) => (open.dev(), open.ino()) == (named.dev(), named.ino()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::Lock;
    use crate::failure::Fault;
    use crate::testing::Place;

    #[test]
    fn the_second_is_refused_and_told_who_has_it() {
        let place = Place::new();
        let first = Lock::take(&place.ledger()).unwrap();
        let refused = Lock::take(&place.ledger()).unwrap_err();
        assert_eq!(refused.fault, Fault::Locked);
        assert!(refused.said.contains(&std::process::id().to_string()), "{refused}");
        drop(first);
        Lock::take(&place.ledger()).unwrap();
    }

    #[test]
    fn a_lock_whose_file_is_gone_holds_nothing() {
        let place = Place::new();
        let lock = Lock::take(&place.ledger()).unwrap();
        assert!(lock.holds());
        std::fs::remove_file(place.path("x.db.lock")).unwrap();
        assert!(!lock.holds());
        let _other = Lock::take(&place.ledger()).unwrap();
        assert!(!lock.holds());
    }
}
