//! Every name in every expression is one that there is: metrics, labels, values of closed labels.
//! Prometheus answers a misspelled one with silence.

use std::collections::BTreeSet;

use metrics::Metric;

use crate::catalogue::{self, NOT_YET, VALUES_NOT_YET};
use crate::expressions;
use crate::promql::{self, Matcher};

#[test]
fn every_metric_and_label_is_known() {
    let known = catalogue::series();
    let mut wrong = Vec::new();
    let mut selectors = 0;
    for expression in expressions::all() {
        let names = promql::names(&expression.text);
        let mut labels = BTreeSet::from(["le".to_owned()]);
        for selector in &names.selectors {
            selectors += 1;
            let Some(of_metric) = known.get(&selector.metric) else {
                wrong.push(format!("{}: there is no metric {}", expression.place, selector.metric));
                continue;
            };
            for matcher in selector.matchers.iter().filter(|matcher| !of_metric.contains(&matcher.label)) {
                wrong.push(format!(
                    "{}: {} has no label {}",
                    expression.place, selector.metric, matcher.label
                ));
            }
            labels.extend(of_metric.iter().cloned());
        }
        for label in names.grouping.iter().filter(|label| !labels.contains(*label)) {
            wrong.push(format!("{}: none of its metrics has a label {label}", expression.place));
        }
    }
    assert!(selectors > 300, "only {selectors} selectors were found");
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn every_value_of_a_closed_label_is_one_of_its_list() {
    let manual = crate::read("sidecar/metrics/metrics.md");
    let mut wrong = Vec::new();
    let mut checked = 0;
    for expression in expressions::all() {
        for selector in promql::names(&expression.text).selectors {
            for matcher in &selector.matchers {
                let Some(known) = catalogue::values(&manual, &selector.metric, &matcher.label) else {
                    continue;
                };
                checked += 1;
                for value in alternatives(matcher).into_iter().filter(|value| !fits(value, &known)) {
                    wrong.push(format!("{}: {} is never {value:?}", expression.place, matcher.label));
                }
            }
        }
    }
    assert!(checked > 50, "only {checked} matchers of closed labels were found");
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

fn alternatives(matcher: &Matcher) -> Vec<String> {
    let is_pattern = matcher.operator.ends_with('~');
    if is_pattern {
        matcher.value.split('|').map(str::to_owned).collect()
    } else {
        vec![matcher.value.clone()]
    }
}

/// Whether a value, or a prefix followed by `.*`, is among the known.
fn fits(value: &str, known: &BTreeSet<String>) -> bool {
    match value.strip_suffix(".*") {
        Some(prefix) => known.iter().any(|known| known.starts_with(prefix)),
        None => known.contains(value),
    }
}

#[test]
fn what_the_table_has_is_not_awaited() {
    let here: Vec<&str> = Metric::ALL.iter().map(|metric| metric.entry().name).collect();
    let both: Vec<&str> = NOT_YET.iter().map(|(name, ..)| *name).filter(|name| here.contains(name)).collect();
    assert!(both.is_empty(), "the table has these; take them out of NOT_YET: {both:#?}");
    let manual = crate::read("sidecar/metrics/metrics.md");
    for (label, values) in VALUES_NOT_YET {
        let labels = manual.split("## Labels").nth(1).expect("the manual lists labels");
        let row = labels.lines().find(|line| line.starts_with(&format!("| `{label}` |"))).unwrap_or_default();
        let there: Vec<_> = values.iter().filter(|value| row.contains(&format!("`{value}`"))).collect();
        assert!(there.is_empty(), "the manual has these; take them out of VALUES_NOT_YET: {there:?}");
    }
}

/// Metrics that no one is shown, and why.
const UNSHOWN: &[(&str, &str)] = &[(
    "gen_ai_client_token_usage",
    "the convention's older form, off unless asked for, says the same as the newer",
)];

#[test]
fn what_is_measured_is_shown() {
    let mut used = BTreeSet::new();
    for expression in expressions::all() {
        used.extend(promql::names(&expression.text).selectors.into_iter().map(|selector| selector.metric));
    }
    let names =
        Metric::ALL.iter().map(|metric| metric.entry().name).chain(NOT_YET.iter().map(|(name, ..)| *name));
    let missing: Vec<&str> = names
        .filter(|name| !UNSHOWN.iter().any(|(unshown, _)| unshown == name))
        .filter(|name| {
            !["", "_bucket", "_sum", "_count"].iter().any(|end| used.contains(&format!("{name}{end}")))
        })
        .collect();
    assert!(missing.is_empty(), "on no dashboard, in no rule and no question: {missing:#?}");
}
