//! Names of tenants, principals and end users: external text, bounded (law 12).

use std::collections::HashSet;
use std::sync::{Arc, Mutex, TryLockError};

/// The limit of a name's length, bytes; a longer one is cut on a character boundary.
pub const NAME_MAX_BYTES: usize = 128;

/// The limit of shared names; further ones live as long as their exchanges. It allows four thousand tenants,
/// and invented names take at most half a megabyte.
const MAX_SHARED_NAMES: usize = 4096;

/// A valid name: not empty, at most [`NAME_MAX_BYTES`], no control characters.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(Arc<str>);

impl Name {
    /// `text` as a name, trimmed, if it is valid.
    pub fn of(text: &str) -> Option<Self> {
        bounded(text).map(|text| Self(text.into()))
    }

    /// `text` as a tenant's name, if it is valid: names that begin with `_` are reserved.
    pub fn of_tenant(text: &str) -> Option<Self> {
        is_tenant_name(text).then(|| Self::of(text))?
    }

    /// The name as shared text.
    pub fn text(&self) -> &Arc<str> {
        &self.0
    }
}

/// Returns true if `text` may name a tenant. Names that begin with `_` are reserved, such as `_other`, which
/// all tenants above the label limit share.
pub(crate) fn is_tenant_name(text: &str) -> bool {
    !text.trim_start().starts_with('_')
}

/// The part of `text` that may be a name; `None` if there is none.
pub(crate) fn bounded(text: &str) -> Option<&str> {
    let text = text.trim();
    let text = &text[..text.floor_char_boundary(NAME_MAX_BYTES)];
    // The cut may leave a trailing space.
    let text = text.trim_end();
    (!text.is_empty() && !text.chars().any(char::is_control)).then_some(text)
}

/// Shared names. Never waits: a name that cannot be looked up at once is allocated.
#[derive(Debug, Default)]
pub(crate) struct Names(Mutex<HashSet<Arc<str>>>);

impl Names {
    /// `text` from outside as a tenant's name.
    pub(crate) fn tenant(&self, text: &str) -> Option<Arc<str>> {
        is_tenant_name(text).then(|| self.shared(text))?
    }

    /// `text` as shared text; `None` if it is not a name.
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
        if known.len() < MAX_SHARED_NAMES {
            known.insert(name.clone());
        }
        Some(name)
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.0.lock().map_or(0, |known| known.len())
    }
}

#[cfg(test)]
#[path = "name_tests.rs"]
mod tests;
