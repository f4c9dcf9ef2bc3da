//! The names of a model that a request gives beside its first one: in other places, in lists, and as the parts of a name
//! with commas. A gateway may use any of them (LiteLLM runs each of `a,b`), so none is left out.

use std::sync::Arc;

use crate::limits::OTHER_MODELS_MAX;
use crate::name::{self, Name};

/// Further names of the model of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OtherModels {
    names: Vec<Arc<str>>,
    is_incomplete: bool,
}

impl OtherModels {
    /// Adds a name, and the names of which it is a list.
    pub fn add(&mut self, name: &[u8]) {
        self.add_one(name);
        self.add_parts(name);
    }

    /// Adds the names of which `name` is a list.
    pub fn add_parts(&mut self, name: &[u8]) {
        if is_list(name) {
            let mut parts = name.split(|byte| *byte == b',');
            while let Some(part) = parts.next().filter(|_| !self.is_full()) {
                self.add_one(part);
            }
        }
    }

    fn add_one(&mut self, name: &[u8]) {
        let name = Name::cut_str(name.trim_ascii());
        if name.is_empty() || self.names.iter().any(|known| **known == *name) {
            return;
        }
        self.is_incomplete |= self.names.len() == OTHER_MODELS_MAX;
        if !self.is_incomplete {
            self.names.extend(name::shared(name));
        }
    }

    /// Returns true if there are more names than are kept.
    fn is_full(&self) -> bool {
        self.is_incomplete && self.names.len() == OTHER_MODELS_MAX
    }

    /// Adds the names of `more`.
    pub fn merge(&mut self, more: &Self) {
        more.names.iter().for_each(|name| self.add_one(name.as_bytes()));
        self.is_incomplete |= more.is_incomplete;
    }

    /// Records that there may be a name that cannot be read.
    pub fn mark_incomplete(&mut self) {
        self.is_incomplete = true;
    }

    /// Returns false if there are more names than are kept, or one that cannot be read.
    pub fn is_complete(&self) -> bool {
        !self.is_incomplete
    }

    /// Returns the names, each at most as long as a [`Name`].
    pub fn names(&self) -> &[Arc<str>] {
        &self.names
    }
}

/// Returns true if a name is a list of names.
pub(super) fn is_list(name: &[u8]) -> bool {
    name.contains(&b',')
}
