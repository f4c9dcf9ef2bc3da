//! The address of the central store, and its password.
//!
//! Law: no error, warning or printed setting holds a password.

use std::io;
use std::path::{Path, PathBuf};

use ::ship::Address;
use origin::{Diagnostic, Origin, content};

use crate::plan::machine::Machine;
use crate::plan::values::Reader;
use crate::settings::{Value, setting, variable};

impl Reader<'_> {
    /// Returns the address of the store at `url`, if it is valid.
    pub(super) fn store(&mut self, url: &Value, password: &Value, machine: &dyn Machine) -> Option<Address> {
        if matches!(url.origin, Origin::Flag(_)) && Address::parse(&url.text).is_ok_and(|a| a.has_password())
        {
            let problem = "every user of this machine can read a password on the command line";
            let remedy = format!("write it to a file, and set {} to the file", setting(PASSWORD).flag());
            self.warnings.push(Diagnostic::at(&url.origin, problem, remedy));
        }
        let file = (!password.text.is_empty()).then_some(password.text.as_str());
        match address(&url.text, file, machine) {
            Ok(address) => Some(address),
            Err(AddressError::Url(problem)) => {
                let remedy = "see sidecar/ship/postgres.md";
                self.errors.push(Diagnostic::at(&url.origin, problem, remedy));
                None
            }
            Err(AddressError::Password(problem)) => {
                let remedy = "put the password there, on one line, or name another file";
                self.errors.push(Diagnostic::at(&password.origin, problem, remedy));
                None
            }
        }
    }
}

/// The error of a store's address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AddressError {
    /// The URL is invalid.
    #[error("{0}")]
    Url(String),
    /// The password file is unreadable or empty.
    #[error("{0}")]
    Password(String),
}

/// Returns a store's address with its password: that of the URL, else of the file, else of `PGPASSWORD`, else of
/// a `.pgpass` file.
pub(crate) fn address(url: &str, file: Option<&str>, machine: &dyn Machine) -> Result<Address, AddressError> {
    let address = Address::parse(url).map_err(AddressError::Url)?;
    if address.has_password() {
        return Ok(address);
    }
    let unread = |path: &Path, error: &dyn std::fmt::Display| {
        AddressError::Password(format!("no password can be read from {}: {error}", path.display()))
    };
    if let Some(file) = file {
        let file = Path::new(file);
        let text = contents(file).map_err(|error| unread(file, &error))?;
        let line = text.lines().next().unwrap_or("");
        return match line {
            "" => Err(unread(file, &"its first line is empty")),
            line => Ok(address.with_password(line)),
        };
    }
    let env = |name: &str| machine.variable(name).filter(|text| !text.is_empty());
    if let Some(password) = env("PGPASSWORD") {
        return Ok(address.with_password(&password));
    }
    let named = address.passwords().cloned().or_else(|| env("PGPASSFILE").map(PathBuf::from));
    let lines = match &named {
        Some(path) => contents(path).map_err(|error| unread(path, &error))?,
        // The default file may be missing.
        None => match env("HOME") {
            Some(home) => contents(&Path::new(&home).join(".pgpass")).unwrap_or_default(),
            None => String::new(),
        },
    };
    Ok(match address.find_password(&lines) {
        Some(password) => address.with_password(&password),
        // A store may require no password.
        None => address,
    })
}

/// Returns a store's address for a command, whose password file only the environment names.
pub(crate) fn address_for_command(url: &str, machine: &dyn Machine) -> Result<Address, AddressError> {
    let file = machine.variable(&variable(PASSWORD)).filter(|text| !text.is_empty());
    address(url, file.as_deref(), machine)
}

fn contents(path: &Path) -> io::Result<String> {
    content::bounded_once(path, FILE_BYTES).and_then(content::text)
}

pub(super) const PASSWORD: &str = "ledger_ship_password_file";

/// Maximum bytes of a password file.
const FILE_BYTES: u64 = 1024 * 1024;

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
