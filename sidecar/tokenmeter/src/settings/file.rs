//! Reads a YAML file as a tree whose keys and values carry their lines. The meaning of keys is left to
//! `settings`. A value is the text as written, as in the other places of a setting; [`truth`], [`number`] and
//! [`decimal`] read it as YAML does.

use std::fs::File as FsFile;
use std::io::{self, Read};
use std::sync::Arc;

use rust_decimal::Decimal;

use crate::settings::diagnostic::Diagnostic;
use crate::settings::origin::Origin;

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

/// Reads the file at `path`.
pub fn read(path: &str) -> Result<Node, Diagnostic> {
    let whole = Origin::File { path: path.into(), line: 0 };
    match bounded_text(path) {
        Ok(text) => parse(path, &text),
        Err(cause) => Err(Diagnostic::at(
            &whole,
            format!("cannot be read: {cause}"),
            "name a readable YAML file of at most 1 MiB with --config",
        )),
    }
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
pub(crate) fn truth(text: &str) -> Option<bool> {
    yaml::canonical(text)?.parse().ok()
}

/// Reads a whole number as digits or as a YAML number: `0x10`, `1_000`, `1e3`.
pub(crate) fn number(text: &str) -> Option<u64> {
    text.parse().ok().or_else(|| yaml::canonical(text)?.parse().ok())
}

/// Reads a decimal number exactly, with or without an exponent.
pub(crate) fn decimal(text: &str) -> Option<Decimal> {
    Decimal::from_str_exact(text).or_else(|_| Decimal::from_scientific(text)).ok()
}

fn bounded_text(path: &str) -> io::Result<String> {
    let mut text = String::new();
    FsFile::open(path)?.take(FILE_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > FILE_BYTES {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it is larger than 1 MiB"));
    }
    Ok(text)
}

/// Bytes of a settings file: ten times what a thousand upstreams take.
const FILE_BYTES: u64 = 1024 * 1024;

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
