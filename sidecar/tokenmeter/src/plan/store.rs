//! The central store: its address, and where its password is found.
//!
//! Law: a password in what is written is never in a mistake, a warning or what is shown.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use ::ship::Address;

use crate::machine::Machine;
use crate::mistake::Mistake;
use crate::origin::Origin;
use crate::plan::values::Reader;
use crate::settings::{Value, setting, variable};

impl Reader<'_> {
    /// The address of the store that is named by `url`, if it is right.
    pub(super) fn store(&mut self, url: &Value, password: &Value, machine: &dyn Machine) -> Option<Address> {
        if matches!(url.origin, Origin::Flag(_)) && Address::parse(&url.text).is_ok_and(|a| a.has_password())
        {
            let what = "a password on the command line can be seen by everybody on this machine";
            let remedy = format!("write it to a file and name that by {}", setting(PASSWORD).flag());
            self.warnings.push(Mistake::at(&url.origin, what, remedy));
        }
        let file = (!password.text.is_empty()).then_some(password.text.as_str());
        match address(&url.text, file, machine) {
            Ok(address) => Some(address),
            Err(Refused::Url(what)) => {
                let remedy = "see sidecar/ship/postgres.md";
                self.mistakes.push(Mistake::at(&url.origin, what, remedy));
                None
            }
            Err(Refused::Password(what)) => {
                let remedy = "put the password there, on one line, or name another file";
                self.mistakes.push(Mistake::at(&password.origin, what, remedy));
                None
            }
        }
    }
}

/// Why there is no address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// The URL is at fault.
    Url(String),
    /// The file with the password is.
    Password(String),
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (Self::Url(what) | Self::Password(what)) = self;
        f.write_str(what)
    }
}

/// A store's address with its password: the URL's own, else the file's, else that of `PGPASSWORD`, else
/// that which a `.pgpass` file has for it.
pub(crate) fn address(url: &str, file: Option<&str>, machine: &dyn Machine) -> Result<Address, Refused> {
    let address = Address::parse(url).map_err(Refused::Url)?;
    if address.has_password() {
        return Ok(address);
    }
    let unread = |path: &Path, error: &dyn std::fmt::Display| {
        Refused::Password(format!("no password is in {}: {error}", path.display()))
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
        // One that nobody named need not be there.
        None => match env("HOME") {
            Some(home) => contents(&Path::new(&home).join(".pgpass")).unwrap_or_default(),
            None => String::new(),
        },
    };
    Ok(match address.find_password(&lines) {
        Some(password) => address.with_password(&password),
        // There are stores that want none.
        None => address,
    })
}

/// The same for a command, which has no settings but the variable for the file.
pub(crate) fn address_for_command(url: &str, machine: &dyn Machine) -> Result<Address, Refused> {
    let file = machine.variable(&variable(PASSWORD)).filter(|text| !text.is_empty());
    address(url, file.as_deref(), machine)
}

fn contents(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(FILE_BYTES).read_to_string(&mut text)?;
    Ok(text)
}

pub(super) const PASSWORD: &str = "ledger_ship_password_file";

/// Bytes of a file of passwords that are read.
const FILE_BYTES: u64 = 1024 * 1024;

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
