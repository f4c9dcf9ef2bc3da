//! Each heavy dependency is confined to its crate, and crate dependencies point left along scan → meter → relay →
//! sinks. Read from `cargo metadata`, which no manifest can bypass.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

/// The crates that may use a dependency; no others may. Packages of tests, benches and examples may use any.
const ROOMS: &[(&str, &[&str])] = &[
    ("memchr", &["tokenmeter-http1", "tokenmeter-scan", "tokenmeter-usage"]),
    ("flate2", &["tokenmeter-decode", "tokenmeter-otlp", "tokenmeter-page"]),
    ("brotli-decompressor", &["tokenmeter-decode"]),
    ("zstd-safe", &["tokenmeter-decode"]),
    (
        "hyper",
        &[
            "tokenmeter-relay",
            "tokenmeter-scrape",
            "tokenmeter-otlp",
            "tokenmeter-inject",
            "tokenmeter-page",
            "tokenmeter-simulator",
        ],
    ),
    (
        "hyper-util",
        &[
            "tokenmeter-connect",
            "tokenmeter-relay",
            "tokenmeter-scrape",
            "tokenmeter-otlp",
            "tokenmeter-inject",
            "tokenmeter-page",
            "tokenmeter-simulator",
        ],
    ),
    (
        "http-body-util",
        &[
            "tokenmeter-relay",
            "tokenmeter-scrape",
            "tokenmeter-otlp",
            "tokenmeter-inject",
            "tokenmeter-page",
            "tokenmeter-simulator",
        ],
    ),
    (
        "tokio",
        &[
            "tokenmeter-connect",
            "tokenmeter-relay",
            "tokenmeter-scrape",
            "tokenmeter-servers",
            "tokenmeter-otlp",
            "tokenmeter-inject",
            "tokenmeter-page",
            "tokenmeter-simulator",
            "tokenmeter",
        ],
    ),
    ("rusqlite", &["tokenmeter-ledger"]),
    ("csv", &["tokenmeter-report"]),
    ("postgres", &["tokenmeter-ship"]),
    ("tokio-postgres-rustls", &["tokenmeter-ship"]),
    ("ring", &["tokenmeter-budget", "tokenmeter-tenant"]),
    ("ipnet", &["tokenmeter-tenant"]),
    ("ureq", &["tokenmeter-agent"]),
    ("nvml-wrapper", &["tokenmeter-gpu"]),
    ("opentelemetry", &["tokenmeter-otlp"]),
    ("opentelemetry-otlp", &["tokenmeter-otlp"]),
    ("opentelemetry-proto", &["tokenmeter-otlp"]),
    ("prost", &["tokenmeter-metrics", "tokenmeter-otlp"]),
    ("opentelemetry_sdk", &["tokenmeter-otlp"]),
    ("tonic", &["tokenmeter-otlp"]),
    (
        "rustls",
        &[
            "tokenmeter",
            "tokenmeter-agent",
            "tokenmeter-connect",
            "tokenmeter-inject",
            "tokenmeter-page",
            "tokenmeter-relay",
            "tokenmeter-ship",
        ],
    ),
    ("rustls-native-certs", &["tokenmeter-agent", "tokenmeter-connect", "tokenmeter-ship"]),
    ("tokio-rustls", &["tokenmeter-connect", "tokenmeter-inject", "tokenmeter-page"]),
    ("x509-cert", &["tokenmeter-connect", "tokenmeter-relay"]),
    ("httparse", &["tokenmeter-http1"]),
    ("httpdate", &["tokenmeter-agent", "tokenmeter-exchange", "tokenmeter-otlp"]),
    ("pin-project", &["tokenmeter-relay"]),
    ("prometheus-client", &["tokenmeter-metrics"]),
    ("plotters", &["tokenmeter-curve"]),
    ("maud", &["tokenmeter-statement"]),
    ("clap", &["tokenmeter"]),
    ("indicatif", &["tokenmeter"]),
    (
        "serde",
        &[
            "tokenmeter-inject",
            "tokenmeter-live",
            "tokenmeter-origin",
            "tokenmeter-price",
            "tokenmeter-report",
            "tokenmeter-simulator",
            "tokenmeter-top",
            "tokenmeter-usage",
        ],
    ),
    ("serde-saphyr", &["tokenmeter-inject", "tokenmeter-origin"]),
    ("json-patch", &["tokenmeter-inject"]),
    (
        "serde_json",
        &[
            "tokenmeter",
            "tokenmeter-accounting",
            "tokenmeter-budget",
            "tokenmeter-curve",
            "tokenmeter-events",
            "tokenmeter-ffi",
            "tokenmeter-inject",
            "tokenmeter-ledger",
            "tokenmeter-page",
            "tokenmeter-price",
            "tokenmeter-report",
            "tokenmeter-ship",
            "tokenmeter-simulator",
            "tokenmeter-tenant",
            "tokenmeter-top",
            "tokenmeter-usage",
        ],
    ),
    ("ratatui", &["tokenmeter-top"]),
    ("signal-hook", &["tokenmeter-top"]),
    ("tokenizers", &["tokenmeter-tokenizer"]),
    ("tracing-subscriber", &["tokenmeter"]),
];

