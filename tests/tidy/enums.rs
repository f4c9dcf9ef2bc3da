//! Lists of an enum's variants: `scan::listed_enum!` writes them. One that is written by hand has a reason, and lacks no
//! variant.

use std::collections::BTreeSet;
use std::fs;

/// The enums with a list written by hand, with the reason.
const BY_HAND: &[(&str, &str)] = &[
    ("Key", "a key that has data is not in the list"),
    ("Mode", "its crate depends on no crate with the macro"),
    ("Period", "its crate depends on no crate with the macro"),
    ("Section", "its crate depends on no crate with the macro"),
    ("Status", "C reads the enum where it is written, and its texts are those of C"),
    ("Threshold", "its crate depends on no crate with the macro"),
];

/// A list of all variants of an enum.
struct List {
    name: String,
    listed: BTreeSet<String>,
    /// The variants without data.
    declared: BTreeSet<String>,
}

/// Returns the lists written by hand in a source file.
fn lists(code: &str) -> Vec<List> {
    let mut lists = Vec::new();
    for (at, start) in code.match_indices("const ALL: ") {
        let Some((kind, rest)) = code[at + start.len()..].split_once('=') else { continue };
        let (Some(impl_at), Some((list, _))) = (code[..at].rfind("\nimpl "), rest.split_once("];")) else {
            continue;
        };
        let name = code[impl_at..].split([' ', '<']).nth(1).expect("a type").to_owned();
        // The body of a macro, and the list of another type, do not begin like this.
        let Some(declared) = variants(code, &name).filter(|_| kind.contains("[Self")) else { continue };
        let listed = list.split("Self::").skip(1).map(word).collect();
        lists.push(List { name, listed, declared });
    }
    lists
}

/// Returns the variants without data of the enum with this name.
fn variants(code: &str, name: &str) -> Option<BTreeSet<String>> {
    let (_, body) = code.split_once(&format!("enum {name} {{"))?;
    let (body, _) = body.split_once("\n}")?;
    let lines = body.lines().map(str::trim).filter(|line| line.starts_with(|c: char| c.is_uppercase()));
    Some(lines.filter(|line| !line.contains(['(', '{'])).map(word).collect())
}

/// Returns the identifier with which `text` begins.
fn word(text: &str) -> String {
    text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

#[test]
fn lists_of_variants_are_not_written_by_hand() {
    let mut found = BTreeSet::new();
    for path in super::files(&["proxy", "sidecar", "ffi"], "rs") {
        let shown = path.display().to_string();
        if shown.contains("/tests/") || shown.ends_with("tests.rs") {
            continue;
        }
        for list in lists(&fs::read_to_string(&path).expect("a source file can be read")) {
            let is_allowed = BY_HAND.iter().any(|(name, _)| *name == list.name);
            assert!(is_allowed, "{shown}: `listed_enum!` declares {} and its list", list.name);
            assert_eq!(list.listed, list.declared, "{shown}: the list of {}", list.name);
            found.insert(list.name);
        }
    }
    let allowed: BTreeSet<_> = BY_HAND.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(found, allowed, "an enum without a list leaves BY_HAND");
}

#[test]
fn lists_and_variants_are_read() {
    let code = "pub enum A {\n    /// One.\n    One,\n    #[default]\n    Two = 2,\n    Three(u8),\n}\n\n\
                impl A {\n    const ALL: [Self; 1] = [Self::One];\n}\n\nimpl B {\n    const ALL: Self = Self { a: [1] };\n}\n";
    let lists = lists(code);
    let [list] = &lists[..] else { panic!("{} lists", lists.len()) };
    assert_eq!((list.name.as_str(), list.listed.len()), ("A", 1));
    assert_eq!(list.declared.iter().collect::<Vec<_>>(), ["One", "Two"]);
}
