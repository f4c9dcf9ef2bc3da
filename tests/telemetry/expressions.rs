//! Every PromQL expression for operators, with its location: rules, dashboards, the questions and the manual. Grafana's
//! variables are replaced, as Grafana does.

use serde_json::Value;

use crate::repository;

/// One expression.
#[derive(Clone, Debug)]
pub(crate) struct Expression {
    /// Its location, for people.
    pub(crate) place: String,
    /// The PromQL.
    pub(crate) text: String,
}

/// All expressions.
pub(crate) fn all() -> Vec<Expression> {
    let mut found = Vec::new();
    for path in rule_files() {
        for rule in rules(&path) {
            let place = format!("{path}: {}", rule.name);
            found.push(Expression { place, text: rule.expression });
        }
    }
    for path in dashboard_files() {
        for (panel, text) in queries(&json(&path)) {
            found.push(Expression { place: format!("{path}: {panel}"), text: without_variables(&text) });
        }
    }
    for path in ["sidecar/metrics/questions.md", "sidecar/metrics/metrics.md"] {
        for text in fenced(&repository::read(path)) {
            found.push(Expression { place: path.to_owned(), text });
        }
    }
    found
}

/// One rule of a rule file.
#[derive(Debug)]
pub(crate) struct Rule {
    /// The recorded metric, or the alert.
    pub(crate) name: String,
    pub(crate) is_alert: bool,
    pub(crate) expression: String,
    /// The labels it sets.
    pub(crate) labels: Vec<(String, String)>,
    /// An alert's texts.
    pub(crate) annotations: Vec<(String, String)>,
}

/// The files of rules.
pub(crate) fn rule_files() -> Vec<String> {
    repository::files("helm/tokenmeter/rules", ".yaml")
}

/// The dashboards.
pub(crate) fn dashboard_files() -> Vec<String> {
    repository::files("helm/tokenmeter/dashboards", ".json")
}

/// The rules of a file.
pub(crate) fn rules(path: &str) -> Vec<Rule> {
    let file = yaml(path);
    let groups = file["groups"].as_array().unwrap_or_else(|| panic!("{path}: no groups"));
    let rules = groups.iter().flat_map(|group| group["rules"].as_array().into_iter().flatten());
    let pairs = |value: &Value| -> Vec<(String, String)> {
        let object = value.as_object().into_iter().flatten();
        object.map(|(key, value)| (key.clone(), text(value))).collect()
    };
    rules
        .map(|rule| {
            let is_alert = rule.get("alert").is_some();
            let name = text(if is_alert { &rule["alert"] } else { &rule["record"] });
            let (labels, annotations) = (pairs(&rule["labels"]), pairs(&rule["annotations"]));
            Rule { name, is_alert, expression: text(&rule["expr"]), labels, annotations }
        })
        .collect()
}

/// A YAML file.
pub(crate) fn yaml(path: &str) -> Value {
    serde_saphyr::from_str(&repository::read(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// A JSON file.
pub(crate) fn json(path: &str) -> Value {
    serde_json::from_str(&repository::read(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("not a string: {value}")).to_owned()
}

/// Returns the panels of a dashboard, those within collapsed rows too.
pub(crate) fn panels(dashboard: &Value) -> impl Iterator<Item = &Value> {
    let shown = dashboard["panels"].as_array().expect("panels").iter();
    shown.flat_map(|panel| std::iter::once(panel).chain(panel["panels"].as_array().into_iter().flatten()))
}

/// The expressions of a dashboard with their panels' titles, and those of its variables.
fn queries(dashboard: &Value) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for panel in panels(dashboard) {
        for target in panel["targets"].as_array().into_iter().flatten() {
            found.push((text(&panel["title"]), text(&target["expr"])));
        }
    }
    for variable in dashboard["templating"]["list"].as_array().into_iter().flatten() {
        let Some(query) = variable["query"]["query"].as_str() else { continue };
        let inside = query.strip_prefix("label_values(").and_then(|rest| rest.strip_suffix(')'));
        let (series, label) =
            inside.and_then(|rest| rest.rsplit_once(", ")).expect("label_values(series, label)");
        found.push((format!("${}", text(&variable["name"])), format!("count by ({label}) ({series})")));
    }
    found
}

/// Grafana's values of its variables, or values of the same kind.
fn without_variables(text: &str) -> String {
    let mut text =
        text.replace("$__rate_interval", "5m").replace("$__range", "1h").replace("$__interval", "1m");
    while let Some(at) = text.find('$') {
        let name =
            text[at + 1..].find(|c: char| !c.is_ascii_alphanumeric() && c != '_').expect("it is quoted");
        text.replace_range(at..at + 1 + name, ".*");
    }
    text
}

/// The expressions of a document's PromQL blocks: separated by comments and empty lines, and by lines that do not
/// continue the one before.
fn fenced(document: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut inside = false;
    for line in document.lines() {
        if line.starts_with("```") {
            inside = line == "```promql";
        } else if inside && line.starts_with(' ') {
            let last = found.last_mut().expect("an expression to go on from");
            last.push('\n');
            last.push_str(line);
        } else if inside && !line.is_empty() && !line.starts_with('#') {
            found.push(line.to_owned());
        }
    }
    found
}