/// The crates that each crate of the line may use.
const LINE: &[(&str, &[&str])] = &[
    ("tokenmeter-scan", &[]),
    ("tokenmeter-decode", &[]),
    ("tokenmeter-meter", &["tokenmeter-scan"]),
    ("tokenmeter-tenant", &["tokenmeter-meter"]),
    ("tokenmeter-connect", &[]),
    ("tokenmeter-usage", &["tokenmeter-scan"]),
    ("tokenmeter-http1", &[]),
    ("tokenmeter-websocket", &[]),
    (
        "tokenmeter-exchange",
        &[
            "tokenmeter-scan",
            "tokenmeter-decode",
            "tokenmeter-meter",
            "tokenmeter-tenant",
            "tokenmeter-usage",
        ],
    ),
    (
        "tokenmeter-relay",
        &[
            "tokenmeter-connect",
            "tokenmeter-scan",
            "tokenmeter-meter",
            "tokenmeter-tenant",
            "tokenmeter-usage",
            "tokenmeter-exchange",
            "tokenmeter-http1",
            "tokenmeter-websocket",
        ],
    ),
    ("tokenmeter-metrics", &["tokenmeter-scan", "tokenmeter-meter", "tokenmeter-text"]),
    ("tokenmeter-scrape", &["tokenmeter-connect"]),
    ("tokenmeter-servers", &["tokenmeter-metrics", "tokenmeter-scrape"]),
    ("tokenmeter-gpu", &["tokenmeter-meter", "tokenmeter-scrape"]),
    ("tokenmeter-text", &[]),
    ("tokenmeter-origin", &["tokenmeter-text"]),
    ("tokenmeter-rules", &["tokenmeter-origin", "tokenmeter-tenant", "tokenmeter-text"]),
    ("tokenmeter-price", &["tokenmeter-meter", "tokenmeter-origin", "tokenmeter-text"]),
    ("tokenmeter-calendar", &[]),
    (
        "tokenmeter-ledger",
        &["tokenmeter-calendar", "tokenmeter-meter", "tokenmeter-price", "tokenmeter-text"],
    ),
    (
        "tokenmeter-report",
        &[
            "tokenmeter-ledger",
            "tokenmeter-meter",
            "tokenmeter-origin",
            "tokenmeter-price",
            "tokenmeter-text",
        ],
    ),
    (
        "tokenmeter-statement",
        &["tokenmeter-ledger", "tokenmeter-price", "tokenmeter-report", "tokenmeter-text"],
    ),
    ("tokenmeter-ship", &["tokenmeter-ledger", "tokenmeter-meter", "tokenmeter-price"]),
    ("tokenmeter-agent", &[]),
    ("tokenmeter-events", &["tokenmeter-agent", "tokenmeter-ledger", "tokenmeter-meter"]),
    ("tokenmeter-budget", &["tokenmeter-agent", "tokenmeter-calendar", "tokenmeter-text"]),
    (
        "tokenmeter-otlp",
        &[
            "tokenmeter-connect",
            "tokenmeter-scan",
            "tokenmeter-meter",
            "tokenmeter-metrics",
            "tokenmeter-text",
        ],
    ),
    ("tokenmeter-curve", &["tokenmeter-live", "tokenmeter-meter", "tokenmeter-metrics", "tokenmeter-scrape"]),
    ("tokenmeter-live", &["tokenmeter-meter", "tokenmeter-metrics"]),
    ("tokenmeter-top", &["tokenmeter-live", "tokenmeter-scrape", "tokenmeter-text"]),
    ("tokenmeter-page", &["tokenmeter-live"]),
    ("tokenmeter-inject", &["tokenmeter-connect", "tokenmeter-text"]),
    ("tokenmeter-tokenizer", &[]),
    (
        "tokenmeter-accounting",
        &[
            "tokenmeter-budget",
            "tokenmeter-events",
            "tokenmeter-gpu",
            "tokenmeter-ledger",
            "tokenmeter-live",
            "tokenmeter-meter",
            "tokenmeter-metrics",
            "tokenmeter-otlp",
            "tokenmeter-page",
            "tokenmeter-price",
            "tokenmeter-relay",
            "tokenmeter-report",
            "tokenmeter-ship",
            "tokenmeter-text",
            "tokenmeter-tokenizer",
        ],
    ),
    ("tokenmeter-simulator", &[]),
];

