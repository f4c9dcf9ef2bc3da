//! The documents at the root stay short and name existing paths, crates, and laws with their tests.

use std::path::Path;

fn read(path: &str) -> String {
    let full = super::root().join(path);
    std::fs::read_to_string(&full).unwrap_or_else(|e| panic!("{}: {e}", full.display()))
}

/// The section of a document under a heading of the second level.
fn section<'a>(document: &'a str, heading: &str) -> &'a str {
    let start =
        document.find(&format!("\n## {heading}\n")).unwrap_or_else(|| panic!("no section {heading:?}"));
    let rest = &document[start + 4..];
    rest.split("\n## ").next().expect("split yields one part at least")
}

/// Paths in backquotes that look like files or folders of the repository.
fn paths(text: &str) -> Vec<String> {
    const FOLDERS: &[&str] = &["proxy/", "sidecar/", "tests/", "examples/", "helm/", ".ci/"];
    text.split('`')
        .skip(1)
        .step_by(2)
        .filter(|word| FOLDERS.iter().any(|folder| word.starts_with(folder)))
        .map(|word| word.split([' ', ':', '*', '<']).next().unwrap_or(word).to_owned())
        .collect()
}

/// The documents at the root, and those beside their subjects.
fn documents() -> Vec<String> {
    let mut documents: Vec<_> =
        ["README", "ARCHITECTURE", "CHANGELOG", "CONTRIBUTING", "DECISIONS", "SECURITY"]
            .map(|name| format!("{name}.md"))
            .to_vec();
    let root = super::root();
    let beside = super::files(&["proxy", "sidecar"], "md");
    let name = |path: &Path| path.strip_prefix(&root).expect("below the root").display().to_string();
    documents.extend(beside.iter().map(|path| name(path)));
    documents
}

#[test]
fn every_path_in_the_documents_exists() {
    let mut found = 0;
    for document in documents() {
        // A path is from the root or, in a document beside its subject, from there.
        let root = super::root();
        let beside = root.join(&document).parent().expect("a file has a folder").to_owned();
        for path in paths(&read(&document)) {
            let exists = root.join(&path).exists() || beside.join(&path).exists();
            assert!(exists, "{document} names {path}, which does not exist");
            found += 1;
        }
    }
    assert!(found > 100, "only {found} paths");
}

#[test]
fn integrity_pieces_have_a_file_and_a_test() {
    let rows = read("sidecar/ledger/integrity.md");
    let sources: String = super::files(&["sidecar/ledger/src"], "rs")
        .iter()
        .map(|path| std::fs::read_to_string(path).expect("a source file can be read"))
        .collect();
    let rows = table_rows(&rows);
    assert!(rows.len() > 15, "{} pieces", rows.len());
    for cells in rows {
        let test = cells[3].trim_matches('`');
        assert!(sources.contains(&format!("fn {test}()")), "integrity.md names {test}, which is no test");
        for file in cells[1].split(", ").map(|file| file.trim_matches('`')) {
            assert!(
                super::root().join("sidecar/ledger/src").join(file).exists(),
                "integrity.md names {file}"
            );
        }
    }
}

#[test]
fn documents_at_the_root_stay_short() {
    let most_lines =
        [("README.md", 130), ("ARCHITECTURE.md", 200), ("CHANGELOG.md", 60), ("CONTRIBUTING.md", 60)];
    for (document, most) in most_lines {
        let lines = read(document).lines().count();
        assert!(lines <= most, "{document} has {lines} lines, more than {most}: move a part to its subject");
    }
    for document in ["README.md", "CHANGELOG.md"] {
        for (number, line) in read(document).lines().enumerate() {
            let columns = line.chars().count();
            assert!(columns <= 120, "{document}:{} has {columns} columns, more than 120", number + 1);
        }
    }
}

