//! Rules for alerts: each has a summary, a number and a remedy; each rule has a test.

use std::collections::BTreeSet;

use crate::expressions::{self, Rule};
use crate::repository;

fn rules() -> Vec<Rule> {
    expressions::rule_files().iter().flat_map(|path| expressions::rules(path)).collect()
}

#[test]
fn each_alert_has_a_summary_and_a_remedy() {
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
        // A boolean has no number to show: the alert means that it is false.
        let is_truth = rule.expression.contains("== 0");
        assert!(is_truth || description.contains("$value"), "{name}: the description has no number");
    }
}

#[test]
fn recorded_names_have_level_metric_and_operation() {
    for rule in rules().into_iter().filter(|rule| !rule.is_alert) {
        assert_eq!(rule.name.split(':').count(), 3, "{}: level:metric:operations", rule.name);
    }
}

#[test]
fn each_rule_is_tested() {
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
            // An alert that always fires would pass without this.
            assert!(
                alerts == 0 || quiet > 0,
                "{path}: {}: no test expects the alert not to fire",
                test["name"]
            );
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

/// Returns true if the text contains the name as a whole word.
fn mentions(text: &str, name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    text.match_indices(name).any(|(at, _)| !text[at + name.len()..].starts_with(is_part))
}
