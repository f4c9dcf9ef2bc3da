//! The keys and texts of a file's maps. Each key is taken once, an unknown key is an error, and reading continues after
//! an error, so that all are reported.

use crate::file::{Node, Shape};
use crate::{Diagnostic, Origin};

/// The keys of a map that are not taken yet.
#[derive(Debug)]
pub struct Fields {
    /// The place of the map.
    pub origin: Origin,
    /// True if the map has an unknown key, which may be a misspelled one that is missing.
    pub has_unknown: bool,
    entries: Vec<(String, Origin, Node)>,
}

impl Fields {
    /// Reads the keys of a map. `noun` names it in errors; `unknown` returns the problem of an unknown key and its
    /// remedy.
    pub fn read(
        node: Node,
        noun: &str,
        known: &[&str],
        unknown: impl Fn(&str) -> (String, String),
        errors: &mut Vec<Diagnostic>,
    ) -> Option<Self> {
        let remedy = || format!("write `key: value` lines; known are {}", known.join(", "));
        Self::of_any(node, noun, remedy, errors, |key, origin| {
            let (problem, remedy) = Some(key).filter(|key| !known.contains(key)).map(&unknown)?;
            Some(Diagnostic::at(origin, problem, remedy))
        })
    }

    /// Reads a map. `remedy` is that of a value that is not a map; `reject` returns the error of a key, if it has one.
    pub fn of_any(
        node: Node,
        noun: &str,
        remedy: impl Fn() -> String,
        errors: &mut Vec<Diagnostic>,
        reject: impl Fn(&str, &Origin) -> Option<Diagnostic>,
    ) -> Option<Self> {
        let Shape::Map(entries) = node.shape else {
            errors.push(Diagnostic::at(&node.origin, format!("{noun} is not a map"), remedy()));
            return None;
        };
        let mut fields = Self { origin: node.origin, has_unknown: false, entries: Vec::new() };
        for (key, origin, value) in entries {
            // An unknown key may be a secret, which the error of a repeated one would name.
            if let Some(error) = reject(&key, &origin) {
                errors.push(error);
                fields.has_unknown = true;
            } else if let Some((_, first, _)) = fields.entries.iter().find(|(earlier, ..)| *earlier == key) {
                let problem = format!("`{key}` is set twice, first at {first}");
                errors.push(Diagnostic::at(&origin, problem, "remove one of them"));
            } else {
                fields.entries.push((key, origin, value));
            }
        }
        Some(fields)
    }

    /// Removes and returns the value of a key.
    pub fn take(&mut self, key: &str) -> Option<Node> {
        let at = self.entries.iter().position(|(known, ..)| known == key)?;
        let (_, origin, node) = self.entries.remove(at);
        // A value on lines of its own begins below its key; errors name the key's line.
        Some(Node { shape: node.shape, origin })
    }

    /// Returns the remaining keys and their values, in the order of the file.
    pub fn into_entries(self) -> impl Iterator<Item = (String, Node)> {
        self.entries.into_iter().map(|(key, origin, node)| (key, Node { shape: node.shape, origin }))
    }
}

/// Returns a value's text.
pub fn text(key: &str, node: Node, errors: &mut Vec<Diagnostic>) -> Option<(String, Origin)> {
    let (problem, remedy) = match node.shape {
        Shape::Scalar(text) if !text.trim().is_empty() => return Some((text.trim().to_owned(), node.origin)),
        Shape::Scalar(_) | Shape::Nothing => {
            (format!("`{key}` has no value"), "write one, or remove the line")
        }
        Shape::List(_) | Shape::Map(_) => (
            format!("`{key}` is not a single value"),
            "write the value on the same line, in quotes if it holds `[` or `{`",
        ),
    };
    errors.push(Diagnostic::at(&node.origin, problem, remedy));
    None
}
