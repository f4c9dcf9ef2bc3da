//! Files state their subject, stay short, and have meaningful names.

use std::path::PathBuf;

/// Lines above which a file must state in its first lines why it is one noun (`long: …`).
const LONG: usize = 600;

/// Names that no crate or module may have.
const NOWHERE: &[&str] = &["utils", "util", "common", "helpers", "helper", "types", "misc"];

pub(crate) fn rust_files() -> Vec<PathBuf> {
    let files = super::files(&["proxy", "sidecar", "tests", "examples"], "rs");
    assert!(files.len() > 30, "the walk found only {} files", files.len());
    files
}

#[test]
fn every_file_begins_with_its_subject() {
    for path in rust_files() {
        let text = std::fs::read_to_string(&path).expect("UTF-8");
        assert!(
            text.starts_with("//! ") || text.starts_with("#![no_main]\n//! "),
            "{}: the first line states the file's subject",
            path.display()
        );
    }
}

#[test]
fn long_files_have_one_subject() {
    for path in rust_files() {
        let text = std::fs::read_to_string(&path).expect("UTF-8");
        let lines = text.lines().count();
        let excused = text.lines().take(20).any(|line| line.starts_with("//! long: "));
        assert!(
            lines <= LONG || excused,
            "{}: {lines} lines. Which second subject is in it?",
            path.display()
        );
    }
}

#[test]
fn no_module_is_named_utils() {
    for path in rust_files() {
        let stem = path.file_stem().and_then(|s| s.to_str()).expect("a name");
        assert!(!NOWHERE.contains(&stem), "{}: name the noun", path.display());
    }
}
