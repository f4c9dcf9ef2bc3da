//! The instructions of helm/tokenmeter/rules/README.md for a price book in another currency: afterwards every query
//! names the metrics of such a page, and GPU costs are still in dollars.

use std::process::Command;

use metrics::{Currency, Metric, Unit};

use crate::expressions;
use crate::promql;
use crate::repository;

/// A file after the README's command, which is for euros.
fn in_euros(text: &str) -> String {
    let document = repository::read("helm/tokenmeter/rules/README.md");
    let mut blocks = document.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next());
    let block = blocks.find(|block| block.starts_with("sed ")).expect("a block");
    let script = block.split('\'').nth(1).expect("a script in quotes");
    let folder = std::env::temp_dir().join(format!("tokenmeter-currency-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a temporary folder");
    let path = folder.join("file");
    std::fs::write(&path, text).expect("it can be written");
    let output = Command::new("sed").args(["-E", script]).arg(&path).output().expect("sed runs");
    std::fs::remove_dir_all(&folder).expect("it can be removed");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn one_command_converts_every_query() {
    let euro = Currency::new("EUR").expect("a code");
    let money = Metric::ALL.iter().map(|metric| metric.entry()).filter(|entry| entry.unit == Unit::Money);
    let money: Vec<_> = money.map(|entry| (entry.name, entry.name_in(euro))).collect();
    let (mut in_euro, mut in_dollars) = (0, 0);
    // One file with a line for each query, so that sed runs once.
    let all = expressions::all().into_iter().filter(|one| one.place.starts_with("helm/"));
    let lines: Vec<String> = all.map(|one| one.text.replace('\n', " ")).collect();
    for line in in_euros(&lines.join("\n")).lines() {
        for selector in promql::names(line).selectors {
            let of_gpu = selector.matchers.iter().any(|one| (&*one.label, &*one.value) == ("basis", "gpu"));
            let metric = &*selector.metric;
            if money.iter().any(|(_, euros)| euros == metric) {
                assert!(!of_gpu, "GPUs cost dollars: {line}");
                in_euro += 1;
            } else if money.iter().any(|(dollars, _)| *dollars == metric) {
                assert!(of_gpu, "{metric} is not on a page in euros: {line}");
                in_dollars += 1;
            }
        }
    }
    assert!(in_euro >= 15 && in_dollars >= 3, "only {in_euro} and {in_dollars} selectors");
    // In a dashboard's file quotes are escaped.
    let (path, text) =
        ("helm/tokenmeter/dashboards/tenants-and-spend.json", r#"_spend_usd_total{basis=\"price\""#);
    let dashboard = repository::read(path);
    assert!(dashboard.contains(text));
    let changed = in_euros(&dashboard);
    assert!(!changed.contains(text) && changed.contains("budget_used_eur"));
}
