//! The paths of the installed programs (`tests/telemetry/install`). The law: a missing one fails the test that needs
//! it, with the command that installs it; no test is skipped.

use std::path::PathBuf;

/// The path of `name`: `prometheus`, `promtool` or `victoria-metrics`.
pub(crate) fn program(name: &str) -> PathBuf {
    let root = std::env::var_os("TOKENMETER_TELEMETRY").map(PathBuf::from).unwrap_or_else(|| {
        let home = std::env::var_os("HOME").expect("HOME or TOKENMETER_TELEMETRY is set");
        PathBuf::from(home).join(".cache/tokenmeter/telemetry")
    });
    let path = root.join("bin").join(name);
    assert!(path.is_file(), "missing: {}; install with: tests/telemetry/install", path.display());
    path
}
