//! Reasons why a path cannot be a ledger's, checked before the start: rows of a ledger that never opens are dropped until
//! the operator notices.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The reason why a path cannot be that of a ledger file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathProblem {
    /// It is a URL.
    #[error("it is a URL, but not of PostgreSQL")]
    Url,
    /// It is a folder.
    #[error("it is a folder")]
    Folder,
    /// It does not end in `.db`, from which the names of the other months' files are made.
    #[error("it does not end in .db")]
    Suffix,
    /// Its folder does not exist.
    #[error("its folder {} does not exist", .0.display())]
    FolderMissing(PathBuf),
}

impl PathProblem {
    /// Returns the problem of `path`. A folder that cannot be written is none, since that may change while the process
    /// runs.
    pub fn of(path: &Path) -> Option<Self> {
        if path.to_string_lossy().contains("://") {
            Some(Self::Url)
        } else if path.is_dir() {
            Some(Self::Folder)
        } else if path.extension().is_none_or(|extension| extension != "db") {
            Some(Self::Suffix)
        } else {
            missing_folder(path).map(|folder| Self::FolderMissing(folder.to_owned()))
        }
    }
}

/// Returns the parent folder of `file` if it is known not to exist.
fn missing_folder(file: &Path) -> Option<&Path> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty())?;
    match folder.metadata() {
        Ok(found) => !found.is_dir(),
        Err(error) => matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory),
    }
    .then_some(folder)
}
