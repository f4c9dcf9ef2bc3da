//! The checkable rules of language: the beginning of a doc comment, and words that name no actor in texts for users.

use std::fs;
use std::path::Path;

use super::files::rust_files;
use super::root;

/// Clauses that do not name the item.
const CLAUSES: [&str; 7] = ["What ", "Whether ", "Whose ", "Where ", "Who ", "How ", "Which "];

/// Words that hide the actor, in string literals.
const ACTORLESS: [&str; 4] = ["somebody", "nobody", "whoever", "anybody"];

/// Returns the first line of each doc comment in `text`, with its line number from 1.
fn openings(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_doc = |line: &str| {
        let line = line.trim_start();
        line.starts_with("///") || line.starts_with("//!")
    };
    let lines: Vec<&str> = text.lines().collect();
    (0..lines.len()).filter_map(move |at| {
        let begins = is_doc(lines[at]) && (at == 0 || !is_doc(lines[at - 1]));
        begins.then(|| (at + 1, lines[at].trim_start().trim_start_matches(['/', '!']).trim_start()))
    })
}

/// Returns the string literals of `text` that are on one line, with their line numbers. Comments are skipped.
fn strings(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines()
        .enumerate()
        .filter(|(_, line)| !line.trim_start().starts_with("//"))
        .flat_map(|(at, line)| line.split('"').skip(1).step_by(2).map(move |string| (at + 1, string)))
}

/// Returns the product's source files: no tests.
fn sources() -> Vec<(String, String)> {
    let root = root();
    let product = |path: &Path| {
        let path = path.strip_prefix(&root).expect("below the root").to_str().expect("UTF-8").to_owned();
        let is_product = (path.starts_with("proxy/") || path.starts_with("sidecar/"))
            && !path.ends_with("tests.rs")
            && !path.contains("/tests/");
        is_product.then_some(path)
    };
    let files = rust_files();
    let read = |path: &Path| fs::read_to_string(path).expect("a source file can be read");
    files.iter().filter_map(|path| Some((product(path)?, read(path)))).collect()
}

#[test]
fn doc_comments_begin_with_a_noun_or_verb() {
    let mut wrong = Vec::new();
    for (path, text) in sources() {
        for (line, opening) in openings(&text) {
            if CLAUSES.iter().any(|clause| opening.starts_with(clause)) {
                wrong.push(format!("{path}:{line}: {opening}"));
            }
        }
    }
    assert!(wrong.is_empty(), "begin with the noun or verb that the item is:\n{}", wrong.join("\n"));
}

#[test]
fn texts_for_users_name_the_actor() {
    let mut wrong = Vec::new();
    for (path, text) in sources() {
        for (line, string) in strings(&text) {
            let lower = string.to_lowercase();
            let is_word = |word: &str| lower.split(|c: char| !c.is_alphanumeric()).any(|part| part == word);
            if ACTORLESS.iter().any(|word| is_word(word)) {
                wrong.push(format!("{path}:{line}: {string}"));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "name the client, the upstream, the operator, the process:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn openings_are_first_lines_only() {
    let text = "//! A file\n\n/// What one\n/// Where two\nfn a() {}\n    /// Three\n";
    assert_eq!(openings(text).collect::<Vec<_>>(), [(1, "A file"), (3, "What one"), (6, "Three")]);
    assert_eq!(strings("a(\"b\", \"c\")\n// \"d\"").collect::<Vec<_>>(), [(1, "b"), (1, "c")]);
}
