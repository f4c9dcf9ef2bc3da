//! The keys and texts of a file's maps. Each key is taken once, an unknown key is an error, and reading continues after
//! an error, so that all are reported.

use std::collections::HashMap;

use text::{quoted, suggestion};

use crate::file::{Node, Shape};
use crate::{Diagnostic, Origin};

/// The keys of a map that are not taken yet.
#[derive(Debug)]
pub struct Fields {
    /// The place of the map.
    pub origin: Origin,
    /// True if the map has an unknown key, which may be a misspelled one that is missing.
    pub has_unknown: bool,
    noun: String,
    entries: Vec<(String, Node)>,
}

impl Fields {
    /// Reads the keys of a map, which `noun` names in errors.
    pub fn read(node: Node, noun: &str, known: &[&str], errors: &mut Vec<Diagnostic>) -> Option<Self> {
        let problem = |key: &str| format!("{noun} has no key `{}`", quoted(key));
        Self::known(node, noun, known, errors, problem)
    }

    /// Reads the keys of a map in which an unknown key may be a secret: the error does not repeat it.
    pub fn read_secret(node: Node, noun: &str, known: &[&str], errors: &mut Vec<Diagnostic>) -> Option<Self> {
        Self::known(node, noun, known, errors, |_| format!("{noun} has an unknown key"))
    }

    fn known(
        node: Node,
        noun: &str,
        known: &[&str],
        errors: &mut Vec<Diagnostic>,
        unknown: impl Fn(&str) -> String,
    ) -> Option<Self> {
        let remedy = || format!("write `key: value` lines; known are {}", known.join(", "));
        Self::of_any(node, noun, remedy, errors, |key, origin| {
            let is_known = known.contains(&key);
            (!is_known).then(|| Diagnostic::at(origin, unknown(key), suggestion(key, known.iter().copied())))
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
        let Node { shape, origin } = node;
        let Shape::Map(entries) = shape else {
            let is_empty = matches!(shape, Shape::Nothing);
            let problem = format!("{noun} is {}", if is_empty { "empty" } else { "not a map" });
            errors.push(Diagnostic::at(&origin, problem, remedy()));
            return None;
        };
        let mut fields = Self { origin, has_unknown: false, noun: noun.to_owned(), entries: Vec::new() };
        let mut seen: HashMap<String, Origin> = HashMap::new();
        for (key, origin, value) in entries {
            // An unknown key may be a secret, which the error of a repeated one would name.
            if let Some(error) = reject(&key, &origin) {
                errors.push(error);
                fields.has_unknown = true;
            } else if let Some(first) = seen.get(&key) {
                errors.push(Diagnostic::repeated(&key, &origin, first));
            } else {
                seen.insert(key.clone(), origin.clone());
                // A value on lines of its own begins below its key; errors name the key's line.
                fields.entries.push((key, Node { shape: value.shape, origin }));
            }
        }
        Some(fields)
    }

    /// Returns the value of a key.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entries.iter().find(|(known, _)| known == key).map(|(_, node)| node)
    }

    /// Removes and returns the value of a key.
    pub fn take(&mut self, key: &str) -> Option<Node> {
        let at = self.entries.iter().position(|(known, _)| known == key)?;
        Some(self.entries.remove(at).1)
    }

    /// Removes and returns the value of a key that must be there, unless an unknown key is.
    pub fn required(&mut self, key: &str, remedy: &str, errors: &mut Vec<Diagnostic>) -> Option<Node> {
        let node = self.take(key);
        if node.is_none() && !self.has_unknown {
            errors.push(Diagnostic::at(&self.origin, format!("{} has no `{key}`", self.noun), remedy));
        }
        node
    }

    /// Returns the remaining keys and their values, in the order of the file.
    pub fn into_entries(self) -> impl Iterator<Item = (String, Node)> {
        self.entries.into_iter()
    }
}

/// Returns a value's text, without the spaces around it.
pub fn text(key: &str, node: Node, errors: &mut Vec<Diagnostic>) -> Option<(String, Origin)> {
    let shape = match node.shape {
        Shape::Scalar(text) if text.trim().is_empty() => Shape::Nothing,
        Shape::Scalar(text) => Shape::Scalar(text.trim().to_owned()),
        other => other,
    };
    scalar(key, Node { shape, origin: node.origin }, errors)
}

/// Returns a value's text as written, which may be empty.
pub fn scalar(key: &str, node: Node, errors: &mut Vec<Diagnostic>) -> Option<(String, Origin)> {
    let (problem, remedy) = match node.shape {
        Shape::Scalar(text) => return Some((text, node.origin)),
        Shape::Nothing => ("has no value", "write one, or remove the line"),
        Shape::List(_) | Shape::Map(_) => {
            ("is not a single value", "write the value on the same line, in quotes if it holds `[` or `{`")
        }
    };
    errors.push(Diagnostic::at(&node.origin, format!("`{key}` {problem}"), remedy));
    None
}
