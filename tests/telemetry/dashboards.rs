//! Rules for dashboards: they work in any Grafana from 11 on, with any Prometheus, and each panel has a description.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::expressions::{dashboard_files, json, panels};
use crate::repository;

/// The ids, which links and bookmarks use.
const UIDS: &[&str] = &[
    "tokenmeter-gpu",
    "tokenmeter-ledger",
    "tokenmeter-meter",
    "tokenmeter-overview",
    "tokenmeter-performance",
    "tokenmeter-tenants-and-spend",
];

fn dashboards() -> Vec<(String, Value)> {
    dashboard_files().into_iter().map(|path| (path.clone(), json(&path))).collect()
}

#[test]
fn dashboard_ids_stay() {
    let uids: Vec<String> = dashboards()
        .iter()
        .map(|(_, dashboard)| dashboard["uid"].as_str().expect("a uid").to_owned())
        .collect();
    assert_eq!(uids, UIDS);
    for (path, dashboard) in dashboards() {
        // 39 is Grafana 11's.
        assert!(dashboard["schemaVersion"].as_u64().is_some_and(|version| version >= 39), "{path}");
        assert!(dashboard["id"].is_null(), "{path}: an id is one Grafana's own");
        assert_eq!(dashboard["tags"][0], "tokenmeter", "{path}: they find each other by this tag");
    }
}

#[test]
fn data_source_is_a_variable_everywhere() {
    fn look(value: &Value, path: &str, found: &mut usize) {
        match value {
            Value::Object(members) => {
                if let Some(source) = members.get("datasource") {
                    assert_eq!(source["uid"], "${datasource}", "{path}: {value}");
                    *found += 1;
                }
                members.values().for_each(|member| look(member, path, found));
            }
            Value::Array(elements) => elements.iter().for_each(|element| look(element, path, found)),
            _ => {}
        }
    }
    for (path, dashboard) in dashboards() {
        let mut found = 0;
        look(&dashboard, &path, &mut found);
        assert!(found > 20, "{path}: only {found} data sources");
        let variables = dashboard["templating"]["list"].as_array().expect("variables");
        assert_eq!(variables[0]["name"], "datasource", "{path}");
        assert_eq!(variables[0]["type"], "datasource", "{path}");
    }
}

#[test]
fn each_panel_has_a_description_and_a_unit() {
    for (path, dashboard) in dashboards() {
        let mut ids = BTreeSet::new();
        for panel in panels(&dashboard) {
            let title = panel["title"].as_str().expect("a title");
            assert!(ids.insert(panel["id"].as_u64()), "{path}: {title}: its id is not unique");
            if panel["type"] == "row" {
                continue;
            }
            let description = panel["description"].as_str().unwrap_or_default();
            assert!(description.len() >= 12 && description.ends_with('.'), "{path}: {title}: no description");
            let unit = panel["fieldConfig"]["defaults"]["unit"].as_str().unwrap_or_default();
            assert!(!unit.is_empty(), "{path}: {title}: no unit");
            assert!(
                panel["targets"].as_array().is_some_and(|targets| !targets.is_empty()),
                "{path}: {title}"
            );
        }
    }
}

/// Parts of the queries of stats whose good value is 0.
const TROUBLE: &[&str] =
    &["== 0", ">= 1)", "_lost_", "_dropped_", "unpriced", "ending", "up{", "idle_cost", "_faults_"];

/// Without thresholds, Grafana paints a stat green below 80 and red above.
#[test]
fn only_stats_of_faults_have_thresholds() {
    let mut troubles = 0;
    for (path, dashboard) in dashboards() {
        for panel in panels(&dashboard).filter(|panel| panel["type"] == "stat") {
            let what = format!("{path}: {}", panel["title"]);
            let targets = panel["targets"].as_array().into_iter().flatten();
            let query: String = targets.map(|target| target["expr"].as_str().expect("it")).collect();
            let steps = panel["fieldConfig"]["defaults"]["thresholds"]["steps"].as_array();
            let Some(steps) = steps else {
                assert_eq!(
                    panel["options"]["colorMode"], "none",
                    "{what}: it has Grafana's default thresholds"
                );
                assert!(!TROUBLE.iter().any(|part| query.contains(part)), "{what}: no steps");
                continue;
            };
            assert!(steps.len() >= 2 && steps[0]["value"].is_null(), "{what}: {steps:?}");
            let values: Vec<f64> =
                steps[1..].iter().map(|step| step["value"].as_f64().expect("it")).collect();
            assert!(values.windows(2).all(|pair| pair[0] < pair[1]), "{what}: a step hides another");
            if TROUBLE.iter().any(|part| query.contains(part)) {
                assert_eq!(steps[0]["color"], "green", "{what}: 0 is good");
                troubles += 1;
            }
        }
    }
    assert!(troubles >= 10, "only {troubles}");
}

