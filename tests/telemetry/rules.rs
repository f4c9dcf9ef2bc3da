//! The rules' house style: each alert says what, how much and what to do; each rule has a test.

use std::collections::BTreeSet;

use crate::expressions::{self, Rule};
use crate::repository;

fn rules() -> Vec<Rule> {
    expressions::rule_files().iter().flat_map(|path| expressions::rules(path)).collect()
}

#[test]
fn each_alert_says_what_and_what_to_do() {
    for rule in rules().into_iter().filter(|rule| rule.is_alert) {
        let name = &rule.name;
        assert!(name.starts_with("Tokenmeter"), "{name}: alerts of one system share a first word");
        let severity = rule.labels.iter().find(|(label, _)| label == "severity");
        assert!(
            severity.is_some_and(|(_, value)| ["critical", "warning", "info"].contains(&value.as_str())),
            "{name}: severity"
        );
        for (wanted, least) in [("summary", 20), ("description", 60), ("runbook", 80)] {
            let text = rule.annotations.iter().find(|(annotation, _)| annotation == wanted);
            assert!(text.is_some_and(|(_, text)| text.len() >= least), "{name}: {wanted}");
        }
        let description =
            &rule.annotations.iter().find(|(annotation, _)| annotation == "description").expect("it").1;
        // A truth value needs no telling: the alert is its being false.
        let is_truth = rule.expression.contains("== 0");
        assert!(is_truth || description.contains("$value"), "{name}: the description has no number");
    }
}

#[test]
fn recorded_names_have_a_level_a_metric_and_an_operation() {
    for rule in rules().into_iter().filter(|rule| !rule.is_alert) {
        assert_eq!(rule.name.split(':').count(), 3, "{}: level:metric:operations", rule.name);
    }
}

#[test]
fn each_alert_fires_in_a_test_and_each_record_is_worked_out() {
    let (mut fired, mut asked) = (BTreeSet::new(), String::new());
    for path in repository::files("helm/tokenmeter/rules/tests", ".yaml") {
        for test in expressions::yaml(&path)["tests"].as_array().expect("tests") {
            let (mut quiet, mut alerts) = (0, 0);
            for case in test["promql_expr_test"].as_array().into_iter().flatten() {
                let samples = case["exp_samples"].as_array().expect("samples");
                asked += case["expr"].as_str().expect("an expression");
                asked.push('\n');
                quiet += usize::from(samples.is_empty());
                for sample in samples {
                    let labels = sample["labels"].as_str().expect("labels");
                    if let Some(name) = labels.split("alertname=\"").nth(1) {
                        alerts += 1;
                        fired.insert(name.split('"').next().unwrap_or_default().to_owned());
                    }
                }
            }
            // An alert that never ends, or never is quiet, would pass without this.
            assert!(alerts == 0 || quiet > 0, "{path}: {}: nothing is ever quiet", test["name"]);
        }
    }
    let untested: Vec<String> = rules()
        .into_iter()
        .filter(
            |rule| if rule.is_alert { !fired.contains(&rule.name) } else { !mentions(&asked, &rule.name) },
        )
        .map(|rule| rule.name)
        .collect();
    assert!(untested.is_empty(), "no test in helm/tokenmeter/rules/tests has: {untested:#?}");
}

/// Whether the name stands in the text as a whole.
fn mentions(text: &str, name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    text.match_indices(name).any(|(at, _)| !text[at + name.len()..].starts_with(is_part))
}
