//! The paths of the ledgers that this process writes. The lock of a ledger tells processes apart, but not the groups of
//! exporters of one process: the rows of a second writer would wait for the lock until they are lost.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

static CLAIMED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// The path of a ledger for one group of exporters: absolute and without links, so that it stays the same file if the
/// process changes its folder.
pub(super) struct LedgerPath(PathBuf);

impl LedgerPath {
    /// Claims a path, until the returned value is dropped.
    pub(super) fn claim(path: &Path) -> Result<Self, Error> {
        let path = absolute(path)?;
        if CLAIMED.lock().unwrap_or_else(PoisonError::into_inner).insert(path.clone()) {
            return Ok(Self(path));
        }
        Err(Error::other("other exporters of this process write it"))
    }

    /// Returns the path.
    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for LedgerPath {
    fn drop(&mut self) {
        CLAIMED.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.0);
    }
}

/// Returns the absolute path of a file that may not exist yet, in a folder that does.
fn absolute(path: &Path) -> Result<PathBuf, Error> {
    match (fs::canonicalize(path), path.file_name()) {
        (Err(error), Some(name)) if error.kind() == ErrorKind::NotFound => {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            Ok(fs::canonicalize(folder.unwrap_or(Path::new(".")))?.join(name))
        }
        (found, _) => found,
    }
}
