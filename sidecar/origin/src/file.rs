//! Reads YAML as a tree whose keys and values carry their lines. The meaning of keys is left to the caller. A value is
//! the text as written, as in a flag or a variable; [`truth`] and [`number`] read it as YAML does.

use std::sync::Arc;

use crate::{Diagnostic, Origin};

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
    /// Text, a number or a boolean, as it was written.
    Scalar(String),
    /// A list.
    List(Vec<Node>),
    /// Keys with their lines in file order, repeated keys included.
    Map(Vec<(String, Origin, Node)>),
    /// A key without a value, or an empty file.
    Nothing,
}

/// Reads `text` as the contents of the file at `path`.
pub fn parse(path: &str, text: &str) -> Result<Node, Diagnostic> {
    let path: Arc<str> = path.into();
    match yaml::read(text) {
        Ok(tree) => Ok(place(tree, &path)),
        Err(problem) => {
            Err(Diagnostic::at(&Origin::File { path, line: problem.line }, problem.message, problem.remedy))
        }
    }
}

/// Reads a YAML boolean: `true`, `yes`, `On` and the like.
pub fn truth(text: &str) -> Option<bool> {
    yaml::canonical(text)?.parse().ok()
}

/// Reads a whole number as digits or as a YAML number: `0x10`, `1_000`, `1e3`.
pub fn number(text: &str) -> Option<u64> {
    text.parse().ok().or_else(|| yaml::canonical(text)?.parse().ok())
}

fn place(node: yaml::Node, path: &Arc<str>) -> Node {
    let at = |line| Origin::File { path: path.clone(), line };
    let shape = match node.shape {
        yaml::Shape::Scalar(text) => Shape::Scalar(text),
        yaml::Shape::List(items) => Shape::List(items.into_iter().map(|item| place(item, path)).collect()),
        yaml::Shape::Map(entries) => Shape::Map(
            entries.into_iter().map(|(key, line, value)| (key, at(line), place(value, path))).collect(),
        ),
        yaml::Shape::Nothing => Shape::Nothing,
    };
    Node { shape, origin: at(node.line) }
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
    fn texts_are_read_as_yaml_reads_them() {
        assert_eq!(["yes", "Off", "2"].map(truth), [Some(true), Some(false), None]);
        assert_eq!(["007", "0x10", "1e3", "-1"].map(number), [Some(7), Some(16), Some(1000), None]);
    }
}
