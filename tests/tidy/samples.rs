//! A metric whose samples the collector leaves to a part of the process is written by one: the collector's `match`
//! cannot know it.

use std::fs;

use super::arrows::code;
use super::dependencies::{dependencies, is_free};
use super::root;

#[test]
fn metrics_left_to_parts_are_written() {
    const COLLECTOR: &str = "sidecar/metrics/src/collector.rs";
    let collector = fs::read_to_string(root().join(COLLECTOR)).expect("the collector can be read");
    let (_, rest) = collector.split_once("// The parts of the process write these.\n").expect(COLLECTOR);
    let (left, _) = rest.split_once("=> Ok(())").expect(COLLECTOR);
    let left: Vec<&str> = left.split('|').map(str::trim).collect();
    assert!(left.len() > 10, "only {left:?} are left to parts");
    let all = dependencies();
    let parts = all.iter().filter(|(package, uses)| !is_free(package) && uses.contains("tokenmeter-metrics"));
    let written: String = parts.map(|(package, _)| code(package)).collect();
    let names = |code: &str, metric: &str| {
        code.match_indices(metric)
            .any(|(at, _)| !code[at + metric.len()..].starts_with(char::is_alphanumeric))
    };
    let missing: Vec<_> = left.iter().filter(|metric| !names(&written, metric)).collect();
    assert!(missing.is_empty(), "no part writes {missing:?}");
}
