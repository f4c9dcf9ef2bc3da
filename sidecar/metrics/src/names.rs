//! Names as labels. The law: a name from the wire is untrusted text, so it is bounded and can
//! neither break the page nor grow it.

use std::borrow::Cow;

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

#[cfg(test)]
mod tests;
