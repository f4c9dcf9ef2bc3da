//! Names as labels. The law: a name from the wire is untrusted text, so it is bounded, can neither break
//! the page nor grow it, and gives no order to a terminal that shows the page.

use std::borrow::Cow;

/// The label value for what is beyond a cap.
pub const OTHER: &str = "_other";

/// The label value for what is not known yet.
pub const UNKNOWN: &str = "_unknown";

/// Bytes of a name that are kept: longer than any model name of a public registry.
const NAME_BYTES: usize = 128;

/// Stands in a label for each character of a name that a label does not show.
const REPLACEMENT: &str = "\u{fffd}";

/// Returns a name fit for a label: at most [`NAME_BYTES`], cut on a character boundary, without control
/// characters, which a terminal would obey and some scrapers stop at, and without a leading `_`, which
/// is kept for labels of ours. Those pass: the relay gives no model of such a name.
pub(crate) fn label(name: &str) -> Cow<'_, str> {
    let name = cut(name);
    let is_reserved = name.starts_with('_') && !is_ours(name);
    if !is_reserved && !name.contains(char::is_control) {
        return Cow::Borrowed(name);
    }
    let mut shown = name.replace(char::is_control, REPLACEMENT);
    if is_reserved {
        shown.replace_range(..1, REPLACEMENT);
    }
    shown.truncate(shown.floor_char_boundary(NAME_BYTES));
    Cow::Owned(shown)
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