/// All dependencies that the scanner may have.
const SCAN_MAY_USE: &[&str] = &["memchr"];

/// All dependencies of other projects that the metering of an exchange may have: no engine, no runtime. Two read dates.
const EXCHANGE_MAY_USE: &[&str] = &["foldhash", "http", "httpdate", "jiff"];

pub(crate) fn is_free(package: &str) -> bool {
    [
        "tokenmeter-tests",
        "tokenmeter-bench",
        "tokenmeter-collector",
        "tokenmeter-examples",
        "tokenmeter-faults",
        "tokenmeter-scribe",
    ]
    .contains(&package)
}

/// Normal dependencies of each workspace package.
pub(crate) fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--no-deps", "--offline"])
        .current_dir(super::root())
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo prints JSON");
    let name = |value: &Value| value["name"].as_str().expect("everything has a name").to_owned();
    let packages = metadata["packages"].as_array().expect("packages");
    packages
        .iter()
        .map(|package| {
            let list = package["dependencies"].as_array().expect("dependencies");
            (name(package), list.iter().filter(|d| d["kind"].is_null()).map(name).collect())
        })
        .collect()
}

#[test]
fn each_heavy_dependency_stays_in_its_crate() {
    for (package, uses) in dependencies() {
        for (dependency, rooms) in ROOMS {
            assert!(
                !uses.contains(*dependency) || rooms.contains(&package.as_str()) || is_free(&package),
                "{package} depends on {dependency}, which is confined to {rooms:?}"
            );
        }
    }
}

#[test]
fn dependencies_point_left_along_the_line() {
    let all = dependencies();
    for (package, may) in LINE {
        let uses = &all[*package];
        for ours in uses.iter().filter(|name| name.starts_with("tokenmeter")) {
            assert!(may.contains(&ours.as_str()), "{package} must not depend on {ours}");
        }
    }
}

