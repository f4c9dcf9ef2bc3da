//! What operators are given to read the metrics with: recording rules, alerts, dashboards and the
//! twenty questions. All of it parses, names only what there is, and the rules do what they say.

mod catalogue;
mod dashboards;
mod expressions;
mod names;
mod programs;
mod promql;
mod promtool;
mod questions;
mod rules;

use std::path::{Path, PathBuf};

/// A file of the repository.
fn file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ has a parent").join(path)
}

/// Its text.
fn read(path: &str) -> String {
    let full = file(path);
    std::fs::read_to_string(&full).unwrap_or_else(|e| panic!("{}: {e}", full.display()))
}

/// The files of a folder with this ending, by name.
fn files(folder: &str, ending: &str) -> Vec<String> {
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
