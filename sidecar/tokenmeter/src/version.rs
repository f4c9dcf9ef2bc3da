//! The version of this build.

use std::sync::LazyLock;

/// Returns the version, with the commit if the build set `TOKENMETER_COMMIT`.
pub(crate) fn version() -> &'static str {
    static VERSION: LazyLock<String> = LazyLock::new(|| match option_env!("TOKENMETER_COMMIT") {
        Some(commit) => format!("{} ({commit})", env!("CARGO_PKG_VERSION")),
        None => env!("CARGO_PKG_VERSION").to_owned(),
    });
    &VERSION
}
