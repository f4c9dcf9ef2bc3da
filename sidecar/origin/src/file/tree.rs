//! YAML as serde deserializes it, each value with its place in the text.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{DuplicateKeyPolicy, NonFiniteFloatPolicy, Spanned};

/// Returns the number or boolean that YAML reads in a plain value, in one spelling (`yes` is `true`, `0x10` is `16`,
/// `1e3` is `1000`), or `None` if it is neither.
pub(super) fn canonical(text: &str) -> Option<String> {
    match read(text).ok()?.value {
        Tree::Resolved(canonical) => Some(canonical),
        _ => None,
    }
}

/// Parses `text`; duplicate keys are kept.
pub(super) fn read(text: &str) -> Result<Spanned<Tree>, serde_saphyr::Error> {
    let options = serde_saphyr::options! {
        duplicate_keys: DuplicateKeyPolicy::LastWins,
        // The caller that needs a number rejects these with a message of its own.
        non_finite_float_policy: NonFiniteFloatPolicy::PassThrough,
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: MAX_REPLAYED_VALUES },
        budget: serde_saphyr::budget! { max_nodes: MAX_VALUES, max_events: 2 * MAX_VALUES },
    };
    serde_saphyr::from_str_with_options(text, options)
}

/// Maximum number of keys, values and lists in a file: enough for a hundred thousand models.
const MAX_VALUES: usize = 2_000_000;

/// Maximum number of values that aliases (`*name`) repeat.
const MAX_REPLAYED_VALUES: usize = 100_000;

/// The tree as deserialized by serde.
pub(super) enum Tree {
    Text(String),
    /// A plain scalar that YAML reads as a number or a boolean, in canonical form, which may differ from its spelling
    /// in the file.
    Resolved(String),
    List(Vec<Spanned<Tree>>),
    Map(Vec<(Spanned<String>, Spanned<Tree>)>),
    Nothing,
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TreeVisitor)
    }
}

struct TreeVisitor;

impl<'de> Visitor<'de> for TreeVisitor {
    type Value = Tree;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value, a list or keys with values")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Tree, E> {
        Ok(Tree::Resolved(value.to_string()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Tree, E> {
        Ok(Tree::Resolved(value.to_string()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Tree, E> {
        Ok(Tree::Resolved(value.to_string()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Tree, E> {
        Ok(Tree::Resolved(value.to_string()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Tree, E> {
        Ok(Tree::Text(value.to_owned()))
    }

    fn visit_none<E>(self) -> Result<Tree, E> {
        Ok(Tree::Nothing)
    }

    fn visit_unit<E>(self) -> Result<Tree, E> {
        Ok(Tree::Nothing)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Tree, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Tree::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Tree, A::Error> {
        let mut map = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            map.push(entry);
        }
        Ok(Tree::Map(map))
    }
}

#[cfg(test)]
mod tests {
    use super::canonical;

    #[test]
    fn numbers_and_booleans_have_one_canonical_form() {
        for (written, spelling) in [
            ("007", Some("7")),
            ("0x10", Some("16")),
            ("1_000", Some("1000")),
            ("1e3", Some("1000")),
            ("True", Some("true")),
            ("yes", Some("true")),
            ("off", Some("false")),
            ("2.50", Some("2.5")),
            ("'007'", None),
            ("acme", None),
            ("", None),
            ("[", None),
            ("null", None),
        ] {
            assert_eq!(canonical(written).as_deref(), spelling, "{written}");
        }
    }
}
