//! The lock of a ledger's writer: the process that holds `X.db.lock` may write. The lock's file also has the
//! [loss notes](crate::loss_notes).
//!
//! Laws: of two processes one writes; the lock ends with its process, also after a crash.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::error::{Error, Fault};
use crate::files;

/// The lock, held by this process.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
    path: PathBuf,
}

/// The length of the first line of the lock's file, which names the process. It is written in place, so that it can be
/// written on a full disk.
const HEAD_BYTES: usize = 32;

/// Returns the first line of the lock's file.
pub(crate) fn head(process: Option<u32>) -> String {
    let process = process.map_or("-".to_owned(), |process| process.to_string());
    format!("{process:<width$}\n", width = HEAD_BYTES - 1)
}

impl Lock {
    /// Takes the lock of a ledger.
    ///
    /// # Errors
    /// If another process holds it, whose id is in the message, or the lock's file cannot be opened.
    pub(crate) fn take(ledger: &Path) -> Result<Self, Error> {
        let path = files::beside(ledger, ".lock");
        let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let content = content(&mut file);
                let holder = content.split_whitespace().next().unwrap_or("unknown");
                return Err(Error::new(
                    Fault::Locked,
                    format!(
                        "another process writes this ledger (process {holder}): give each a path of its own"
                    ),
                ));
            }
            Err(TryLockError::Error(error)) => return Err(error.into()),
        }
        // Errors are ignored: a full or failing disk must not cost the lock.
        let written = file
            .seek(SeekFrom::Start(0))
            .and_then(|_| file.write_all(head(Some(std::process::id())).as_bytes()));
        let _ = written.and_then(|()| file.sync_data());
        Ok(Self { file, path })
    }

    /// Returns true if the path still has the locked file. If it was removed, another process could lock a new one.
    pub(crate) fn holds(&self) -> bool {
        is_at(&self.file, &self.path)
    }
}

// The system releases a lock with the last descriptor of the file, and a program that another thread starts has a copy of each
// until its exec.
impl Drop for Lock {
    fn drop(&mut self) {
        let _ = self.file.unlock();
    }
}

/// Returns the process that holds the lock of a ledger. To find out, this takes the lock for an instant; a writer that starts in
/// that instant tries again.
pub(crate) fn writer(path: &Path) -> Option<String> {
    held(path).map(|mut file| content(&mut file).trim().to_owned())
}

/// Returns the lock's file if a process holds the lock.
fn held(path: &Path) -> Option<File> {
    let file = File::open(files::beside(path, ".lock")).ok()?;
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => Some(file),
        Ok(()) => {
            let _ = file.unlock();
            None
        }
        Err(TryLockError::Error(_)) => None,
    }
}

/// Returns the process of this host that writes the ledger at `path`.
///
/// `None` if no process holds the lock, or if the holder is this process, or is not visible here as a process of this
/// program: one of another host or container, which a rolling update ends soon.
pub fn writer_on_this_host(path: &Path) -> Option<u32> {
    let holder: u32 = content(&mut held(path)?).split_whitespace().next()?.parse().ok()?;
    let name = |process: &str| std::fs::read_to_string(format!("/proc/{process}/comm")).ok();
    let is_this_program = holder != std::process::id() && name(&holder.to_string())? == name("self")?;
    is_this_program.then_some(holder)
}

fn content(file: &mut File) -> String {
    let mut bytes = Vec::new();
    let _ = file.take(HEAD_BYTES as u64).read_to_end(&mut bytes);
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
    use crate::testing::Place;

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
            assert_eq!(
                writer_on_this_host(&place.ledger()),
                None,
                "{holder} is not a process of this program"
            );
        }
        drop(lock);
        assert_eq!(writer_on_this_host(&place.ledger()), None, "the lock is free");
    }

    /// A program that another thread starts has a copy of each descriptor until its exec.
    #[test]
    fn lock_ends_despite_copies_of_its_descriptor() {
        let place = Place::new();
        let lock = Lock::take(&place.ledger()).unwrap();
        let _copy = lock.file.try_clone().unwrap();
        drop(lock);
        Lock::take(&place.ledger()).unwrap();
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
