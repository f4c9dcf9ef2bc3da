//! Names as labels. Invariant: a name from the wire is untrusted, so it is bounded, cannot break the page's syntax, and
//! cannot control a terminal that shows the page.

use std::borrow::Cow;

/// Label value of names beyond a cap.
pub const OTHER: &str = "_other";

/// Label value of names that are not known yet.
pub const UNKNOWN: &str = "_unknown";

/// Maximum bytes of a name: longer than any model name of a public registry.
const NAME_MAX_BYTES: usize = 128;

/// Replaces each character that a label must not contain.
const REPLACEMENT: &str = "\u{fffd}";

/// Returns a name as a label: at most [`NAME_MAX_BYTES`], cut at a character boundary, without control characters,
/// which a terminal would execute and at which some scrapers stop, and without a leading `_`, which is reserved.
/// Reserved labels pass unchanged: the relay escapes a model of such a name.
pub(crate) fn label(name: &str) -> Cow<'_, str> {
    let name = cut(name);
    let has_reserved_prefix = name.starts_with('_') && !is_reserved(name);
    if !has_reserved_prefix && !name.contains(char::is_control) {
        return Cow::Borrowed(name);
    }
    let mut label = name.replace(char::is_control, REPLACEMENT);
    if has_reserved_prefix {
        label.replace_range(..1, REPLACEMENT);
    }
    label.truncate(label.floor_char_boundary(NAME_MAX_BYTES));
    Cow::Owned(label)
}

fn cut(name: &str) -> &str {
    &name[..name.floor_char_boundary(NAME_MAX_BYTES)]
}

/// Returns true for a reserved label, to which no cap applies.
pub(crate) fn is_reserved(name: &str) -> bool {
    name == OTHER || name == UNKNOWN
}

#[cfg(test)]
mod tests;
