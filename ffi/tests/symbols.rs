//! The symbols that the shared library exports: those of the header and no others.

use std::path::Path;
use std::process::Command;

use crate::toolchain::{folder, library, run};

const GOLDEN: &str = "tests/symbols.txt";

/// The symbols that a shared library exports, one a line.
pub(crate) fn exported(library: &Path) -> String {
    let mut command = Command::new("nm");
    command.args(["--dynamic", "--defined-only", "--format=posix"]).arg(library);
    let printed = run(&mut command);
    let mut symbols: Vec<_> = printed.lines().filter_map(|line| line.split(' ').next()).collect();
    symbols.sort_unstable();
    symbols.join("\n") + "\n"
}

#[test]
fn shared_library_exports_the_listed_symbols_only() {
    let found = exported(&library("libtokenmeter_ffi.so"));
    let path = folder().join(GOLDEN);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &found).expect("the list can be written");
    }
    let listed = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(found, listed, "a symbol that was published never goes; UPDATE_GOLDEN=1 takes new ones");
    assert!(found.lines().all(|symbol| symbol.starts_with("tm_")), "{found}");
}

#[test]
fn header_declares_each_symbol() {
    let header = std::fs::read_to_string(folder().join("include/tokenmeter.h")).expect("there is a header");
    let listed = std::fs::read_to_string(folder().join(GOLDEN)).expect("there is a list");
    for symbol in listed.lines() {
        assert!(header.contains(&format!("{symbol}(")), "the header lacks {symbol}");
    }
    let declares =
        |line: &&str| line.contains("tm_") && line.contains('(') && !line.starts_with([' ', '/', '}']);
    assert_eq!(header.lines().filter(declares).count(), listed.lines().count());
}
