//! Names of tenants, principals and end users: text that others wrote, made bounded (law 12).

use std::collections::HashSet;
use std::sync::{Arc, Mutex, TryLockError};

/// Bytes of a name; what is longer is cut at a character's boundary.
pub const NAME_BYTES: usize = 128;

/// Names kept to be shared; those beyond live as long as their exchanges. A thousand tenants fit
/// four times, and names made up by a client cannot hold more than half a megabyte.
const KEPT: usize = 4096;

/// A name that may be one: not empty, at most [`NAME_BYTES`], no control characters.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(Arc<str>);

impl Name {
    /// `text` as a name, if it can be one: surrounding white space does not count.
    pub fn of(text: &str) -> Option<Self> {
        bounded(text).map(|text| Self(text.into()))
    }

    /// `text` as a tenant's name, if it can be one: the names that begin with `_` are ours.
    pub fn of_tenant(text: &str) -> Option<Self> {
        may_be_a_tenant(text).then(|| Self::of(text))?
    }

    /// The name as shared text.
    pub fn text(&self) -> &Arc<str> {
        &self.0
    }
}

/// Whether `text` may name a tenant: names that begin with `_` are ours, as `_other` is, which all
/// tenants beyond the labels' limit share.
pub(crate) fn may_be_a_tenant(text: &str) -> bool {
    !text.trim_start().starts_with('_')
}

/// The part of `text` that may be a name; `None` if there is none.
pub(crate) fn bounded(text: &str) -> Option<&str> {
    let text = text.trim();
    let text = &text[..text.floor_char_boundary(NAME_BYTES)];
    // Cutting may have ended it in a space.
    let text = text.trim_end();
    (!text.is_empty() && !text.chars().any(char::is_control)).then_some(text)
}

/// Names seen before, shared. Never waits: what it cannot look up at once is made anew.
#[derive(Debug, Default)]
pub(crate) struct Names(Mutex<HashSet<Arc<str>>>);

impl Names {
    /// `text` as a tenant that somebody else named.
    pub(crate) fn tenant(&self, text: &str) -> Option<Arc<str>> {
        may_be_a_tenant(text).then(|| self.shared(text))?
    }

    /// `text` as shared text; `None` if it is no name.
    pub(crate) fn shared(&self, text: &str) -> Option<Arc<str>> {
        let text = bounded(text)?;
        let mut known = match self.0.try_lock() {
            Ok(known) => known,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return Some(text.into()),
        };
        if let Some(known) = known.get(text) {
            return Some(known.clone());
        }
        let name: Arc<str> = text.into();
        if known.len() < KEPT {
            known.insert(name.clone());
        }
        Some(name)
    }

    #[cfg(test)]
    pub(crate) fn kept(&self) -> usize {
        self.0.lock().map_or(0, |known| known.len())
    }
}

#[cfg(test)]
#[path = "name_tests.rs"]
mod tests;
