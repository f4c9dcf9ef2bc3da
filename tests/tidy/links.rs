//! Relative links in documents lead to files that exist, and their anchors to headings.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Every document, those at the root first.
pub(crate) fn documents() -> Vec<PathBuf> {
    let root = super::root();
    let entries = std::fs::read_dir(&root).expect("the root is a folder");
    let mut documents: Vec<_> = entries.map(|entry| entry.expect("a readable entry").path()).collect();
    documents.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    documents.extend(super::files(&["proxy", "sidecar", "ffi", "tests", "examples", "helm"], "md"));
    documents
}

/// The text without fenced code, in which brackets and `#` have other meanings.
fn prose(text: &str) -> String {
    let mut in_code = false;
    let mut prose = String::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        } else if !in_code {
            prose.push_str(line);
            prose.push('\n');
        }
    }
    prose
}

/// The targets of the links in a document, without those to other sites.
fn targets(prose: &str) -> Vec<&str> {
    let after = prose.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    after.filter(|target| !target.contains("://") && !target.starts_with("mailto:")).collect()
}

/// The anchors of a document's headings, as GitHub makes them: lower case, no punctuation, `-` for a space.
fn anchors(prose: &str) -> BTreeSet<String> {
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    let headings = prose.lines().filter(|line| line.starts_with('#'));
    let titles = headings.map(|line| line.trim_start_matches('#').trim());
    let mut anchors = BTreeSet::new();
    for title in titles {
        let kept = title.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        let anchor = kept.collect::<String>().to_lowercase().replace(' ', "-");
        let times = seen.entry(anchor.clone()).or_insert(0);
        anchors.insert(if *times == 0 { anchor } else { format!("{anchor}-{times}") });
        *times += 1;
    }
    anchors
}

/// Returns the fault of a link of a document, if it has one.
fn fault(document: &Path, target: &str) -> Option<String> {
    let (path, anchor) = target.split_once('#').map_or((target, None), |(path, anchor)| (path, Some(anchor)));
    let file = match path {
        "" => document.to_owned(),
        path => document.parent()?.join(path),
    };
    if !file.exists() {
        return Some("there is no such file".to_owned());
    }
    let anchor = anchor?;
    let text = std::fs::read_to_string(&file).ok()?;
    (!anchors(&prose(&text)).contains(anchor)).then(|| "there is no such heading".to_owned())
}

#[test]
fn relative_links_lead_to_files_and_headings() {
    let mut checked = 0;
    let mut faults = Vec::new();
    for document in documents() {
        let text = std::fs::read_to_string(&document).expect("UTF-8");
        for target in targets(&prose(&text)) {
            checked += 1;
            faults.extend(
                fault(&document, target).map(|why| format!("{}: {target}: {why}", document.display())),
            );
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(checked > 50, "only {checked} links");
}

#[test]
fn headings_become_anchors_as_github_makes_them() {
    let anchors = anchors("# What it costs, and whom\n## A `b_c`: d-e\n## Twice\n### Twice\n");
    let expected = ["a-b_c-d-e", "twice", "twice-1", "what-it-costs-and-whom"];
    assert_eq!(anchors.into_iter().collect::<Vec<_>>(), expected);
}

#[test]
fn missing_files_and_headings_are_faults() {
    let readme = super::root().join("README.md");
    assert_eq!(fault(&readme, "LICENSE"), None);
    assert_eq!(fault(&readme, "#see-it"), None);
    assert_eq!(fault(&readme, "nowhere.md").as_deref(), Some("there is no such file"));
    assert_eq!(fault(&readme, "#nowhere").as_deref(), Some("there is no such heading"));
}
