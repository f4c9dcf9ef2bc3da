//! A temporary folder for a test, removed on drop.

use std::fs;
use std::path::{Path, PathBuf};

/// The folder.
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// Creates an empty folder; `name` is unique among the tests of this process.
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("tokenmeter-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a temporary folder can be made");
        Self(path)
    }

    /// Returns the path.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Returns the path of a file in it.
    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
