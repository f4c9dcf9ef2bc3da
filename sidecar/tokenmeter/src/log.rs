//! The process log on stderr, as text or as one JSON object per line. It never holds content of a request or a
//! response (law 11).

use std::io::{self, IsTerminal, Write};

use tracing::Level as TracingLevel;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use accounting::access_log::ACCESS;

/// The target of the start line, which is never filtered.
const STARTED: &str = "started";

/// The crates of this workspace, to which the level applies.
const OWN_CRATES: [&str; 17] = [
    "tokenmeter",
    "accounting",
    "relay",
    "servers",
    "gpu",
    "otlp",
    "page",
    "metrics",
    "scrape",
    "meter",
    "scan",
    "ledger",
    "ship",
    "budget",
    "events",
    "tokenizer",
    "inject",
];

/// The configuration of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The least important messages logged.
    pub level: Level,
    /// Their format.
    pub format: Format,
    /// True if each exchange gets a line.
    pub access: bool,
}

/// The least important messages logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level(TracingLevel);

impl Level {
    /// The level of a name in the table of settings.
    pub fn named(name: &str) -> Self {
        Self(name.parse().unwrap_or(TracingLevel::INFO))
    }
}

/// The format of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Lines for people.
    Text,
    /// One JSON object a line.
    Json,
}

impl Format {
    /// The format of a name in the table of settings; `auto` looks at stderr.
    pub fn named(name: &str) -> Self {
        match name {
            "text" => Self::Text,
            "json" => Self::Json,
            _ if io::stderr().is_terminal() => Self::Text,
            _ => Self::Json,
        }
    }
}

/// Begins logging, once in a process; later calls change nothing.
pub fn begin(plan: &Plan) {
    let access = if plan.access { LevelFilter::INFO } else { LevelFilter::OFF };
    let targets = Targets::new()
        // Debug messages of other crates may contain content of requests.
        .with_default(plan.level.0.min(TracingLevel::WARN))
        .with_targets(OWN_CRATES.map(|target| (target, plan.level.0)))
        .with_target(STARTED, LevelFilter::INFO)
        .with_target(ACCESS, access);
    let registry = tracing_subscriber::registry().with(targets);
    let layer = tracing_subscriber::fmt::layer().with_writer(io::stderr);
    // Only tests install a second subscriber in one process; the first stays.
    let _ = match plan.format {
        Format::Text => registry.with(layer.with_ansi(io::stderr().is_terminal())).try_init(),
        Format::Json => registry.with(layer.json().flatten_event(true)).try_init(),
    };
}

/// Logs the start on one line: as text for people, as an object for machines.
pub fn started(plan: &Plan, line: &str) {
    match plan.format {
        // A closed stderr is no reason to stop.
        Format::Text => drop(writeln!(io::stderr(), "{line}")),
        Format::Json => tracing::info!(target: STARTED, "{line}"),
    }
}

#[cfg(test)]
mod tests {
    use super::OWN_CRATES;

    /// A crate that is not listed logs only warnings.
    #[test]
    fn every_logging_crate_is_listed() {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
        let mut logging = 0;
        for half in ["proxy", "sidecar"] {
            for folder in std::fs::read_dir(format!("{root}/{half}")).unwrap() {
                let manifest = folder.unwrap().path().join("Cargo.toml");
                let Ok(text) = std::fs::read_to_string(&manifest) else { continue };
                if !text.lines().any(|line| line.starts_with("tracing")) {
                    continue;
                }
                logging += 1;
                let names = text.lines().filter_map(|line| line.strip_prefix("name = "));
                let is_listed = { names }.any(|name| OWN_CRATES.contains(&name.trim_matches('"')));
                assert!(is_listed, "{} logs and is not among {OWN_CRATES:?}", manifest.display());
            }
        }
        assert!(logging >= 10, "{logging}");
    }
}
