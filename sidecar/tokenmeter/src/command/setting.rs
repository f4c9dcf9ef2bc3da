//! What a setting of the proxy is, for commands beside it: as `run` would have it, from the flag, the
//! variable or the settings file.

use crate::diagnostic::Diagnostic;
use crate::file::{self, Shape};
use crate::machine::Machine;
use crate::settings::variable;

/// What a setting is: by the flag, else the variable, else the settings file, if any of them says.
pub(crate) fn named(
    key: &str,
    flag: Option<&str>,
    config: Option<&str>,
    machine: &dyn Machine,
) -> Result<Option<String>, Diagnostic> {
    if let Some(said) = flag.map(str::to_owned).or_else(|| said(key, machine)) {
        return Ok(Some(said));
    }
    let Some(config) = self::config(config, machine) else { return Ok(None) };
    let Shape::Map(entries) = file::read(&config)?.shape else { return Ok(None) };
    match entries.into_iter().find(|(name, _, _)| name == key).map(|(_, _, node)| node.shape) {
        Some(Shape::Scalar(said)) if !said.is_empty() => Ok(Some(said)),
        _ => Ok(None),
    }
}

/// The settings file, if one is named.
pub(crate) fn config(flag: Option<&str>, machine: &dyn Machine) -> Option<String> {
    flag.map(str::to_owned).or_else(|| said("config", machine))
}

fn said(key: &str, machine: &dyn Machine) -> Option<String> {
    machine.variable(&variable(key)).filter(|text| !text.is_empty())
}
