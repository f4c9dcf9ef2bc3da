//! Reads a setting of the proxy for commands beside it: like `run`, from the flag, the variable or the
//! settings file.

use origin::file::Shape;
use origin::{Diagnostic, Origin};

use crate::plan::machine::Machine;
use crate::settings::{Form, Value, file, one_of, setting, variable};

/// Returns a setting from the flag, else the variable, else the settings file.
pub(crate) fn named(
    key: &str,
    flag: Option<&str>,
    config: Option<&str>,
    machine: &dyn Machine,
) -> Result<Option<String>, Diagnostic> {
    match flag {
        Some(text) => Ok(Some(text.to_owned())),
        None => Ok(written(key, config, machine)?.map(|value| value.text)),
    }
}

/// Returns the name that a choice has in the variable, else in the settings file, else by default.
///
/// # Errors
/// If the settings file cannot be read, or the choice has another name.
pub(crate) fn chosen(
    key: &str,
    config: Option<&str>,
    machine: &dyn Machine,
) -> Result<&'static str, Diagnostic> {
    let row = setting(key);
    let Form::Choice(known) = row.form else { unreachable!("{key} is a choice in the table") };
    written(key, config, machine)?.map_or(Ok(row.default), |value| one_of(&value, known))
}

/// Returns a setting from the variable, else from the settings file.
fn written(key: &str, config: Option<&str>, machine: &dyn Machine) -> Result<Option<Value>, Diagnostic> {
    if let Some(text) = variable_of(key, machine) {
        return Ok(Some(Value { text, origin: Origin::Env(variable(key)) }));
    }
    let Some(config) = self::config(config, machine) else { return Ok(None) };
    let Shape::Map(entries) = file::read(&config)?.shape else { return Ok(None) };
    Ok(entries.into_iter().find(|(name, _, _)| name == key).and_then(|(_, origin, node)| match node.shape {
        Shape::Scalar(text) if !text.is_empty() => Some(Value { text, origin }),
        _ => None,
    }))
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
