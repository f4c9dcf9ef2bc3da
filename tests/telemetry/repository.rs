//! The files of this repository, by their paths in it.

use std::path::{Path, PathBuf};

/// A file of the repository.
pub(crate) fn file(path: &str) -> PathBuf {
    let mut above = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    above.find(|folder| folder.join("Cargo.lock").exists()).expect("the workspace is above").join(path)
}

/// Its text.
pub(crate) fn read(path: &str) -> String {
    let full = file(path);
    std::fs::read_to_string(&full).unwrap_or_else(|e| panic!("{}: {e}", full.display()))
}

/// The files of a folder with this ending, by name.
pub(crate) fn files(folder: &str, ending: &str) -> Vec<String> {
    let full = file(folder);
    let mut found: Vec<String> = std::fs::read_dir(&full)
        .unwrap_or_else(|e| panic!("{}: {e}", full.display()))
        .filter_map(|entry| entry.expect("a readable entry").file_name().into_string().ok())
        .filter(|name| name.ends_with(ending))
        .map(|name| format!("{folder}/{name}"))
        .collect();
    found.sort();
    assert!(!found.is_empty(), "no {ending} in {folder}");
    found
}
