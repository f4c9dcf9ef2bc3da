//! Reads the parts of a tenants file. Each key is taken once, an unknown key is an error, and reading
//! continues after an error, so that all are reported.

use std::path::Path;

use origin::fields::{self, Fields};
use origin::file::{self, Node, Shape};
use origin::{Diagnostic, Origin};
use tenant::{BodyKey, Nets};
use text::quoted;

use crate::{Hash, KeySource};

/// Reads a tenants file; holds the findings so far.
pub(super) struct RulesReader<'a> {
    pub(super) path: &'a Path,
    pub(super) hash: Hash,
    pub(super) errors: Vec<Diagnostic>,
    pub(super) warnings: Vec<Diagnostic>,
    pub(super) sources: Vec<KeySource>,
    /// True if there are trusted peers.
    pub(super) trusts_peers: bool,
    pub(super) hash_principals: bool,
    /// The distinct members of a body that rules and end users need.
    pub(super) members: Vec<BodyKey>,
    reported_hash_key: bool,
}

impl<'a> RulesReader<'a> {
    pub(super) fn new(path: &'a Path, hash: Hash) -> Self {
        Self {
            path,
            hash,
            errors: Vec::new(),
            warnings: Vec::new(),
            sources: Vec::new(),
            trusts_peers: false,
            hash_principals: true,
            members: Vec::new(),
            reported_hash_key: false,
        }
    }

    pub(super) fn report_error(
        &mut self,
        origin: &Origin,
        problem: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.errors.push(Diagnostic::at(origin, problem, remedy));
    }

    /// Returns the keys of a map; unknown ones are errors.
    pub(super) fn fields(&mut self, node: Node, noun: &str, known: &[&str]) -> Option<Fields> {
        Fields::read(node, noun, known, &mut self.errors)
    }

    /// Returns a value's text.
    pub(super) fn text(&mut self, key: &str, node: Node) -> Option<(String, Origin)> {
        fields::text(key, node, &mut self.errors)
    }

    /// Returns one text, or a list of them; an empty result comes with an error.
    pub(super) fn texts(&mut self, key: &str, node: Node) -> Vec<(String, Origin)> {
        match node.shape {
            Shape::List(items) if items.is_empty() => {
                self.report_error(
                    &node.origin,
                    format!("`{key}` names none"),
                    "name some, or remove the line",
                );
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
            let problem = format!("`{}` is neither true nor false", quoted(&text));
            self.report_error(&origin, problem, "write true or false");
        }
        truth
    }

    /// Returns networks and addresses.
    pub(super) fn nets(&mut self, key: &str, node: Node) -> Nets {
        let texts = self.texts(key, node);
        for (text, origin) in &texts {
            if Nets::read([text.as_str()]).is_err() {
                let problem = format!("`{}` is neither a network nor an address", quoted(text));
                self.report_error(origin, problem, "write it as in 10.0.0.0/8, fd00::/8 or 192.0.2.7");
            }
        }
        Nets::read(texts.iter().map(|(text, _)| text.as_str())).unwrap_or_default()
    }

    /// Reports once that the hash key file is missing.
    pub(super) fn needs_hash_key(&mut self, origin: &Origin, why: &str, or: &str) {
        if matches!(self.hash, Hash::None) && !self.reported_hash_key {
            self.reported_hash_key = true;
            let remedy = format!(
                "set --hash-key-file to a file of 32 random bytes or more, the same across a fleet{or}"
            );
            self.report_error(origin, format!("{why}, and there is no hash key file"), remedy);
        }
    }
}
