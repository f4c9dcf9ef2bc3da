//! Dependencies between crates: none exists for one symbol, and none leads to the binary's configuration (law 13).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use super::dependencies::{dependencies, is_free, manifest_path};

/// Dependencies of which one symbol is used, with the reason. The list may only become shorter.
const ONE_SYMBOL: &[(&str, &str, &str)] = &[
    ("tokenmeter-accounting", "tokenmeter-text", "`money`: every crate prints amounts alike"),
    ("tokenmeter-inject", "tokenmeter-text", "`suggestion`: every crate names the nearest word alike"),
    ("tokenmeter-top", "tokenmeter-text", "`printable`: every crate shows untrusted names alike"),
    ("tokenmeter-otlp", "tokenmeter-text", "`money`: every crate prints amounts alike"),
];

const BINARY: &str = "tokenmeter";

/// Returns the paths below `krate` that `code` uses: `a::{B, c::D}` is `B` and `c::D`.
fn symbols(code: &str, krate: &str) -> BTreeSet<String> {
    let start = format!("{krate}::");
    let mut found = BTreeSet::new();
    for (at, _) in code.match_indices(&start) {
        let before = &code[..at];
        let is_name = |c: char| c.is_alphanumeric() || c == '_';
        // `crate::price::…` is a module of the crate itself; `::price::…` is the crate.
        let is_inner = before.strip_suffix("::").is_some_and(|path| path.ends_with(is_name));
        if !before.ends_with(is_name) && !is_inner {
            leaves(&code[at + start.len()..], "", &mut found);
        }
    }
    found
}

/// Adds the leaves of the path or list of paths with which `code` begins.
fn leaves(code: &str, prefix: &str, to: &mut BTreeSet<String>) {
    if let Some(list) = code.strip_prefix('{') {
        let (mut depth, mut from) = (0, 0);
        for (at, c) in list.char_indices() {
            match c {
                ',' | '}' if depth == 0 => {
                    leaves(list[from..at].trim_start(), prefix, to);
                    from = at + 1;
                    if c == '}' {
                        return;
                    }
                }
                '{' => depth += 1,
                '}' => depth -= 1,
                _ => {}
            }
        }
        return;
    }
    let end = code.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '*')).unwrap_or(code.len());
    let (name, rest) = code.split_at(end);
    let is_module = name.starts_with(|c: char| c.is_lowercase());
    match rest.strip_prefix("::").filter(|_| is_module) {
        Some(rest) if !rest.starts_with('<') => leaves(rest, &format!("{prefix}{name}::"), to),
        _ if name.is_empty() => {}
        _ => drop(to.insert(format!("{prefix}{name}"))),
    }
}

/// Returns the product code of a package, without comments and tests.
pub(super) fn code(package: &str) -> String {
    let folder: PathBuf = manifest_path(package).with_file_name("src");
    let mut code = String::new();
    for path in super::files(&[folder.to_str().expect("UTF-8")], "rs") {
        let name = path.to_str().expect("UTF-8");
        if name.ends_with("tests.rs") || name.contains("/tests/") {
            continue;
        }
        let text = fs::read_to_string(&path).expect("a source file can be read");
        let product = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        for line in product.lines() {
            code += line.split("//").next().unwrap_or_default();
            code.push('\n');
        }
    }
    code
}

#[test]
fn no_dependency_exists_for_one_symbol() {
    let all = dependencies();
    let mut used: BTreeMap<(&str, &str), BTreeSet<String>> = BTreeMap::new();
    for (package, uses) in all.iter().filter(|(package, _)| !is_free(package)) {
        let code = code(package);
        for dependency in uses {
            if let Some(krate) = dependency.strip_prefix("tokenmeter-") {
                used.insert((package, dependency), symbols(&code, krate));
            }
        }
    }
    assert!(used.len() > 30, "only {} dependencies were found", used.len());
    for ((package, dependency), symbols) in &used {
        let is_allowed = ONE_SYMBOL.iter().any(|(from, to, _)| from == package && to == dependency);
        assert!(
            symbols.len() > 1 || is_allowed,
            "{package} depends on {dependency} for {symbols:?} only: move it down, or take it from a crate that has it \
             in its API"
        );
        assert!(
            symbols.len() == 1 || !is_allowed,
            "{package} uses more of {dependency}: remove it from the list"
        );
    }
}

#[test]
fn configuration_stays_in_the_binary() {
    let all = dependencies();
    for (package, uses) in all.iter().filter(|(package, _)| !is_free(package) && *package != BINARY) {
        for configuration in [BINARY, "clap"] {
            assert!(!uses.contains(configuration), "{package} must not depend on {configuration}");
        }
        let code = code(package);
        for source in ["env::var", "env::args"] {
            assert!(!code.contains(source), "{package} reads its configuration itself: {source}");
        }
    }
}

#[test]
fn symbols_are_leaves_of_paths() {
    let of = |code: &str| symbols(code, "price").into_iter().collect::<Vec<_>>().join(" ");
    assert_eq!(
        of("use price::{Book, diff::{diff, Kind as K}};\n::price::Book::read(x)"),
        "Book diff::Kind diff::diff"
    );
    assert_eq!(of("crate::price::Book, my_price::Book, price::litellm::import(a)"), "litellm::import");
}
