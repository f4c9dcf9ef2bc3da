//! What promtool says: all expressions parse, the rule files are rules, and their tests pass.

use std::fmt::Write;
use std::path::Path;
use std::process::Command;

use crate::expressions;
use crate::programs::program;
use crate::repository;

/// What promtool printed, and whether it was content.
fn promtool(arguments: &[&str], folder: &Path) -> (bool, String) {
    let output =
        Command::new(program("promtool")).args(arguments).current_dir(folder).output().expect("it runs");
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (output.status.success(), text)
}

#[test]
fn every_expression_parses() {
    let all = expressions::all();
    assert!(all.len() > 200, "only {} expressions were found", all.len());
    let mut file = "groups:\n- name: all\n  rules:\n".to_owned();
    for (number, expression) in all.iter().enumerate() {
        // JSON strings are YAML strings.
        let text = serde_json::to_string(&expression.text).expect("a string");
        writeln!(file, "  - {{ record: \"expression:{number}:\", expr: {text} }}").expect("memory");
    }
    let folder = std::env::temp_dir().join(format!("tokenmeter-expressions-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a temporary folder");
    std::fs::write(folder.join("all.yaml"), file).expect("it can be written");
    let (good, said) = promtool(&["check", "rules", "all.yaml"], &folder);
    std::fs::remove_dir_all(&folder).expect("it can be removed");
    let places: Vec<String> = all
        .iter()
        .enumerate()
        .filter(|(number, _)| said.contains(&format!("expression:{number}:")))
        .map(|(_, expression)| format!("{}\n    {}", expression.place, expression.text))
        .collect();
    assert!(good, "{said}\n{}", places.join("\n"));
    assert!(said.contains(&format!("{} rules found", all.len())), "{said}");
}

#[test]
fn the_rule_files_are_rules() {
    let files = expressions::rule_files();
    let mut arguments = vec!["check", "rules", "--lint=all", "--lint-fatal"];
    arguments.extend(files.iter().map(String::as_str));
    let (good, said) = promtool(&arguments, &repository::file("."));
    assert!(good, "{said}");
}

#[test]
fn the_rules_do_what_they_say() {
    let files = repository::files("helm/tokenmeter/rules/tests", ".yaml");
    let mut arguments = vec!["test", "rules"];
    arguments.extend(files.iter().map(String::as_str));
    let (good, said) = promtool(&arguments, &repository::file("."));
    assert!(good, "{said}");
}
