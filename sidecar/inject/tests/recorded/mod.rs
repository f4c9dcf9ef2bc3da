//! The recorded reviews and the config with which they are answered.

#![allow(dead_code, reason = "not every test uses all of it")]

use std::fs;
use std::path::PathBuf;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use inject::Config;
use serde_json::Value;

/// Returns a path below `tests/kubernetes`.
pub(crate) fn kubernetes(path: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/kubernetes")).join(path)
}

/// Returns the path of an expected pod.
pub(crate) fn expected(name: &str) -> PathBuf {
    kubernetes("reviews/expected").join(name)
}

/// Returns the config of the chart.
pub(crate) fn config() -> Config {
    let text = fs::read_to_string(kubernetes("policy/config.yaml")).expect("the config can be read");
    Config::parse(&text).expect("the chart's config is valid")
}

/// Returns the reviews by name, sorted.
pub(crate) fn reviews() -> Vec<(String, Value)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(kubernetes("reviews")).expect("the folder can be read") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|extension| extension == "yaml") {
            let name = path.file_stem().and_then(|name| name.to_str()).expect("UTF-8").to_owned();
            let text = fs::read_to_string(&path).expect("a review can be read");
            found.push((name, serde_saphyr::from_str(&text).expect("a review is YAML")));
        }
    }
    assert!(found.len() > 50, "only {} reviews", found.len());
    found.sort_by(|(left, _), (right, _)| left.cmp(right));
    found
}

/// Applies the patch of a response as the API server does.
pub(crate) fn patched(review: &Value, response: &Value) -> Option<Value> {
    let patch = STANDARD.decode(response.get("patch")?.as_str().expect("base64")).expect("base64");
    assert_eq!(response["patchType"], "JSONPatch");
    let patch: json_patch::Patch = serde_json::from_slice(&patch).expect("a JSON patch");
    let mut pod = review["request"]["object"].clone();
    json_patch::patch(&mut pod, &patch).expect("the patch applies");
    Some(pod)
}
