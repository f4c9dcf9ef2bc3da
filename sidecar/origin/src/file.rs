//! Reads YAML as a tree whose keys and values carry their lines. The meaning of keys is left to the caller. A value is
//! the text as written, as in a flag or a variable; [`truth`] and [`number`] read it as YAML does.
//!
//! Law: every written value is kept as text, and the expansion of aliases is bounded.

mod tree;

use std::sync::Arc;

use serde_saphyr::Spanned;

use crate::{Diagnostic, Origin};
use tree::Tree;

/// A value in the file.
#[derive(Clone, Debug)]
pub struct Node {
    /// The value.
    pub shape: Shape,
    /// The line it starts on.
    pub origin: Origin,
}

/// The shape of a value.
#[derive(Clone, Debug)]
pub enum Shape {
    /// Text, a number or a boolean, as written: a name parsed as a number would lose its spelling, and
    /// a price parsed as a float its digits.
    Scalar(String),
    /// A list.
    List(Vec<Node>),
    /// Keys with their lines in file order, repeated keys included.
    Map(Vec<(String, Origin, Node)>),
    /// A key without a value, or an empty file.
    Nothing,
}

/// Reads `text` as the contents of the file at `path`, which is empty if the text has no file.
///
/// # Errors
/// The text is not YAML, or expands to more than two million values.
pub fn parse(path: &str, text: &str) -> Result<Node, Diagnostic> {
    let path: Arc<str> = path.into();
    match tree::read(text) {
        Ok(tree) => Ok(locate(tree, &path, text)),
        Err(error) => {
            let line = error.location().map_or(0, |location| location.line());
            let message = error.without_snippet().to_string();
            let message = message.split(" at line ").next().unwrap_or(&message);
            let (problem, remedy) = match message.contains("budget") || message.contains("replay") {
                true => (
                    "too many values from here on".to_owned(),
                    "remove unused entries, and use fewer aliases (`*name`)",
                ),
                false => (
                    format!("not YAML: {message}"),
                    "fix the line, or quote the value if it holds `: `, `#`, `[` or `{`, or begins with `*`",
                ),
            };
            Err(Diagnostic::at(&Origin::File { path, line }, problem, remedy))
        }
    }
}

/// Reads a YAML boolean: `true`, `yes`, `On` and the like.
pub fn truth(text: &str) -> Option<bool> {
    tree::canonical(text)?.parse().ok()
}

/// Reads a whole number as digits or as a YAML number: `0x10`, `1_000`, `1e3`.
pub fn number(text: &str) -> Option<u64> {
    text.parse().ok().or_else(|| tree::canonical(text)?.parse().ok())
}

fn locate(tree: Spanned<Tree>, path: &Arc<str>, text: &str) -> Node {
    let at = |line| Origin::File { path: Arc::clone(path), line };
    let shape = match tree.value {
        Tree::Text(said) => Shape::Scalar(said),
        Tree::Resolved(canonical) => {
            let span = tree.defined.span();
            let from = span.byte_offset().and_then(|at| usize::try_from(at).ok());
            let length = span.byte_len().and_then(|length| usize::try_from(length).ok());
            let raw = from.zip(length).and_then(|(from, length)| text.get(from..from.checked_add(length)?));
            Shape::Scalar(raw.map_or(canonical, |raw| raw.trim().to_owned()))
        }
        Tree::List(items) => Shape::List(items.into_iter().map(|item| locate(item, path, text)).collect()),
        Tree::Map(entries) => Shape::Map(
            entries
                .into_iter()
                .map(|(key, value)| (key.value, at(key.referenced.line()), locate(value, path, text)))
                .collect(),
        ),
        Tree::Nothing => Shape::Nothing,
    };
    Node { shape, origin: at(tree.referenced.line()) }
}

#[cfg(test)]
mod tests {
    use super::{Shape, number, parse, truth};

    #[test]
    fn keys_and_values_have_their_lines() {
        let root = parse("t.yaml", "a: 1\nb:\n  - yes\n").expect("it is YAML");
        let Shape::Map(entries) = root.shape else { panic!("{:?}", root.shape) };
        let [(a, at_a, one), (b, at_b, list)] = &entries[..] else { panic!("{entries:?}") };
        assert_eq!((a.as_str(), b.as_str()), ("a", "b"));
        assert_eq!([at_a, &one.origin, at_b].map(ToString::to_string), ["t.yaml:1", "t.yaml:1", "t.yaml:2"]);
        let Shape::List(items) = &list.shape else { panic!("{list:?}") };
        assert_eq!(items[0].origin.to_string(), "t.yaml:3");
        let error = parse("t.yaml", "a: [\n").expect_err("not closed").to_string();
        assert!(error.starts_with("t.yaml:"), "{error}");
    }

    #[test]
    fn text_without_a_file_has_lines_alone() {
        let root = parse("", "\na: 1\n").expect("it is YAML");
        assert_eq!(root.origin.to_string(), "line 2");
    }

    #[test]
    fn texts_are_read_as_yaml_reads_them() {
        assert_eq!(["yes", "Off", "2"].map(truth), [Some(true), Some(false), None]);
        assert_eq!(["007", "0x10", "1e3", "-1"].map(number), [Some(7), Some(16), Some(1000), None]);
    }

    fn scalar(text: &str) -> String {
        let Shape::Map(entries) = parse("", text).expect("it is YAML").shape else {
            panic!("not a map: {text}")
        };
        match entries.into_iter().next_back() {
            Some((_, _, node)) => match node.shape {
                Shape::Scalar(said) => said,
                other => panic!("{other:?}"),
            },
            None => panic!("empty: {text}"),
        }
    }

    #[test]
    fn plain_values_keep_their_spelling() {
        for said in [
            "0.1000000000000000055511151231257827",
            "5.0000000000000004E-8",
            "007",
            "1_000",
            "-0",
            "2.50",
            "yes",
            "0x10",
            "12345678901234567890123",
        ] {
            assert_eq!(scalar(&format!("ä: ö\na: {said}")), said);
            assert_eq!(scalar(&format!("a: {said}  # why\n")), said);
            assert_eq!(scalar(&format!("a: '{said}'\n")), said);
            assert_eq!(scalar(&format!("{{b: [ü], a: {said}}}")), said);
            assert_eq!(scalar(&format!("x: &anchor {said}\ny: *anchor")), said);
        }
    }

    #[test]
    fn long_list_is_parsed() {
        let Shape::List(items) = parse("", &"- x\n".repeat(300_000)).expect("it is YAML").shape else {
            panic!("not a list")
        };
        assert_eq!(items.len(), 300_000);
    }

    #[test]
    fn alias_bomb_is_rejected() {
        let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..9 {
            let below = format!("*a{},", level - 1).repeat(10);
            text.push_str(&format!("a{level}: &a{level} [{below}]\n"));
        }
        let problem = parse("", &text).expect_err("ten billion values");
        assert!(problem.line > 1 && problem.message.contains("too many values"), "{problem}");
    }

    #[test]
    fn syntax_error_has_its_line() {
        let problem = parse("", "a: 1\nb: [2\n").expect_err("not closed");
        assert!(problem.line >= 2 && problem.message.starts_with("not YAML: "), "{problem}");
    }
}
