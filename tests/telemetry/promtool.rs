//! promtool's checks: all expressions parse, the rule files are valid, and their tests pass.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::expressions;
use crate::programs::program;
use crate::questions;
use crate::repository;

/// promtool's output, and true on success.
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
#[ignore = "needs tests/telemetry/install"]
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
#[ignore = "needs tests/telemetry/install"]
fn rule_files_are_valid() {
    let files = expressions::rule_files();
    let mut arguments = vec!["check", "rules", "--lint=all", "--lint-fatal"];
    arguments.extend(files.iter().map(String::as_str));
    let (good, said) = promtool(&arguments, &repository::file("."));
    assert!(good, "{said}");
}

#[test]
#[ignore = "needs tests/telemetry/install"]
fn documented_commands_load_every_rule_file() {
    let document = repository::read("helm/tokenmeter/rules/README.md");
    let block = |language: &str| {
        let rest = document.split(&format!("```{language}\n")).nth(1);
        rest.and_then(|rest| rest.split("```").next()).expect("a block").to_owned()
    };
    let folder = temporary("settings");
    let here = |text: String| text.replace("/etc/prometheus", &folder.display().to_string());
    let commands = here(block("sh"));
    let copied = Command::new("sh").args(["-e", "-c", &commands]).current_dir(repository::file(".")).status();
    assert!(copied.expect("it runs").success(), "the commands fail");
    std::fs::write(folder.join("prometheus.yml"), here(block("yaml"))).expect("it can be written");
    let (good, said) = promtool(&["check", "config", "--lint=none", "prometheus.yml"], &folder);
    std::fs::remove_dir_all(&folder).expect("it can be removed");
    let told = format!("{} rule files found", expressions::rule_files().len());
    assert!(good && said.contains(&told) && document.contains(&told), "{told}: {said}");
}

/// A division by zero is `NaN` or infinite, which is of no use to a person.
#[test]
#[ignore = "needs tests/telemetry/install"]
fn idle_system_answers_every_question_with_numbers() {
    let mut file = "evaluation_interval: 1h\ntests:\n".to_owned();
    let quoted = |text: &str| serde_json::to_string(text).expect("a string");
    for question in questions::questions() {
        let query = &question.query;
        writeln!(file, "- name: {}\n  interval: 5m\n  input_series:", quoted(&question.title))
            .expect("memory");
        for series in questions::idle_series(query) {
            writeln!(file, "  - {{ series: {}, values: 0x9000 }}", quoted(&series)).expect("memory");
        }
        writeln!(file, "  promql_expr_test:").expect("memory");
        // NaN is the only number that differs from itself.
        for bad in [format!("({query}) != ({query})"), format!("abs({query}) == Inf")] {
            writeln!(file, "  - {{ expr: {}, eval_time: 721h, exp_samples: [] }}", quoted(&bad))
                .expect("memory");
        }
    }
    let folder = temporary("idle");
    std::fs::write(folder.join("idle.yaml"), file).expect("it can be written");
    let (good, said) = promtool(&["test", "rules", "idle.yaml"], &folder);
    std::fs::remove_dir_all(&folder).expect("it can be removed");
    assert!(good, "{said}");
}

#[test]
#[ignore = "needs tests/telemetry/install"]
fn rule_tests_pass() {
    let files = repository::files("helm/tokenmeter/rules/tests", ".yaml");
    let mut arguments = vec!["test", "rules"];
    arguments.extend(files.iter().map(String::as_str));
    let (good, said) = promtool(&arguments, &repository::file("."));
    assert!(good, "{said}");
}
