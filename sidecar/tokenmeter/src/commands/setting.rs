//! Reads a setting of the proxy for commands beside it: like `run`, from the flag, the variable or the
//! settings file.

use origin::Diagnostic;
use origin::file::Shape;

use crate::plan::machine::Machine;
use crate::settings::file;
use crate::settings::variable;

/// Returns a setting from the flag, else the variable, else the settings file.
pub(crate) fn named(
    key: &str,
    flag: Option<&str>,
    config: Option<&str>,
    machine: &dyn Machine,
) -> Result<Option<String>, Diagnostic> {
    if let Some(value) = flag.map(str::to_owned).or_else(|| variable_of(key, machine)) {
        return Ok(Some(value));
    }
    let Some(config) = self::config(config, machine) else { return Ok(None) };
    let Shape::Map(entries) = file::read(&config)?.shape else { return Ok(None) };
    match entries.into_iter().find(|(name, _, _)| name == key).map(|(_, _, node)| node.shape) {
        Some(Shape::Scalar(value)) if !value.is_empty() => Ok(Some(value)),
        _ => Ok(None),
    }
}

/// Returns the path of the settings file.
pub(crate) fn config(flag: Option<&str>, machine: &dyn Machine) -> Option<String> {
    flag.map(str::to_owned).or_else(|| variable_of("config", machine))
}

/// Returns the help of a flag, with the variable of its setting.
pub(crate) fn with_variable(help: &str, key: &str) -> String {
    format!("{help} [env: {}]", variable(key))
}

fn variable_of(key: &str, machine: &dyn Machine) -> Option<String> {
    machine.variable(&variable(key)).filter(|text| !text.is_empty())
}
