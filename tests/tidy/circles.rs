//! No circle of imports has more than three files, so that a file can be read after those that it uses.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::imports::{self, Imports};

/// Files of a circle that a reader can hold in mind: a parent and two children.
const MAX_FILES: usize = 3;

/// Closed tables, which import each of their entries: the files of the folder beside them. These imports do not count.
const TABLES: &[(&str, &str, &str)] = &[
    ("proxy/scan", "dialect.rs", "each dialect is a file, and each has the type `Definition`"),
    (
        "sidecar/servers",
        "kinds.rs",
        "each server's metrics page is a file, and each has the type `Vocabulary`",
    ),
];

/// Larger circles: the crate, a file of the circle, its maximum size, and the reason. The list may only become shorter.
const CIRCLES: &[(&str, &str, usize, &str)] = &[
    ("ffi", "host.rs", 6, "handles, hosts and exporters name each other"),
    ("proxy/scan", "field.rs", 18, "a field has types of requests and frames, which name the dialect"),
    ("sidecar/gpu", "attribution.rs", 5, "the parts of the attribution share its types"),
    ("sidecar/gpu", "source.rs", 5, "the trait of sources creates the sources"),
    ("sidecar/metrics", "collector.rs", 5, "the parts of the collector share its functions"),
    ("sidecar/metrics", "registry.rs", 4, "the registry creates what it registers"),
    ("sidecar/page", "route.rs", 4, "answers name their route, and routes their answer"),
    ("sidecar/price", "charge.rs", 4, "prices and charges name each other"),
    ("sidecar/report", "query.rs", 10, "the query and its groups name each other"),
];

/// Returns the files that a file uses, directly or through others.
fn reached<'a>(imports: &'a Imports, from: &str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&str> = vec![from];
    while let Some(file) = open.pop() {
        for used in imports.get(file).into_iter().flatten() {
            if reached.insert(used.as_str()) {
                open.push(used);
            }
        }
    }
    reached
}

/// Returns the largest sets of two or more files that all use each other, directly or through others.
fn circles(imports: &Imports) -> Vec<BTreeSet<&str>> {
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        imports.keys().map(|file| (file.as_str(), reached(imports, file))).collect();
    let mut circles: Vec<BTreeSet<&str>> = Vec::new();
    for (file, others) in &reached {
        let circle: BTreeSet<&str> =
            others.iter().copied().filter(|other| reached[other].contains(file)).collect();
        if circle.len() > 1 && !circles.contains(&circle) {
            circles.push(circle);
        }
    }
    circles
}

/// Returns the imports of a crate without those of its closed tables.
fn imports_of(krate: &str) -> Imports {
    let mut imports = imports::of_crate(&super::root().join(krate).join("src"));
    for (_, table, _) in TABLES.iter().filter(|(of, ..)| *of == krate) {
        let folder = Path::new(table).with_extension("");
        let used = imports.get_mut(*table).unwrap_or_else(|| panic!("{krate} has no file {table}"));
        used.retain(|file| Path::new(file).parent() != Some(&folder));
    }
    imports
}

/// The folders of the crates that are shipped.
fn crates() -> Vec<String> {
    let mut crates = vec!["ffi".to_owned()];
    for folder in ["proxy", "sidecar"] {
        let entries = std::fs::read_dir(super::root().join(folder)).expect("the folder exists");
        let names = entries.map(|entry| entry.expect("a readable entry").path());
        let names = names.filter(|path: &PathBuf| path.join("Cargo.toml").is_file());
        crates.extend(names.map(|path| {
            format!("{folder}/{}", path.file_name().and_then(|name| name.to_str()).expect("UTF-8"))
        }));
    }
    crates
}

#[test]
fn no_circle_of_imports_is_large() {
    let crates = crates();
    assert!(crates.len() > 30, "only {} crates were found", crates.len());
    for (krate, table, _) in TABLES {
        assert!(crates.iter().any(|of| of == krate), "{krate} with the table {table} is no crate");
    }
    let mut large = Vec::new();
    let mut files = 0;
    for krate in &crates {
        let imports = imports_of(krate);
        files += imports.len();
        for circle in circles(&imports).into_iter().filter(|circle| circle.len() > MAX_FILES) {
            let listed = CIRCLES.iter().filter(|(of, file, ..)| of == krate && circle.contains(file));
            let bound = listed.map(|(_, _, bound, _)| *bound).max().unwrap_or(MAX_FILES);
            assert!(
                circle.len() <= bound,
                "{krate}: {} files import each other, and at most {bound} may: {circle:?}. Move what they share to a \
                 file that imports none of them",
                circle.len()
            );
            large.extend(circle.iter().map(|file| (krate.clone(), (*file).to_owned())));
        }
    }
    assert!(files > 700, "only {files} files were found");
    for (krate, file, ..) in CIRCLES {
        assert!(
            large.contains(&((*krate).to_owned(), (*file).to_owned())),
            "{krate}: {file} is in no large circle: remove it from the list"
        );
    }
}

