//! A folder of a test's own, gone with it.

use std::fs;
use std::path::{Path, PathBuf};

/// The folder.
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// Makes an empty one; `name` is unique among the tests of this process.
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("tokenmeter-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a temporary folder can be made");
        Self(path)
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// A file in it.
    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
