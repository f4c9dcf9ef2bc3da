//! The documents name what exists: the map in the README, the main path, the laws' tests.

fn read(path: &str) -> String {
    let full = super::root().join(path);
    std::fs::read_to_string(&full).unwrap_or_else(|e| panic!("{}: {e}", full.display()))
}

/// Paths in backquotes that look like files or folders of ours.
fn paths(text: &str) -> Vec<String> {
    const ROOMS: &[&str] = &["proxy/", "sidecar/", "tests/", "examples/", "helm/", "ffi/", ".ci/"];
    text.split('`')
        .skip(1)
        .step_by(2)
        .filter(|word| ROOMS.iter().any(|room| word.starts_with(room)))
        .map(|word| word.split([' ', ':', '*', '<']).next().unwrap_or(word).to_owned())
        .collect()
}

#[test]
fn every_path_in_the_documents_exists() {
    for document in ["README.md", "ARCHITECTURE.md"] {
        let found = paths(&read(document));
        assert!(found.len() >= 8, "{document} names only {} paths", found.len());
        for path in found {
            assert!(super::root().join(&path).exists(), "{document} names {path}, which does not exist");
        }
    }
}

#[test]
fn the_main_path_is_eight_files() {
    let readme = read("README.md");
    let list = readme.split("## The main path").nth(1).expect("README has the section \"The main path\"");
    let list = list.split("\n## ").next().expect("a section ends");
    let files = paths(list).into_iter().filter(|path| path.ends_with(".rs")).count();
    assert_eq!(files, 8);
}

#[test]
fn the_changelog_names_the_version() {
    assert!(read("CHANGELOG.md").contains(env!("CARGO_PKG_VERSION")));
}