/// Returns the circles of a crate made of these files and texts.
fn circles_of(files: &[(&str, &str)]) -> String {
    let text = |path: &Path| {
        files.iter().find(|(file, _)| Path::new(file) == path).map(|(_, text)| (*text).to_owned())
    };
    let imports = imports::of_sources(Path::new("lib.rs"), &text);
    circles(&imports)
        .into_iter()
        .map(|circle| circle.into_iter().collect::<Vec<_>>().join(" "))
        .collect::<Vec<_>>()
        .join(", ")
}

#[test]
fn circle_through_all_kinds_of_paths_is_found() {
    let found = circles_of(&[
        ("lib.rs", "mod a; mod b; mod c; mod d; mod e;"),
        ("a.rs", "use crate::b::{B, other as _}; pub struct A;"),
        ("b.rs", "use super::c; pub struct B; fn f() { c::f(); } pub fn other() {}"),
        ("c.rs", "pub fn f() -> u8 { matches!(x, crate::d::D { .. }) }"),
        ("d.rs", "pub struct D; impl D { fn f<'a>(a: &'a super::a::A) {} }"),
        ("e.rs", "use crate::a::A;"),
    ]);
    assert_eq!(found, "a.rs b.rs c.rs d.rs");
}

#[test]
fn reexport_is_followed_to_the_definition() {
    let root = "mod a; mod b; pub use a::A; pub use b::*; pub fn own() {}";
    // `lib.rs` names both without using them, so neither is in a circle with it.
    assert_eq!(
        circles_of(&[
            ("lib.rs", root),
            ("a.rs", "use crate::{B, own}; pub struct A;"),
            ("b.rs", "pub struct B;")
        ]),
        ""
    );
    let found = circles_of(&[
        ("lib.rs", root),
        ("a.rs", "use crate::B; pub struct A;"),
        ("b.rs", "pub struct B(crate::A);"),
    ]);
    assert_eq!(found, "a.rs b.rs");
    // It uses the one that its own code names.
    let found = circles_of(&[
        ("lib.rs", "mod a; pub use a::A; pub fn own(a: A) {}"),
        ("a.rs", "pub struct A; fn f() { crate::own() }"),
    ]);
    assert_eq!(found, "a.rs lib.rs");
}

#[test]
fn child_that_uses_its_parent_is_in_a_circle() {
    let found = circles_of(&[
        ("lib.rs", "mod a;"),
        ("a.rs", "mod child; use child::Child; use std::fmt; struct A;"),
        ("a/child.rs", "use super::{A, fmt}; pub struct Child;"),
    ]);
    assert_eq!(found, "a.rs a/child.rs");
    // What the parent only imports is not its own.
    let found = circles_of(&[
        ("lib.rs", "mod a;"),
        ("a.rs", "mod child; use child::Child; use std::fmt; struct A;"),
        ("a/child.rs", "use super::fmt; pub struct Child;"),
    ]);
    assert_eq!(found, "");
}

#[test]
fn tests_comments_and_literals_are_no_imports() {
    let found = circles_of(&[
        ("lib.rs", "mod a; mod b; #[cfg(test)] mod a_tests;"),
        ("a.rs", "use crate::b::B; pub struct A;"),
        (
            "b.rs",
            r##"
            // crate::a::A
            /* crate::a::A */
            const TEXT: &str = "\"crate::a::A";
            const RAW: &str = r#" " crate::a::A"#;
            const QUOTE: (char, char, u8) = ('"', '\'', b'"');
            pub struct B {
                #[cfg(test)]
                a: crate::a::A,
            }
            #[cfg(test)]
            use crate::a::{A};
            #[cfg(test)]
            impl<S, T> B { fn f() { crate::a::A } }
            #[cfg(test)]
            mod tests { use crate::a::A; }
            "##,
        ),
        ("a_tests.rs", "use crate::a::A;"),
    ]);
    assert_eq!(found, "");
    assert_eq!(
        circles_of(&[
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "use crate::b::B; pub struct A;"),
            ("b.rs", "#[cfg(test)] use crate::a::{C}; #[cfg(not(test))] use crate::a::A; pub struct B;"),
        ]),
        "a.rs b.rs"
    );
}