/// A production build may omit the demonstration, the tokenizers and the display.
#[test]
fn binary_without_features_is_without_their_crates() {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--package=tokenmeter", "--no-default-features", "--edges=normal", "--prefix=none"])
        .args(["--locked", "--offline"])
        .current_dir(super::root())
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let tree = String::from_utf8(output.stdout).expect("names of packages");
    assert!(tree.contains("tokenmeter-accounting "), "{tree}");
    for left_out in ["tokenmeter-simulator ", "tokenmeter-tokenizer ", "tokenizers ", "ratatui "] {
        assert!(!tree.contains(left_out), "{tree}");
    }
}

#[test]
fn scanner_needs_only_memchr() {
    let uses: Vec<_> = dependencies().remove("tokenmeter-scan").expect("it exists").into_iter().collect();
    assert_eq!(uses, SCAN_MAY_USE);
}

#[test]
fn exchange_needs_no_engine() {
    let mut uses = dependencies().remove("tokenmeter-exchange").expect("it exists");
    uses.retain(|name| !name.starts_with("tokenmeter-"));
    assert_eq!(uses.into_iter().collect::<Vec<_>>(), EXCHANGE_MAY_USE);
}

#[test]
fn every_package_inherits_the_workspace_lints() {
    // `unsafe_code = "forbid"` among them: an exception needs a reason here.
    for package in dependencies().into_keys().filter(|package| package != TAKES_POINTERS) {
        let manifest = manifest_of(&package);
        assert!(manifest.contains("[lints]\nworkspace = true"), "{package} does not inherit the lints");
    }
}

/// The package that C calls: cargo inherits lints as a whole or not at all.
const TAKES_POINTERS: &str = "tokenmeter-ffi";

#[test]
fn c_library_has_the_workspace_lints_but_unsafe() {
    let root = std::fs::read_to_string(super::root().join("Cargo.toml")).expect("the root manifest");
    let manifest = manifest_of(TAKES_POINTERS);
    let lints = root.split("[workspace.lints.").skip(1).flat_map(|table| {
        table.lines().skip(1).take_while(|line| !line.starts_with('[')).filter(|line| line.contains(" = "))
    });
    let is_there = |line: &str| {
        [line, &line.replace("\"warn\"", "\"deny\"")].iter().any(|line| manifest.contains(*line))
    };
    let missing: Vec<_> = lints.filter(|line| !line.starts_with("unsafe_code") && !is_there(line)).collect();
    assert!(missing.is_empty(), "{TAKES_POINTERS} lacks {missing:?}");
}

#[test]
fn c_library_has_no_engine_no_runtime_and_no_database() {
    let output = Command::new(env!("CARGO"))
        .args([
            "tree",
            "--package=tokenmeter-ffi",
            "--edges=normal",
            "--prefix=none",
            "--locked",
            "--offline",
        ])
        .current_dir(super::root())
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let tree = String::from_utf8(output.stdout).expect("names of packages");
    assert!(tree.contains("tokenmeter-exchange "), "{tree}");
    for left_out in ["hyper ", "tokio ", "rusqlite ", "rustls ", "tracing ", "tokenmeter-relay "] {
        assert!(!tree.contains(&format!("\n{left_out}")), "{left_out}is in {tree}");
    }
}

fn manifest_of(package: &str) -> String {
    std::fs::read_to_string(manifest_path(package)).expect("a manifest can be read")
}

/// Returns the path of a package's manifest, by the members of the root manifest.
pub(crate) fn manifest_path(package: &str) -> PathBuf {
    let members = std::fs::read_to_string(super::root().join("Cargo.toml")).expect("the root manifest");
    let named = format!("name = \"{package}\"\n");
    members
        .lines()
        .filter_map(|line| line.trim().strip_prefix('"')?.split('"').next())
        .map(|path| super::root().join(path).join("Cargo.toml"))
        .find(|path| std::fs::read_to_string(path).is_ok_and(|manifest| manifest.contains(&named)))
        .unwrap_or_else(|| panic!("{package} is not listed in the root manifest"))
}
