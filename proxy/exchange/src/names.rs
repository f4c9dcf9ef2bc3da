//! Names as records and labels have them.

use std::sync::Arc;

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

/// Returns the same as [`recorded`], in the name's own allocation if the name does not change.
pub(crate) fn shared(name: Option<Arc<str>>) -> Arc<str> {
    let Some(name) = name else { return recorded("").into() };
    match recorded(&name) {
        same if same.len() == name.len() => name,
        other => other.into(),
    }
}
