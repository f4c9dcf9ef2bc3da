//! Every name in every expression exists: metrics, labels, values of closed labels. Prometheus returns nothing for a
//! misspelled one.

use std::collections::BTreeSet;

use metrics::Metric;

use crate::catalogue;
use crate::expressions;
use crate::promql::{self, Matcher};
use crate::repository;

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
fn every_value_of_a_closed_label_is_known() {
    let manual = repository::read("sidecar/metrics/metrics.md");
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

/// Returns true if a value, or a prefix followed by `.*`, is known; an empty one means no label.
fn fits(value: &str, known: &BTreeSet<String>) -> bool {
    match value.strip_suffix(".*") {
        _ if value.is_empty() => true,
        Some(prefix) => known.iter().any(|known| known.starts_with(prefix)),
        None => known.contains(value),
    }
}

/// Metrics that are shown nowhere, with the reason.
const UNSHOWN: &[(&str, &str)] = &[
    ("gen_ai_client_token_usage", "the convention's older form, off by default, says the same as the newer"),
    ("gen_ai_client_inference_duration_seconds", "off by default, the server's duration says the same"),
    ("gen_ai_client_inference_time_to_first_chunk_seconds", "off by default, for dashboards of clients"),
    ("gen_ai_client_inference_time_per_output_chunk_seconds", "off by default, for dashboards of clients"),
    ("gen_ai_client_embeddings_duration_seconds", "the server's duration says the same of `embeddings`"),
    ("gen_ai_client_embeddings_operation_input_tokens", "the proxy's token counter includes embeddings"),
];

#[test]
fn every_metric_is_shown() {
    let mut used = BTreeSet::new();
    for expression in expressions::all() {
        used.extend(promql::names(&expression.text).selectors.into_iter().map(|selector| selector.metric));
    }
    let names = Metric::ALL.iter().map(|metric| metric.entry().name);
    let missing: Vec<&str> = names
        .filter(|name| !UNSHOWN.iter().any(|(unshown, _)| unshown == name))
        .filter(|name| {
            !["", "_bucket", "_sum", "_count"].iter().any(|end| used.contains(&format!("{name}{end}")))
        })
        .collect();
    assert!(missing.is_empty(), "on no dashboard, in no rule and no question: {missing:#?}");
}
