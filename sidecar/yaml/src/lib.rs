//! A YAML file as a tree in which every key and value knows its line. What the keys mean is the
//! reader's business.
//!
//! Law: nothing is lost that was written, and nothing unfolds beyond measure.

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

/// What a value looks like.
#[derive(Debug)]
pub enum Shape {
    /// Text, a number or a truth value, as it was written: a name that has been a number is no longer that name, and
    /// a price that has been a float no longer that price. [`meant`] says what YAML takes it for.
    Scalar(String),
    /// A list.
    List(Vec<Node>),
    /// Keys with their lines, in the order they were written, repeated ones included.
    Map(Vec<(String, u64, Node)>),
    /// A key with nothing behind it, or an empty file.
    Nothing,
}

/// What keeps a file from being used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The line, from 1; 0 if the file as a whole is meant.
    pub line: u64,
    /// What is wrong there.
    pub what: String,
    /// What to do about it.
    pub remedy: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}; {}", self.what, self.remedy),
            line => write!(f, "line {line}: {}; {}", self.what, self.remedy),
        }
    }
}

/// Reads `text`; a key that stands twice is there twice.
///
/// # Errors
///
/// It is not YAML, or unfolds to more than two million values.
pub fn read(text: &str) -> Result<Node, Problem> {
    match tree(text) {
        Ok(tree) => Ok(place(tree, text)),
        Err(error) => {
            let line = error.location().map_or(0, |location| location.line());
            let told = error.without_snippet().to_string();
            let what = told.split(" at line ").next().unwrap_or(&told);
            if what.contains("budget") || what.contains("replay") {
                return Err(Problem {
                    line,
                    what: "from here on it is more than can be read at once".to_owned(),
                    remedy: "leave out what nobody uses, and use `*name` less often".to_owned(),
                });
            }
            Err(Problem {
                line,
                what: format!("not YAML: {what}"),
                remedy:
                    "mend the line, or quote the value if it holds `: `, `#`, `[` or `{`, or begins with `*`"
                        .to_owned(),
            })
        }
    }
}

/// Returns the number or the truth value that YAML takes a plain value for, in one spelling (`yes` is `true`, `0x10`
/// is `16`, `1e3` is `1000`), or `None` if it is neither.
pub fn meant(text: &str) -> Option<String> {
    match tree(text).ok()?.value {
        Tree::Resolved(canonical) => Some(canonical),
        _ => None,
    }
}

fn tree(text: &str) -> Result<Spanned<Tree>, serde_saphyr::Error> {
    let options = serde_saphyr::options! {
        duplicate_keys: DuplicateKeyPolicy::LastWins,
        // Whoever wants a number refuses them, as what they are.
        non_finite_float_policy: NonFiniteFloatPolicy::PassThrough,
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: REPLAYED },
        budget: serde_saphyr::budget! { max_nodes: NODES, max_events: 2 * NODES },
    };
    serde_saphyr::from_str_with_options(text, options)
}

/// Keys, values and lists in a file: a hundred thousand models.
const NODES: usize = 2_000_000;

/// Those among them that `*name` repeats.
const REPLAYED: usize = 100_000;

fn place(tree: Spanned<Tree>, text: &str) -> Node {
    let shape = match tree.value {
        Tree::Text(said) => Shape::Scalar(said),
        Tree::Resolved(canonical) => {
            let span = tree.defined.span();
            let from = span.byte_offset().and_then(|at| usize::try_from(at).ok());
            let length = span.byte_len().and_then(|length| usize::try_from(length).ok());
            let raw = from.zip(length).and_then(|(from, length)| text.get(from..from.checked_add(length)?));
            Shape::Scalar(raw.map_or(canonical, |raw| raw.trim().to_owned()))
        }
        Tree::List(items) => Shape::List(items.into_iter().map(|item| place(item, text)).collect()),
        Tree::Map(entries) => Shape::Map(
            entries
                .into_iter()
                .map(|(key, value)| (key.value, key.referenced.line(), place(value, text)))
                .collect(),
        ),
        Tree::Nothing => Shape::Nothing,
    };
    Node { shape, line: tree.referenced.line() }
}

/// The tree as serde hands it out.
enum Tree {
    Text(String),
    /// A plain scalar that YAML takes for a number or a truth value; what it looks like now is not
    /// always how it was written.
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
    use super::{Shape, meant, read};

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
    fn plain_values_stay_as_they_were_written() {
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
    fn numbers_and_truth_values_have_one_spelling() {
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
            assert_eq!(meant(written).as_deref(), spelling, "{written}");
        }
    }

    #[test]
    fn a_long_list_is_read() {
        let Shape::List(items) = read(&"- x\n".repeat(300_000)).expect("it is YAML").shape else {
            panic!("not a list")
        };
        assert_eq!(items.len(), 300_000);
    }

    #[test]
    fn a_file_that_unfolds_beyond_measure_is_refused() {
        let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..9 {
            let below = format!("*a{},", level - 1).repeat(10);
            text.push_str(&format!("a{level}: &a{level} [{below}]\n"));
        }
        let problem = read(&text).expect_err("ten billion values");
        assert!(problem.line > 1 && problem.what.contains("more than can be read"), "{problem}");
    }

    #[test]
    fn what_is_not_yaml_is_told_with_its_line() {
        let problem = read("a: 1\nb: [2\n").expect_err("not closed");
        assert!(problem.line >= 2 && problem.what.starts_with("not YAML: "), "{problem}");
    }
}
