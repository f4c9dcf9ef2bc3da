//! The settings file, as a tree in which every key and value knows its line. Nothing is checked
//! here but that it is YAML: what the keys mean is `settings`' business.

use std::fmt;
use std::fs::File as FsFile;
use std::io::{self, Read};
use std::sync::Arc;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{DuplicateKeyPolicy, Spanned};

use crate::mistake::Mistake;
use crate::origin::Origin;

/// A value in the file, and the line it starts on.
#[derive(Clone, Debug)]
pub struct Node {
    /// The value.
    pub shape: Shape,
    /// Where it is.
    pub origin: Origin,
}

/// What a value looks like.
#[derive(Clone, Debug)]
pub enum Shape {
    /// Text, a number or a boolean, as text.
    Scalar(String),
    /// A list.
    List(Vec<Node>),
    /// Keys with their lines, in the order they were written, repeated ones included.
    Map(Vec<(String, Origin, Node)>),
    /// A key with nothing behind it, or an empty file.
    Nothing,
}

/// Reads the file at `path`.
pub fn read(path: &str) -> Result<Node, Mistake> {
    let whole = Origin::File { path: path.into(), line: 0 };
    match bounded_text(path) {
        Ok(text) => parse(path, &text),
        Err(cause) => Err(Mistake::at(
            &whole,
            format!("cannot be read: {cause}"),
            "name a readable YAML file of at most 1 MiB with --config",
        )),
    }
}

/// Reads `text` as the contents of the file at `path`.
pub fn parse(path: &str, text: &str) -> Result<Node, Mistake> {
    let path: Arc<str> = path.into();
    let options = serde_saphyr::options! { duplicate_keys: DuplicateKeyPolicy::LastWins };
    match serde_saphyr::from_str_with_options::<Spanned<Tree>>(text, options) {
        Ok(tree) => Ok(place(tree, &path)),
        Err(error) => {
            let line = error.location().map_or(0, |location| location.line());
            let told = error.without_snippet().to_string();
            let what = told.split(" at line ").next().unwrap_or(&told);
            Err(Mistake::at(
                &Origin::File { path, line },
                format!("not YAML: {what}"),
                "mend the line, or quote the value if it holds `: `, `#`, `[` or `{`, or begins with `*`",
            ))
        }
    }
}

fn bounded_text(path: &str) -> io::Result<String> {
    let mut text = String::new();
    FsFile::open(path)?.take(FILE_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > FILE_BYTES {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it is larger than 1 MiB"));
    }
    Ok(text)
}

/// Bytes of a settings file. A thousand upstreams take a tenth of it; a log given by mistake does not.
const FILE_BYTES: u64 = 1024 * 1024;

fn place(tree: Spanned<Tree>, path: &Arc<str>) -> Node {
    let at = |line| Origin::File { path: path.clone(), line };
    let shape = match tree.value {
        Tree::Scalar(text) => Shape::Scalar(text),
        Tree::List(items) => Shape::List(items.into_iter().map(|item| place(item, path)).collect()),
        Tree::Map(entries) => Shape::Map(
            entries
                .into_iter()
                .map(|(key, value)| (key.value, at(key.referenced.line()), place(value, path)))
                .collect(),
        ),
        Tree::Nothing => Shape::Nothing,
    };
    Node { shape, origin: at(tree.referenced.line()) }
}

/// The tree as serde hands it out.
enum Tree {
    Scalar(String),
    List(Vec<Spanned<Tree>>),
    Map(Vec<(Spanned<String>, Spanned<Tree>)>),
    Nothing,
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TreeVisitor)
    }
}

struct TreeVisitor;

impl<'de> Visitor<'de> for TreeVisitor {
    type Value = Tree;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value, a list or keys with values")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Tree, E> {
        Ok(Tree::Scalar(value.to_string()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Tree, E> {
        Ok(Tree::Scalar(value.to_string()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Tree, E> {
        Ok(Tree::Scalar(value.to_string()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Tree, E> {
        Ok(Tree::Scalar(value.to_string()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Tree, E> {
        Ok(Tree::Scalar(value.to_owned()))
    }

    fn visit_none<E>(self) -> Result<Tree, E> {
        Ok(Tree::Nothing)
    }

    fn visit_unit<E>(self) -> Result<Tree, E> {
        Ok(Tree::Nothing)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Tree, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Tree::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Tree, A::Error> {
        let mut map = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            map.push(entry);
        }
        Ok(Tree::Map(map))
    }
}
