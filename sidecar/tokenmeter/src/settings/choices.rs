//! The values of the settings that take one of a few names.

use budget::Period;
use metrics::PRESETS;
use origin::{Diagnostic, file};
use relay::{ServerKind, UnknownPaths};
use report::focus::Billing;
use text::nearest;

use super::Value;

/// The values of `kind`: [`AUTO`], then the server types.
pub const KINDS: [&str; ServerKind::ALL.len() + 1] = {
    let mut names = [AUTO; ServerKind::ALL.len() + 1];
    let mut at = 0;
    while at < ServerKind::ALL.len() {
        names[at + 1] = ServerKind::ALL[at].name();
        at += 1;
    }
    names
};

/// The value by which tokenmeter chooses.
pub const AUTO: &str = "auto";

/// The values of `engine_metrics`.
pub const SCRAPES: [&str; 3] = ["auto", "on", "off"];

/// The names of the usage policies.
pub const USAGE: [&str; 3] = ["inject", "continuous", "observe"];

/// The roles of an upstream.
pub const ROLES: [&str; 4] = ["whole", "prefill", "decode", AUTO];

/// The values of `otlp_protocol`.
pub const OTLP_PROTOCOLS: [&str; 3] = [AUTO, "http/protobuf", "grpc"];

/// The values of `otlp_detail`.
pub const OTLP_DETAILS: [&str; 2] = ["standard", "full"];

/// The values of `semconv`: versions of the GenAI convention's token metrics.
pub const SEMCONV: [&str; 5] = [AUTO, "latest", "client", "legacy", "both"];

/// The values of `gpu`.
pub const GPU: [&str; 4] = [AUTO, "nvml", "exporter", OFF];

/// The values of `objective`: [`OFF`], then the presets.
pub const OBJECTIVES: [&str; PRESETS.len() + 1] = {
    let mut names = [OFF; PRESETS.len() + 1];
    let mut at = 0;
    while at < PRESETS.len() {
        names[at + 1] = PRESETS[at].name;
        at += 1;
    }
    names
};

/// The value that turns a choice on.
pub const ON: &str = "on";

/// The value that turns a choice off.
pub const OFF: &str = "off";

/// The values of `detached_work`.
pub const DETACHED_WORK: [&str; 3] = [AUTO, "allow", "refuse"];

/// The values of a budget's `unpriced`, `unknown_methods`, `unreadable` and `uncountable`; the first is the default.
pub const BUDGET_UNPRICED: [&str; 2] = ["allow", "refuse"];

/// The values of a budget's `unknown_paths`; the first is the default.
pub const BUDGET_UNKNOWN_PATHS: [&str; UnknownPaths::ALL.len()] = {
    let mut names = [""; UnknownPaths::ALL.len()];
    let mut at = 0;
    while at < UnknownPaths::ALL.len() {
        names[at] = UnknownPaths::ALL[at].name();
        at += 1;
    }
    names
};

/// The values of `budget_duration`.
pub const BUDGET_DURATIONS: [&str; Period::ALL.len()] = {
    let mut names = [""; Period::ALL.len()];
    let mut at = 0;
    while at < Period::ALL.len() {
        names[at] = Period::ALL[at].name();
        at += 1;
    }
    names
};

/// Returns the value of `known` that a text names; any YAML boolean also names `on` or `off`.
pub(crate) fn choice(text: &str, known: &[&'static str]) -> Option<&'static str> {
    let named = |word: &str| known.iter().copied().find(|known| *known == word);
    named(text).or_else(|| named(if file::truth(text)? { ON } else { OFF }))
}

/// Returns the choice of `known` that a value names.
///
/// # Errors
/// If it names none of them.
pub(crate) fn one_of(value: &Value, known: &[&'static str]) -> Result<&'static str, Diagnostic> {
    choice(&value.text, known).ok_or_else(|| {
        let problem = format!("`{}` is not one of {}", value.text.escape_debug(), known.join(", "));
        let remedy = match nearest(&value.text, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "write one of these".to_owned(),
        };
        Diagnostic::at(&value.origin, problem, remedy)
    })
}

/// The values of `focus_billing`.
pub const FOCUS_BILLING: [&str; Billing::ALL.len()] = {
    let mut names = [""; Billing::ALL.len()];
    let mut at = 0;
    while at < Billing::ALL.len() {
        names[at] = Billing::ALL[at].name();
        at += 1;
    }
    names
};

/// Names this hop to the server.
pub const APPEND: &str = "append";

/// The values of `forwarded`.
pub const FORWARDED: [&str; 2] = [OFF, APPEND];
