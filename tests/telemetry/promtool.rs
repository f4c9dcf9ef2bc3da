//! What promtool says: all expressions parse, the rule files are rules, and their tests pass.

use std::fmt::Write;
use std::path::{Path, PathBuf};
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

/// A folder for one test.
fn temporary(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("tokenmeter-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a temporary folder");
    folder
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
    let folder = temporary("expressions");
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
fn the_settings_people_are_shown_are_settings() {
    let document = repository::read("helm/README.md");
    let block = document.split("```yaml\n").nth(1).and_then(|rest| rest.split("```").next());
    // The rules are where ours are.
    let rules = repository::file("helm/tokenmeter/rules");
    let shown =
        block.expect("a block").replace("/etc/prometheus/tokenmeter/rules", &rules.display().to_string());
    let folder = temporary("settings");
    std::fs::write(folder.join("prometheus.yml"), shown).expect("it can be written");
    let (good, said) = promtool(&["check", "config", "--lint=none", "prometheus.yml"], &folder);
    std::fs::remove_dir_all(&folder).expect("it can be removed");
    assert!(good && said.contains("rules found"), "{said}");
}

#[test]
fn the_rules_do_what_they_say() {
    let files = repository::files("helm/tokenmeter/rules/tests", ".yaml");
    let mut arguments = vec!["test", "rules"];
    arguments.extend(files.iter().map(String::as_str));
    let (good, said) = promtool(&arguments, &repository::file("."));
    assert!(good, "{said}");
}
