//! The checkable rules of language: the beginning of a doc comment, words that name no actor, and phrases that are not
//! standard English, in texts for users, doc comments and documents.

use std::fs;
use std::path::{Path, PathBuf};

use super::files::rust_files;
use super::root;
use super::texts::{Text, Texts};

/// Clauses that do not name the item.
const CLAUSES: [&str; 7] = ["What ", "Whether ", "Whose ", "Where ", "Who ", "How ", "Which "];

/// Words that hide the actor.
const ACTORLESS: [&str; 4] = ["somebody", "nobody", "whoever", "anybody"];

/// Phrases, and the standard ones in their place.
const PHRASES: [(&str, &str); 4] = [
    ("told", "say who states, sends or distinguishes it"),
    ("as it came", "write \"unchanged\" or \"as received\""),
    ("as they came", "write \"unchanged\" or \"as received\""),
    ("found out", "write \"detected\""),
];

/// Forms of "is no month", which is "is not a month". "There is no month" and "is no longer" are standard.
const NO_NOUN: [&str; 5] = ["is no", "are no", "was no", "were no", "be no"];

/// Returns the product's source files: no tests.
fn sources() -> Vec<(String, String)> {
    let root = root();
    let product = |path: &Path| {
        let path = path.strip_prefix(&root).expect("below the root").to_str().expect("UTF-8").to_owned();
        let is_test = path.ends_with("tests.rs") || path.contains("/tests/");
        (!path.starts_with("tests/") && !path.starts_with("examples/") && !is_test).then_some(path)
    };
    let mut files = rust_files();
    files.extend(super::files(&["ffi"], "rs"));
    let read = |path: &Path| fs::read_to_string(path).expect("a source file can be read");
    files.iter().filter_map(|path| Some((product(path)?, read(path)))).collect()
}

/// Returns the documents, each paragraph as one text.
fn documents() -> Vec<(String, Vec<Text>)> {
    let root = root();
    let name = |path: &PathBuf| path.strip_prefix(&root).expect("below the root").display().to_string();
    let text = |path: &PathBuf| fs::read_to_string(path).expect("a document can be read");
    super::links::documents().iter().map(|path| (name(path), paragraphs(&text(path)))).collect()
}

/// Returns the paragraphs of a document, each on one line.
fn paragraphs(document: &str) -> Vec<Text> {
    let mut paragraphs = Vec::new();
    let mut open = false;
    for (at, line) in document.lines().enumerate().map(|(at, line)| (at + 1, line.trim())) {
        match paragraphs.last_mut() {
            _ if line.is_empty() => open = false,
            Some(Text { text, .. }) if open => *text = format!("{text} {line}"),
            _ => {
                paragraphs.push(Text { line: at, text: line.to_owned() });
                open = true;
            }
        }
    }
    paragraphs
}

/// Returns the words of a text in lower case, separated and surrounded by one space.
fn words(text: &str) -> String {
    let lower = text.to_lowercase();
    let words = lower.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty());
    format!(" {} ", words.collect::<Vec<_>>().join(" "))
}

/// Returns the faults of a text's language.
fn faults(text: &str) -> Vec<String> {
    let words = words(text);
    let has = |phrase: &str| words.contains(&format!(" {phrase} "));
    let actorless = ACTORLESS.iter().filter(|word| has(word));
    let phrases = PHRASES.iter().filter(|(phrase, _)| has(phrase));
    let no_noun = NO_NOUN.iter().filter(|form| {
        words.match_indices(&format!(" {form} ")).any(|(at, found)| {
            let after = words[at + found.len()..].starts_with("longer ");
            !words[..at].ends_with(" there") && !after
        })
    });
    actorless
        .map(|word| format!("{word:?}: name the client, the upstream, the operator, the process"))
        .chain(phrases.map(|(phrase, instead)| format!("{phrase:?}: {instead}")))
        .chain(no_noun.map(|form| format!("{form:?}: write \"{}t a …\"", form)))
        .collect()
}

#[test]
fn doc_comments_begin_with_a_noun_or_verb() {
    let mut wrong = Vec::new();
    for (path, source) in sources() {
        for Text { line, text } in Texts::of(&source).docs {
            if CLAUSES.iter().any(|clause| text.starts_with(clause)) {
                wrong.push(format!("{path}:{line}: {text}"));
            }
        }
    }
    assert!(wrong.is_empty(), "begin with the noun or verb that the item is:\n{}", wrong.join("\n"));
}

#[test]
fn texts_are_standard_english_and_name_the_actor() {
    let source = |(path, source): (String, String)| {
        let Texts { mut strings, docs } = Texts::of(&source);
        strings.extend(docs);
        (path, strings)
    };
    let mut wrong = Vec::new();
    for (path, texts) in sources().into_iter().map(source).chain(documents()) {
        for Text { line, text } in texts {
            wrong.extend(faults(&text).iter().map(|fault| format!("{path}:{line}: {fault}\n    {text}")));
        }
    }
    assert!(wrong.is_empty(), "{} faults:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn faults_are_found_across_words_and_marks() {
    for fault in
        ["`x` is no month", "they are no\ntokens", "Whoever asks", "we told it", "passes as it came."]
    {
        assert_eq!(faults(fault).len(), 1, "{fault}");
    }
    for standard in
        ["There is no month", "if there are no tokens", "is no longer valid", "is not a month", "{told_at}"]
    {
        assert_eq!(faults(standard), Vec::<String>::new(), "{standard}");
    }
    let lines = paragraphs("# A\n\nb is\nno c\n\nd").iter().map(|one| one.line).collect::<Vec<_>>();
    assert_eq!(lines, [1, 3, 6]);
}
