//! Series and their values from a text page, from Prometheus' answers and from VictoriaMetrics' export, in one form for
//! comparison.

use std::collections::BTreeMap;

use serde_json::Value;

/// Name and labels of a series.
pub(crate) type Series = (String, BTreeMap<String, String>);

/// Values by series.
pub(crate) type Samples = BTreeMap<Series, f64>;

/// The samples of a page in either text form.
pub(crate) fn of_page(text: &str) -> Samples {
    let mut found = Samples::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        // An exemplar follows the value.
        let line = line.split(" # ").next().expect("a line");
        let (series, value) = line.rsplit_once(' ').expect("a series and a value");
        let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
        let value = value.parse().unwrap_or_else(|_| panic!("no number: {line}"));
        let repeated = found.insert((name.to_owned(), of_text(labels)), value);
        assert!(repeated.is_none(), "twice on the page: {series}");
    }
    found
}

/// The labels in `a="b",c="d"}`. Values here contain no quotes or backslashes.
fn of_text(labels: &str) -> BTreeMap<String, String> {
    let inside = labels.strip_suffix('}').expect("labels end");
    assert!(!inside.contains('\\'), "an escape: {inside}");
    let parts: Vec<&str> = inside.split('"').collect();
    parts
        .chunks_exact(2)
        .map(|pair| {
            let label = pair[0].trim_matches([',', '=']);
            (label.to_owned(), canonical(label, pair[1]))
        })
        // An empty label counts as absent in every store.
        .filter(|(_, value)| !value.is_empty())
        .collect()
}

/// The samples of Prometheus' vector, without the labels `less`.
pub(crate) fn of_vector(data: &Value, less: &[&str]) -> Samples {
    let vector = data["result"].as_array().expect("a vector");
    vector
        .iter()
        .filter_map(|sample| {
            // A native histogram has no value.
            let value = sample["value"][1].as_str()?.parse().expect("a number");
            Some((of_object(&sample["metric"], |label| less.contains(&label)), value))
        })
        .collect()
}

/// Name and labels as Prometheus and VictoriaMetrics write them, without some.
pub(crate) fn of_object(metric: &Value, without: impl Fn(&str) -> bool) -> Series {
    let object = metric.as_object().expect("labels");
    let text = |value: &Value| value.as_str().expect("labels are texts").to_owned();
    let name = text(&object["__name__"]);
    let labels = object.iter().filter(|(label, _)| *label != "__name__" && !without(label));
    (name, labels.map(|(label, value)| (label.clone(), canonical(label, &text(value)))).collect())
}

/// Bucket edges are written in several ways.
fn canonical(label: &str, value: &str) -> String {
    match value.parse::<f64>() {
        Ok(edge) if label == "le" => edge.to_string(),
        _ => value.to_owned(),
    }
}

/// The differences between two sets of samples, for people; at most twenty lines of each kind.
pub(crate) fn difference(ours: &Samples, theirs: &Samples) -> Vec<String> {
    let missing =
        ours.keys().filter(|series| !theirs.contains_key(*series)).map(|s| format!("missing: {s:?}"));
    let unknown =
        theirs.keys().filter(|series| !ours.contains_key(*series)).map(|s| format!("unknown: {s:?}"));
    let other = ours.iter().filter_map(|(series, ours)| {
        let theirs = theirs.get(series)?;
        let near = (ours - theirs).abs() <= 1e-9 * ours.abs().max(1.0);
        (!near).then(|| format!("{series:?}: {ours} here, {theirs} there"))
    });
    missing.take(20).chain(unknown.take(20)).chain(other.take(20)).collect()
}