/// Each dialect is in a row of the table of providers, and each provider with a name of its own in the table of kinds.
#[test]
fn every_dialect_and_provider_has_a_row() {
    let document = read("proxy/relay/providers.md");
    let cells = |heading: &str, column: usize| -> String {
        table_rows(section(&document, heading)).iter().map(|cells| cells[column]).collect()
    };
    let (dialects, providers) = (cells("What is read", 1), cells("Kinds", 2));
    for dialect in scan::Dialect::ALL {
        let name = dialect.name();
        assert!(dialects.contains(&format!("`{name}`")), "no row of providers.md has the dialect {name}");
    }
    let hosted = read("sidecar/tokenmeter/src/plan/hosted.rs");
    let (hosted, _) = hosted.split_once("#[cfg(test)]").expect("tests at the end");
    let rows = hosted.lines().filter_map(|line| line.trim().strip_prefix("(\"")?.split('"').nth(2));
    let names: Vec<_> = rows.collect();
    assert!(names.len() > 10, "{names:?}");
    for name in names {
        assert!(providers.contains(&format!("`{name}`")), "no row of providers.md has the provider {name}");
    }
}

#[test]
fn main_path_leads_from_assembly_to_ledger() {
    let text = read("ARCHITECTURE.md");
    let (list, _) = section(&text, "Where to start").split_once("Go-to-definition").expect("a list of files");
    let files = paths(list);
    let path: Vec<_> = files.iter().filter(|path| path.ends_with(".rs")).skip(2).collect();
    assert!((8..=16).contains(&path.len()), "{} files", path.len());
    assert!(path[0].starts_with("sidecar/tokenmeter/"), "{}", path[0]);
    assert!(path[path.len() - 1].starts_with("sidecar/ledger/"), "{}", path[path.len() - 1]);
}

#[test]
fn glossary_has_at_most_twenty_words() {
    let rows = table_rows(section(&read("ARCHITECTURE.md"), "Glossary")).len();
    assert!((5..=20).contains(&rows), "{rows} words");
}

#[test]
fn code_map_names_every_crate() {
    let map = read("ARCHITECTURE.md");
    let map = section(&map, "Code map");
    for half in ["proxy", "sidecar"] {
        for entry in std::fs::read_dir(super::root().join(half)).expect("a folder") {
            let path = entry.expect("a readable entry").path();
            if path.join("Cargo.toml").exists() {
                let name = path.file_name().expect("a name").to_string_lossy().into_owned();
                assert!(map.contains(&format!("`{half}/{name}`:")), "the code map lacks {half}/{name}");
            }
        }
    }
}

#[test]
fn files_in_the_code_map_exist() {
    let document = read("ARCHITECTURE.md");
    let mut source = super::root();
    let mut found = 0;
    for word in section(&document, "Code map").split('`').skip(1).step_by(2) {
        let crate_folder = super::root().join(word);
        if crate_folder.join("Cargo.toml").exists() {
            source = crate_folder.join("src");
        } else if word.ends_with(".rs") || word.ends_with('/') {
            assert!(
                source.join(word).exists(),
                "the code map names {word}, which is not in {}",
                source.display()
            );
            found += 1;
        }
    }
    assert!(found > 20, "only {found} files");
}

#[test]
fn laws_are_numbered_and_name_their_test() {
    let document = read("ARCHITECTURE.md");
    let laws = table_rows(section(&document, "Laws"));
    for (index, law) in laws.iter().enumerate() {
        let [number, text, held_by] = law[..] else { panic!("{law:?} has not three cells") };
        assert_eq!(number, (index + 1).to_string(), "{text}");
        assert!(!paths(held_by).is_empty(), "law {number} names no test");
    }
}

/// The cells of a table's rows, without its two rows of headings.
fn table_rows(text: &str) -> Vec<Vec<&str>> {
    let rows = text.lines().filter(|line| line.starts_with('|')).skip(2);
    rows.map(|row| row.trim_matches('|').split('|').map(str::trim).collect()).collect()
}

#[test]
fn changelog_names_the_version() {
    assert!(read("CHANGELOG.md").contains(env!("CARGO_PKG_VERSION")));
}
