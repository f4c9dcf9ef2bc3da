//! The names that an expression may contain: the table of metrics, the recorded series, and those that Prometheus adds.
//! Values of closed labels come from the manual, which is generated from the code.

use std::collections::{BTreeMap, BTreeSet};

use metrics::{Kind, Metric};

use crate::expressions;

/// The labels of each series by its name.
pub(crate) fn series() -> BTreeMap<String, BTreeSet<String>> {
    let mut known = BTreeMap::new();
    for metric in Metric::ALL {
        let entry = metric.entry();
        add(&mut known, entry.name, matches!(entry.kind, Kind::Histogram(_)), entry.labels);
    }
    add(&mut known, "up", false, &[]);
    add(&mut known, "ALERTS", false, &["alertname", "alertstate", "severity"]);
    // A native histogram is one series with the plain name. One alert uses it, to check that no other is there.
    let native = Metric::Overhead.entry();
    add(&mut known, native.name, false, native.labels);
    for path in expressions::rule_files() {
        for rule in expressions::rules(&path).into_iter().filter(|rule| !rule.is_alert) {
            let level = rule.name.split(':').next().expect("a level");
            let mut labels: BTreeSet<String> = level.split('_').map(str::to_owned).collect();
            labels.insert("job".to_owned());
            labels.extend(rule.labels.into_iter().map(|(label, _)| label));
            known.entry(rule.name).or_insert(labels);
        }
    }
    known
}

fn add(known: &mut BTreeMap<String, BTreeSet<String>>, name: &str, is_histogram: bool, labels: &[&str]) {
    // Prometheus adds the scrape target.
    let mut labels: BTreeSet<String> = labels.iter().map(|label| (*label).to_owned()).collect();
    labels.extend(["job".to_owned(), "instance".to_owned()]);
    if is_histogram {
        known.insert(format!("{name}_sum"), labels.clone());
        known.insert(format!("{name}_count"), labels.clone());
        labels.insert("le".to_owned());
        known.insert(format!("{name}_bucket"), labels);
    } else {
        known.insert(name.to_owned(), labels);
    }
}

/// The values of a closed label on a metric, by the manual, or by the rules that record it; none if it is open.
pub(crate) fn values(manual: &str, metric: &str, label: &str) -> Option<BTreeSet<String>> {
    if metric.contains(':') {
        let rules = expressions::rule_files().into_iter().flat_map(|path| expressions::rules(&path));
        let labels = rules.filter(|rule| rule.name == metric).flat_map(|rule| rule.labels);
        let set: BTreeSet<String> =
            labels.filter(|(name, _)| name == label).map(|(_, value)| value).collect();
        if !set.is_empty() {
            return Some(set);
        }
    }
    let listed = |text: &str| -> Option<BTreeSet<String>> {
        let values: BTreeSet<String> = text.split('`').skip(1).step_by(2).map(str::to_owned).collect();
        (!values.is_empty()).then_some(values)
    };
    let start = format!("`{label}` by metric:");
    let line = manual.split(&start).nth(1).and_then(|list| {
        let list = list.split("\n\n").nth(1)?;
        list.lines().find_map(|line| line.strip_prefix(&format!("- `{metric}`: ")))
    });
    // The values, or a link to the table that explains them.
    let by_metric = || {
        let line = line?;
        let Some(anchor) = line.strip_prefix("[values](#").and_then(|link| link.strip_suffix(')')) else {
            return listed(line);
        };
        let heading = format!("### `{label}` of `{}`\n", anchor.strip_prefix(&format!("{label}-of-"))?);
        let table = manual.split(&heading).nth(1).expect("the table of the values").split("\n## ").next()?;
        let rows = table.split("\n### ").next()?.lines().filter_map(|row| row.strip_prefix("| `"));
        Some(rows.filter_map(|row| row.split('`').next()).map(str::to_owned).collect())
    };
    let of_label = || {
        let labels = manual.split("## Labels").nth(1).expect("the manual lists labels");
        let row = labels.lines().find(|line| line.starts_with(&format!("| `{label}` |")))?;
        // Label, meaning, values; the meaning of a label without values may contain code, too.
        listed(row.split('|').nth(3)?)
    };
    by_metric().or_else(of_label)
}
