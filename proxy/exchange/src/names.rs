//! Names as records and labels have them.

use std::sync::Arc;

use scan::Name;

/// Returns the name of a model for labels and records. `_unknown` stands for no name and `_other` for all names
/// beyond a cap, so that a model of such a name has U+FFFD in place of `_`.
pub fn recorded(name: &str) -> &str {
    match name {
        "" => "_unknown",
        "_unknown" => "\u{fffd}unknown",
        "_other" => "\u{fffd}other",
        name => name,
    }
}

/// Returns a name for a record, if it is one.
pub(crate) fn named(name: &Name) -> Option<Arc<str>> {
    (!name.is_empty()).then(|| name.as_str().into())
}
