//! How the tenants file is read: each key is taken once, what is left over is a mistake, and a
//! mistake does not keep the others from being told.

use std::path::Path;

use tenant::{BodyKey, Nets};
use text::nearest;

use super::{Hash, KeySource};
use crate::file::{self, Node, Shape};
use crate::mistake::Mistake;
use crate::origin::Origin;

/// What was read so far, and what was wrong with it.
pub(super) struct Reading<'a> {
    pub(super) path: &'a Path,
    pub(super) hash: Hash,
    pub(super) mistakes: Vec<Mistake>,
    pub(super) warnings: Vec<Mistake>,
    pub(super) sources: Vec<KeySource>,
    /// Whether there is any peer whose header fields are believed.
    pub(super) trusts_some: bool,
    pub(super) hash_principals: bool,
    /// The different members of a body that are looked at, by rules and for end users.
    pub(super) members: Vec<BodyKey>,
    told_hash_key: bool,
}

/// The keys under one place that have not been taken yet.
pub(super) struct Fields {
    pub(super) origin: Origin,
    /// Whether something stands there that was not understood, and may be what is missing.
    pub(super) odd: bool,
    entries: Vec<(String, Origin, Node)>,
}

impl Fields {
    /// The value of a key.
    pub(super) fn take(&mut self, key: &str) -> Option<Node> {
        let at = self.entries.iter().position(|(known, ..)| known == key)?;
        let (_, origin, node) = self.entries.remove(at);
        // A value with lines of its own begins below its key, which is the place people look for.
        Some(Node { shape: node.shape, origin })
    }
}

impl<'a> Reading<'a> {
    pub(super) fn new(path: &'a Path, hash: Hash) -> Self {
        Self {
            path,
            hash,
            mistakes: Vec::new(),
            warnings: Vec::new(),
            sources: Vec::new(),
            trusts_some: false,
            hash_principals: true,
            members: Vec::new(),
            told_hash_key: false,
        }
    }

    pub(super) fn mistake(&mut self, origin: &Origin, what: impl Into<String>, remedy: impl Into<String>) {
        self.mistakes.push(Mistake::at(origin, what, remedy));
    }

    /// The keys of a place, of those that are known there.
    pub(super) fn fields(&mut self, node: Node, noun: &str, known: &[&str]) -> Option<Fields> {
        let unknown = |key: &str| format!("{noun} has no `{}`", key.escape_debug());
        self.fields_told(node, noun, known, unknown)
    }

    /// The same where a key that is not known may be a secret: it is not repeated.
    pub(super) fn secret_fields(&mut self, node: Node, noun: &str, known: &[&str]) -> Option<Fields> {
        self.fields_told(node, noun, known, |_| format!("{noun} has a key that it should not have"))
    }

    fn fields_told(
        &mut self,
        node: Node,
        noun: &str,
        known: &[&str],
        unknown: impl Fn(&str) -> String,
    ) -> Option<Fields> {
        let Shape::Map(entries) = node.shape else {
            let remedy = format!("write `key: value` lines; known are {}", known.join(", "));
            self.mistake(&node.origin, format!("{noun} is not keys with values"), remedy);
            return None;
        };
        let mut fields = Fields { origin: node.origin, odd: false, entries: Vec::new() };
        for (key, origin, value) in entries {
            if !known.contains(&key.as_str()) {
                let remedy = match nearest(&key, known.iter().copied()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("known are {}", known.join(", ")),
                };
                self.mistake(&origin, unknown(&key), remedy);
                fields.odd = true;
            } else if let Some((_, first, _)) = fields.entries.iter().find(|(earlier, ..)| *earlier == key) {
                let what = format!("`{key}` is written twice, first at {first}");
                self.mistake(&origin, what, "remove one of them");
            } else {
                fields.entries.push((key, origin, value));
            }
        }
        Some(fields)
    }

    /// A value's text.
    pub(super) fn text(&mut self, key: &str, node: Node) -> Option<(String, Origin)> {
        match node.shape {
            Shape::Scalar(text) if !text.trim().is_empty() => Some((text.trim().to_owned(), node.origin)),
            Shape::Scalar(_) | Shape::Nothing => {
                self.mistake(&node.origin, format!("`{key}` has no value"), "write one, or remove the line");
                None
            }
            Shape::List(_) | Shape::Map(_) => {
                let remedy = "write the value on the same line, in quotes if it holds `[` or `{`";
                self.mistake(&node.origin, format!("`{key}` is not a single value"), remedy);
                None
            }
        }
    }

    /// One text, or a list of them; never none without a mistake.
    pub(super) fn texts(&mut self, key: &str, node: Node) -> Vec<(String, Origin)> {
        match node.shape {
            Shape::List(items) if items.is_empty() => {
                self.mistake(&node.origin, format!("`{key}` names none"), "name some, or remove the line");
                Vec::new()
            }
            Shape::List(items) => items.into_iter().filter_map(|item| self.text(key, item)).collect(),
            shape => self.text(key, Node { shape, origin: node.origin }).into_iter().collect(),
        }
    }

    pub(super) fn switch(&mut self, fields: &mut Fields, key: &str) -> Option<bool> {
        let node = fields.take(key)?;
        let (text, origin) = self.text(key, node)?;
        let truth = file::truth(&text);
        if truth.is_none() {
            let what = format!("`{}` is neither true nor false", text.escape_debug());
            self.mistake(&origin, what, "write true or false");
        }
        truth
    }

    /// Networks, or single addresses.
    pub(super) fn nets(&mut self, key: &str, node: Node) -> Nets {
        let texts = self.texts(key, node);
        for (text, origin) in &texts {
            if Nets::read([text.as_str()]).is_err() {
                let what = format!("`{}` is neither a network nor an address", text.escape_debug());
                self.mistake(origin, what, "write it as in 10.0.0.0/8, fd00::/8 or 192.0.2.7");
            }
        }
        Nets::read(texts.iter().map(|(text, _)| text.as_str())).unwrap_or_default()
    }

    /// That something here needs the hash key file; told once.
    pub(super) fn needs_hash_key(&mut self, origin: &Origin, why: &str, or: &str) {
        if matches!(self.hash, Hash::None) && !self.told_hash_key {
            self.told_hash_key = true;
            let remedy = format!(
                "name a file of 32 random bytes or more, the same across a fleet, by --hash-key-file {or}"
            );
            self.mistake(origin, format!("{why}, and there is no hash key file"), remedy.trim_end());
        }
    }
}
