//! Versions of stored formats: before the first release there is only version 1.

use std::fs;

/// The heading of the changelog until 0.1.0 is released.
const UNRELEASED: &str = "## 0.1.0 (unreleased)";

/// No ledger and no central store of an earlier version exists, so a change of their tables is a change of version 1,
/// and no statement migrates to it.
#[test]
fn schemas_have_one_version_before_the_release() {
    let read = |path: &str| fs::read_to_string(super::root().join(path)).expect("UTF-8");
    if !read("CHANGELOG.md").lines().any(|line| line == UNRELEASED) {
        return;
    }
    assert!(
        read("sidecar/ledger/src/columns.rs").contains("\npub const VERSION: i64 = 1;\n"),
        "sidecar/ledger/src/columns.rs: VERSION stays 1 until 0.1.0 is released"
    );
    let steps = super::files(&["sidecar/ship/src/schema"], "sql").into_iter().filter_map(|path| {
        let name = path.file_stem()?.to_str()?.to_owned();
        name.starts_with(|first: char| first.is_ascii_digit()).then_some(name)
    });
    assert_eq!(
        steps.collect::<Vec<_>>(),
        ["1"],
        "sidecar/ship/src/schema: version 1 changes in place until 0.1.0 is released"
    );
}
