//! Project rules that no compiler checks: dependencies between crates, lengths of files, and the names and links of
//! documents.

mod arrows;
mod circles;
mod dependencies;
mod doctests;
mod documents;
mod enums;
mod files;
mod imports;
mod language;
mod links;
mod samples;
mod survivors;
mod texts;
mod versions;
mod wires;

use std::path::{Path, PathBuf};

/// Folders of builds and of installed packages.
const BUILT: [&str; 2] = ["target", "node_modules"];

/// The repository's root.
fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ has a parent").to_owned()
}

/// The files with this extension below folders of the repository, without build folders.
fn files(folders: &[&str], extension: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for folder in folders {
        walk(&root().join(folder), extension, &mut files);
    }
    files
}

fn walk(folder: &Path, extension: &str, files: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    for entry in entries {
        let path = entry.expect("a readable entry").path();
        let is_source = path.file_name().is_none_or(|name| BUILT.iter().all(|built| name != *built));
        if path.is_dir() && is_source {
            walk(&path, extension, files);
        } else if path.extension().is_some_and(|e| e == extension) {
            files.push(path);
        }
    }
}
