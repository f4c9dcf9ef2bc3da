//! Decisions about requests and responses are the same for all protocols: they do no I/O and know none of them, and HTTP
//! libraries are named in the folder of HTTP/2 only.

use std::path::Path;

/// The source files below `folder`, with their texts.
fn sources(folder: &Path) -> Vec<(String, String)> {
    let mut sources = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display())) {
        let path = entry.expect("a readable entry").path();
        if path.is_dir() {
            sources.extend(self::sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).expect("UTF-8");
            sources.push((path.display().to_string(), text));
        }
    }
    sources
}

/// Returns true if a line names a path of this library.
fn names(line: &str, library: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    code.match_indices(&format!("{library}::")).any(|(at, _)| {
        let before = code[..at].chars().next_back();
        before.is_none_or(|before| !(before.is_alphanumeric() || matches!(before, '_' | ':')))
    })
}

#[test]
fn libraries_are_named_in_http2_only() {
    let relay = super::root().join("proxy/relay/src");
    let sources = sources(&relay);
    assert!(sources.len() > 40, "the walk found only {} files", sources.len());
    let folder = relay.join("wire/h2/").display().to_string();
    let (inside, outside): (Vec<_>, Vec<_>) = sources.iter().partition(|(path, _)| path.starts_with(&folder));
    for library in ["hyper", "hyper_util", "h2"] {
        let names = |text: &str| text.lines().any(|line| names(line, library));
        assert!(inside.iter().any(|(_, text)| names(text)), "nothing names {library}");
        for (path, text) in &outside {
            assert!(!names(text), "{path} names {library}");
        }
    }
}

/// Words of code that waits, does I/O or knows a protocol. `tokio` stands in the paths of its clock and sockets.
const OUTSIDE_DECISIONS: &[&str] = &["async", "await", "Future", "Poll", "Up", "Down", "tokio"];

#[test]
fn decisions_wait_for_nothing() {
    let relay = super::root().join("proxy/relay/src");
    let mut sources = sources(&relay.join("request"));
    for root in ["request.rs", "response.rs"].map(|root| relay.join(root)) {
        sources.push((root.display().to_string(), std::fs::read_to_string(root).expect("UTF-8")));
    }
    assert!(sources.len() > 10, "the walk found only {} files", sources.len());
    for (path, text) in sources {
        for line in text.lines().map(|line| line.split("//").next().unwrap_or_default()) {
            let mut words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
            let word = words.find(|word| OUTSIDE_DECISIONS.contains(word));
            assert_eq!(word, None, "{path}: a decision does no I/O and knows no protocol");
        }
    }
}

#[test]
fn paths_of_a_library_are_found() {
    assert!(names("use hyper::body::Incoming;", "hyper"));
    assert!(names("fn f(error: &hyper::Error) {}", "hyper"));
    assert!(!names("use crate::wire::hyper::Server;", "hyper"));
    assert!(!names("// hyper::Error", "hyper"));
    assert!(!names("use hyper_util::rt::TokioIo;", "hyper"));
}
