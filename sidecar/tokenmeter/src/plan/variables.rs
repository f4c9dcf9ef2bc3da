//! Warns of environment variables with the prefix `TOKENMETER_` that are not settings: without a warning, a
//! misspelled one would leave its setting at the default.

use origin::Diagnostic;
use text::nearest;

use super::values::Reader;
use crate::plan::machine::Machine;
use crate::settings::{SETTINGS, variable};

/// The prefix of every variable that mirrors a setting.
const PREFIX: &str = "TOKENMETER_";

/// Unknown variables that are named one by one; the rest are counted in one warning.
const MAX_NAMED: usize = 10;

impl Reader<'_> {
    /// Warns of each variable with the prefix that is not a setting.
    pub(super) fn check_variables(&mut self, machine: &dyn Machine) {
        let known: Vec<String> =
            SETTINGS.iter().map(|row| row.variable()).chain([variable("config")]).collect();
        let mut unknown = machine.variables(PREFIX);
        unknown.retain(|name| !known.contains(name) && !is_service_link(name));
        unknown.sort();
        let more = unknown.len().saturating_sub(MAX_NAMED);
        for name in unknown.iter().take(MAX_NAMED) {
            let remedy = match nearest(&name.to_ascii_lowercase(), keys(&known).iter().map(String::as_str)) {
                Some(near) => format!("did you mean {}?", near.to_ascii_uppercase()),
                None => "remove it; `tokenmeter run --help` names the variable of each setting".to_owned(),
            };
            let problem = "the variable belongs to no setting and is ignored";
            self.warnings.push(Diagnostic::missing(&name.escape_debug().to_string(), problem, remedy));
        }
        if more > 0 {
            let problem = format!("{more} more variables belong to no setting and are ignored");
            self.warnings.push(Diagnostic::missing(PREFIX, problem, "remove them"));
        }
    }
}

/// Returns the names in lower case, for [`nearest`].
fn keys(known: &[String]) -> Vec<String> {
    known.iter().map(|name| name.to_ascii_lowercase()).collect()
}

/// Returns true for the variables that Kubernetes sets in every container for a Service called `tokenmeter` or
/// `tokenmeter-…`: `…_SERVICE_HOST`, `…_SERVICE_PORT[_NAME]`, `…_PORT` and `…_PORT_80_TCP[_ADDR|_PORT|_PROTO]`.
fn is_service_link(name: &str) -> bool {
    let after_port = name.split("_PORT_").skip(1);
    let is_port = |rest: &str| {
        let (number, protocol) = rest.split_once('_').unwrap_or((rest, ""));
        !number.is_empty()
            && number.bytes().all(|byte| byte.is_ascii_digit())
            && ["TCP", "UDP", "SCTP"].iter().any(|known| protocol.starts_with(known))
    };
    name.ends_with("_SERVICE_HOST") || name.contains("_SERVICE_PORT") || name.ends_with("_PORT") || {
        after_port
    }
    .any(is_port)
}

#[cfg(test)]
#[path = "variables_tests.rs"]
mod tests;
