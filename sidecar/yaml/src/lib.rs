//! A YAML file as a tree in which every key and value has its line. The caller interprets the
//! keys.
//!
//! Law: every written value is kept as text, and the expansion of aliases is bounded.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{DuplicateKeyPolicy, NonFiniteFloatPolicy, Spanned};

/// A value in the file.
#[derive(Debug)]
pub struct Node {
    /// The value.
    pub shape: Shape,
    /// The line it starts on, from 1.
    pub line: u64,
}

/// The kind of a value.
#[derive(Debug)]
pub enum Shape {
    /// Text, a number or a boolean, as written: a name parsed as a number would lose its spelling, and
    /// a price parsed as a float its digits. [`canonical`] returns YAML's interpretation.
    Scalar(String),
    /// A list.
    List(Vec<Node>),
    /// Keys with their lines, in the order of the file, duplicates included.
    Map(Vec<(String, u64, Node)>),
    /// A key without a value, or an empty file.
    Nothing,
}

/// An error in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineError {
    /// The line, from 1; 0 for the whole file.
    pub line: u64,
    /// The error.
    pub message: String,
    /// The remedy.
    pub remedy: String,
}

impl fmt::Display for LineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}; {}", self.message, self.remedy),
            line => write!(f, "line {line}: {}; {}", self.message, self.remedy),
        }
    }
}

/// Parses `text`; duplicate keys are kept.
///
/// # Errors
///
/// The text is not YAML, or expands to more than two million values.
pub fn read(text: &str) -> Result<Node, LineError> {
    match tree(text) {
        Ok(tree) => Ok(locate(tree, text)),
        Err(error) => {
            let line = error.location().map_or(0, |location| location.line());
            let message = error.without_snippet().to_string();
            let message = message.split(" at line ").next().unwrap_or(&message);
            if message.contains("budget") || message.contains("replay") {
                return Err(LineError {
                    line,
                    message: "too many values from here on".to_owned(),
                    remedy: "remove unused entries, and use fewer aliases (`*name`)".to_owned(),
                });
            }
            Err(LineError {
                line,
                message: format!("not YAML: {message}"),
                remedy:
                    "fix the line, or quote the value if it holds `: `, `#`, `[` or `{`, or begins with `*`"
                        .to_owned(),
            })
        }
    }
}

/// Returns the number or boolean that YAML reads in a plain value, in one spelling (`yes` is `true`, `0x10` is `16`,
/// `1e3` is `1000`), or `None` if it is neither.
pub fn canonical(text: &str) -> Option<String> {
    match tree(text).ok()?.value {
        Tree::Resolved(canonical) => Some(canonical),
        _ => None,
    }
}

fn tree(text: &str) -> Result<Spanned<Tree>, serde_saphyr::Error> {
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

fn locate(tree: Spanned<Tree>, text: &str) -> Node {
    let shape = match tree.value {
        Tree::Text(said) => Shape::Scalar(said),
        Tree::Resolved(canonical) => {
            let span = tree.defined.span();
            let from = span.byte_offset().and_then(|at| usize::try_from(at).ok());
            let length = span.byte_len().and_then(|length| usize::try_from(length).ok());
            let raw = from.zip(length).and_then(|(from, length)| text.get(from..from.checked_add(length)?));
            Shape::Scalar(raw.map_or(canonical, |raw| raw.trim().to_owned()))
        }
        Tree::List(items) => Shape::List(items.into_iter().map(|item| locate(item, text)).collect()),
        Tree::Map(entries) => Shape::Map(
            entries
                .into_iter()
                .map(|(key, value)| (key.value, key.referenced.line(), locate(value, text)))
                .collect(),
        ),
        Tree::Nothing => Shape::Nothing,
    };
    Node { shape, line: tree.referenced.line() }
}

/// The tree as deserialized by serde.
enum Tree {
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
    use super::{Shape, canonical, read};

    fn scalar(text: &str) -> String {
        let Shape::Map(entries) = read(text).expect("it is YAML").shape else { panic!("not a map: {text}") };
        match entries.into_iter().next_back() {
            Some((_, _, node)) => match node.shape {
                Shape::Scalar(said) => said,
                other => panic!("{other:?}"),
            },
            None => panic!("empty: {text}"),
        }
    }

    #[test]
    fn plain_values_keep_their_spelling() {
        for said in [
            "0.1000000000000000055511151231257827",
            "5.0000000000000004E-8",
            "007",
            "1_000",
            "-0",
            "2.50",
            "yes",
            "0x10",
            "12345678901234567890123",
        ] {
            assert_eq!(scalar(&format!("ä: ö\na: {said}")), said);
            assert_eq!(scalar(&format!("a: {said}  # why\n")), said);
            assert_eq!(scalar(&format!("a: '{said}'\n")), said);
            assert_eq!(scalar(&format!("{{b: [ü], a: {said}}}")), said);
            assert_eq!(scalar(&format!("x: &anchor {said}\ny: *anchor")), said);
        }
    }

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

    #[test]
    fn long_list_is_parsed() {
        let Shape::List(items) = read(&"- x\n".repeat(300_000)).expect("it is YAML").shape else {
            panic!("not a list")
        };
        assert_eq!(items.len(), 300_000);
    }

    #[test]
    fn alias_bomb_is_rejected() {
        let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..9 {
            let below = format!("*a{},", level - 1).repeat(10);
            text.push_str(&format!("a{level}: &a{level} [{below}]\n"));
        }
        let problem = read(&text).expect_err("ten billion values");
        assert!(problem.line > 1 && problem.message.contains("too many values"), "{problem}");
    }

    #[test]
    fn syntax_error_has_its_line() {
        let problem = read("a: 1\nb: [2\n").expect_err("not closed");
        assert!(problem.line >= 2 && problem.message.starts_with("not YAML: "), "{problem}");
    }
}
