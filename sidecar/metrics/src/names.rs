//! Names as labels. The law: a name from the wire is untrusted text, so it is bounded and can
//! neither break the page nor grow it.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The label value for what is beyond a cap.
pub const OTHER: &str = "_other";

/// The label value for what is not known yet.
pub const UNKNOWN: &str = "_unknown";

/// Bytes of a name that are kept: longer than any model name of a public registry.
const NAME_BYTES: usize = 128;

/// A name fit for a label: cut to [`NAME_BYTES`] on a character boundary, and NUL replaced, where
/// some scrapers take the page to end. All else the page escapes.
pub(crate) fn label(name: &str) -> Cow<'_, str> {
    if name.contains('\0') {
        return Cow::Owned(cut(&cut(name).replace('\0', "\u{fffd}")).to_owned());
    }
    Cow::Borrowed(cut(name))
}

fn cut(name: &str) -> &str {
    &name[..name.floor_char_boundary(NAME_BYTES)]
}

/// Whether a label is one of our own, for which there is always room.
pub(crate) fn is_ours(name: &str) -> bool {
    name == OTHER || name == UNKNOWN
}

/// The names of one kind that have a label of their own: the first so many that came. A name keeps
/// the label it got, so that no counter goes from one label to another.
#[derive(Debug)]
pub(crate) struct Names {
    cap: usize,
    admitted: BTreeSet<Arc<str>>,
}

impl Names {
    pub(crate) fn new(cap: usize) -> Self {
        Self { cap, admitted: BTreeSet::new() }
    }

    /// The label of a name: its own, or `_other` if there is no room for it.
    pub(crate) fn label(&mut self, name: &str) -> Arc<str> {
        let name = match &*label(name) {
            "" => Cow::Borrowed(UNKNOWN),
            name => Cow::Owned(name.to_owned()),
        };
        if let Some(known) = self.admitted.get(&*name) {
            return Arc::clone(known);
        }
        let label: Arc<str> = name.into();
        if is_ours(&label) {
            return label;
        }
        if self.admitted.len() >= self.cap {
            return OTHER.into();
        }
        self.admitted.insert(Arc::clone(&label));
        label
    }
}

#[cfg(test)]
mod tests;
