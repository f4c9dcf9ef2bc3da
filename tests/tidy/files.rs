//! Files say what they are for, stay short, and have names that mean something.

use std::path::PathBuf;

/// Lines after which a file must say in its first lines why it is one noun (`long: …`).
const LONG: usize = 600;

/// Names of no room.
const NOWHERE: &[&str] = &["utils", "util", "common", "helpers", "helper", "types", "misc"];

pub(crate) fn rust_files() -> Vec<PathBuf> {
    let files = super::files(&["proxy", "sidecar", "tests", "examples"], "rs");
    assert!(files.len() > 30, "the walk found only {} files", files.len());
    files
}

#[test]
fn every_file_opens_with_what_it_is_for() {
    for path in rust_files() {
        let text = std::fs::read_to_string(&path).expect("UTF-8");
        assert!(
            text.starts_with("//! ") || text.starts_with("#![no_main]\n//! "),
            "{}: the first line says what the file is for",
            path.display()
        );
    }
}

#[test]
fn no_file_hides_a_second_noun() {
    for path in rust_files() {
        let text = std::fs::read_to_string(&path).expect("UTF-8");
        let lines = text.lines().count();
        let excused = text.lines().take(20).any(|line| line.starts_with("//! long: "));
        assert!(
            lines <= LONG || excused,
            "{}: {lines} lines. Which second noun lives there?",
            path.display()
        );
    }
}

#[test]
fn no_room_is_called_utils() {
    for path in rust_files() {
        let stem = path.file_stem().and_then(|s| s.to_str()).expect("a name");
        assert!(!NOWHERE.contains(&stem), "{}: name the noun", path.display());
    }
}