#[test]
fn times_to_first_token_link_to_traces() {
    let mut checked = 0;
    for (path, dashboard) in dashboards() {
        for panel in panels(&dashboard)
            .filter(|panel| ["timeseries", "heatmap"].contains(&panel["type"].as_str().unwrap_or("")))
        {
            for target in panel["targets"].as_array().into_iter().flatten() {
                let expression = target["expr"].as_str().expect("an expression");
                // By concurrency there would be a dot for each line.
                if expression.contains("time_to_first_token_seconds_bucket")
                    && !expression.contains("by (le, concurrency)")
                {
                    assert_eq!(target["exemplar"], true, "{path}: {}", panel["title"]);
                    checked += 1;
                }
            }
        }
    }
    assert!(checked >= 4, "only {checked} queries");
}

#[test]
fn parts_and_their_whole_cover_the_same_gpus() {
    // The use by exchanges is not known by GPU: the panels beside it must not select GPUs either.
    let of_all = ["tokenmeter_energy_attributed", "tokenmeter_gpu_attributed", "tokenmeter_gpu_cost_usd"];
    let mut checked = 0;
    for (path, dashboard) in dashboards() {
        for panel in panels(&dashboard) {
            let expressions = panel["targets"].as_array().into_iter().flatten();
            let text: String = expressions.map(|target| target["expr"].as_str().expect("it")).collect();
            if of_all.iter().any(|name| text.contains(name)) {
                assert!(!text.contains("$gpu"), "{path}: {}", panel["title"]);
                checked += 1;
            }
        }
    }
    assert!(checked >= 5, "only {checked} panels");
}

#[test]
fn gpu_of_several_observers_is_shown_once() {
    let mut checked = 0;
    for (path, dashboard) in dashboards() {
        // Accounts belong to each tokenmeter, so both sides have one for each.
        for panel in panels(&dashboard).filter(|panel| panel["title"] != "Accounted for") {
            for target in panel["targets"].as_array().into_iter().flatten() {
                let expression = target["expr"].as_str().expect("an expression");
                if ["(hw_", "rate(tokenmeter_energy_idle", "rate(tokenmeter_gpu_idle"]
                    .iter()
                    .any(|start| expression.contains(start))
                    || expression.starts_with("hw_")
                {
                    let is_once = ["max by (hw_id", "min by (hw_id"];
                    let is_once = is_once.iter().any(|by| expression.contains(by));
                    assert!(is_once, "{path}: {}: {expression}", panel["title"]);
                    checked += 1;
                }
            }
        }
    }
    assert!(checked >= 10, "only {checked} queries");
}

#[test]
fn panels_do_not_overlap() {
    for (path, dashboard) in dashboards() {
        let shown = dashboard["panels"].as_array().expect("panels");
        // A collapsed row opens alone: its panels move the rows below.
        let collapsed = shown.iter().filter_map(|panel| panel["panels"].as_array());
        for group in std::iter::once(shown).chain(collapsed) {
            let mut taken = BTreeSet::new();
            for panel in group {
                let place = |key: &str| panel["gridPos"][key].as_u64().expect("a place");
                assert!(place("x") + place("w") <= 24, "{path}: {} is too wide", panel["title"]);
                for x in place("x")..place("x") + place("w") {
                    for y in place("y")..place("y") + place("h") {
                        assert!(taken.insert((x, y)), "{path}: {} overlaps another", panel["title"]);
                    }
                }
            }
        }
    }
}

#[test]
fn first_row_is_open_and_short() {
    for (path, dashboard) in dashboards() {
        let rows: Vec<_> = panels(&dashboard).filter(|panel| panel["type"] == "row").collect();
        assert_eq!(rows[0]["collapsed"], false, "{path}");
        assert!(rows[1..].iter().all(|row| row["collapsed"] == true), "{path}: a row opens by itself");
        let shown = dashboard["panels"].as_array().expect("panels").len() - rows.len();
        assert!((4..=12).contains(&shown), "{path}: {shown} panels in the open row");
    }
}

#[test]
fn every_used_variable_exists() {
    for path in dashboard_files() {
        let dashboard = json(&path);
        let variables = dashboard["templating"]["list"].as_array().expect("variables");
        let mut known: Vec<&str> =
            variables.iter().filter_map(|variable| variable["name"].as_str()).collect();
        known.extend(["__rate_interval", "__range", "__interval", "__all"]);
        for part in repository::read(&path).split('$').skip(1) {
            let part = part.trim_start_matches('{');
            let end = part.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').expect("a name ends");
            assert!(known.contains(&&part[..end]), "{path}: there is no variable ${}", &part[..end]);
        }
        for variable in variables {
            let name = variable["name"].as_str().expect("a name");
            assert!(
                repository::read(&path).matches(&format!("${name}")).count()
                    + repository::read(&path).matches(&format!("${{{name}}}")).count()
                    > 0,
                "{path}: no query uses ${name}"
            );
        }
    }
}
