//! The list of surviving mutants: each is of an existing line of code, so that the list stays current.

use std::fs;

use super::root;

#[test]
fn listed_mutants_are_of_existing_lines() {
    let list = fs::read_to_string(root().join("tests/mutants/survivors.md")).expect("the list can be read");
    let mut gone = Vec::new();
    let mut listed = 0;
    for mutant in list.lines().filter_map(|line| line.strip_prefix("    ")) {
        listed += 1;
        let (file, change) = mutant.split_once(": ").expect("a mutant begins with its file");
        let code = fs::read_to_string(root().join(file)).unwrap_or_default();
        let lines = code.lines().map(str::trim).filter(|line| !line.is_empty());
        if !lines.into_iter().any(|line| change.ends_with(&format!(": {line}"))) {
            gone.push(mutant);
        }
    }
    assert!(listed > 0, "the list has no mutants");
    assert!(gone.is_empty(), "no line of the code is that of:\n{}", gone.join("\n"));
}
