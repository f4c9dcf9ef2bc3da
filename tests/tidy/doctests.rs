//! A library runs its documentation's examples if it has any, and starts no rustdoc otherwise: that takes a second each.

use std::fs;

use super::{files, root};

/// Returns true if a doc comment of `text` has a block of Rust that rustdoc would compile.
fn has_example(text: &str) -> bool {
    let mut is_open = false;
    for line in text.lines().map(str::trim_start) {
        let Some(doc) = line.strip_prefix("///").or_else(|| line.strip_prefix("//!")) else { continue };
        let Some(info) = doc.trim().strip_prefix("```") else { continue };
        let is_rust = info
            .split(',')
            .all(|word| matches!(word, "" | "rust" | "no_run" | "should_panic" | "compile_fail"));
        if !is_open && is_rust {
            return true;
        }
        is_open = !is_open;
    }
    false
}

#[test]
fn libraries_with_examples_test_them() {
    let mut libraries = 0;
    for manifest in files(&["proxy", "sidecar", "ffi", "tests"], "toml") {
        let text = fs::read_to_string(&manifest).expect("a manifest can be read");
        let folder = manifest.parent().expect("a file has a folder");
        let sources = folder.join("src");
        if !manifest.ends_with("Cargo.toml") || !sources.join("lib.rs").exists() {
            continue;
        }
        libraries += 1;
        let sources =
            files(&[sources.strip_prefix(root()).expect("below the root").to_str().expect("UTF-8")], "rs");
        let has_example = sources
            .iter()
            .any(|path| has_example(&fs::read_to_string(path).expect("a source file can be read")));
        let is_off = text.lines().any(|line| line == "doctest = false");
        assert!(
            has_example != is_off,
            "{}: `doctest = false` in [lib] {}",
            manifest.display(),
            if has_example { "keeps an example from running" } else { "is missing: there is no example" }
        );
    }
    assert!(libraries > 30, "only {libraries} libraries were found");
}

#[test]
fn blocks_of_rust_are_examples() {
    assert!(has_example("/// ```\n/// a();\n/// ```"));
    assert!(has_example("//! ```no_run\n//! a();\n//! ```"));
    assert!(!has_example("/// ```text\n/// a\n/// ```"));
    assert!(!has_example("/// ```text\n/// a\n/// ```\n/// ```rust,ignore\n/// ```"));
    assert!(has_example("/// ```text\n/// a\n/// ```\n/// ```rust\n/// ```"));
    assert!(!has_example("// ```\n// a\n// ```"));
}
