//! The ledger: the file that rows go into, how long they stay there, and the central store they are
//! shipped to. Passwords are read here and shown nowhere.

use std::path::{Path, PathBuf};

use ::ship::address::is_postgres;
use ::ship::{Address, redact};

use super::tenants::bounded;
use super::values::Reader;
use crate::machine::Machine;
use crate::mistake::Mistake;
use crate::settings::Value;

/// Where rows go.
#[derive(Clone, Debug, Default)]
pub struct Books {
    /// The ledger, if there is one.
    pub ledger: Option<::ledger::Plan>,
    /// The central store, if there is one.
    pub ship: Option<::ship::Plan>,
}

/// Bytes of a file of passwords.
const PASSWORDS_BYTES: u64 = 1 << 20;

impl Reader<'_> {
    pub(super) fn books(&mut self, machine: &dyn Machine) -> Books {
        let (ledger, ship) = (self.value("ledger"), self.value("ledger_ship"));
        let keep_days = u32::try_from(self.number("ledger_keep_days")).unwrap_or(u32::MAX);
        let central = is_postgres(&ledger.text);
        if central && !ship.text.is_empty() {
            let what = format!("both a central ledger and {} are named", ship.origin);
            self.mistakes.push(Mistake::at(
                &ledger.origin,
                what,
                "name the file by `ledger`, the store by `ledger_ship`",
            ));
        }
        let path = match central {
            true => self.value("ledger_spool"),
            false => ledger.clone(),
        };
        let store = if central { ledger } else { ship };
        if path.text.is_empty() {
            if !store.text.is_empty() {
                let what = "rows are to be shipped, but there is no ledger to ship from";
                self.mistakes.push(Mistake::at(&store.origin, what, "name a file by `ledger`"));
            }
            return Books::default();
        }
        let path = self.ledger_path(&path);
        let address = (!store.text.is_empty()).then(|| self.store(&store, machine)).flatten();
        let host = ["HOSTNAME", "POD_NAME"].iter().find_map(|name| machine.variable(name));
        let host = host.unwrap_or_else(|| "unnamed".to_owned());
        Books {
            ship: address.map(|address| ::ship::Plan::new(&path, address, &host)),
            ledger: Some(::ledger::Plan { keep_days, ..::ledger::Plan::new(path) }),
        }
    }

    /// The open month's file. That its folder is not there, or not to be written to, may change while we
    /// run; that it names no file will not.
    fn ledger_path(&mut self, written: &Value) -> PathBuf {
        let path = PathBuf::from(&written.text);
        let told = match written.text.contains("://") {
            true => Some("it is a URL, but not of PostgreSQL"),
            false if path.is_dir() => Some("it is a folder"),
            false if path.extension().is_none_or(|extension| extension != "db") => {
                Some("it does not end in .db")
            }
            false => None,
        };
        if let Some(what) = told {
            let what = format!("`{}` is no ledger: {what}", redact_if_url(&written.text));
            let remedy =
                "write a file's name as in /var/lib/tokenmeter/ledger.db, or postgres://USER@HOST/DATABASE";
            self.mistakes.push(Mistake::at(&written.origin, what, remedy));
        }
        path
    }

    /// The central store, with its password.
    fn store(&mut self, Value { text, origin }: &Value, machine: &dyn Machine) -> Option<Address> {
        store(text, machine)
            .map_err(|(what, remedy)| self.mistakes.push(Mistake::at(origin, what, remedy)))
            .ok()
    }
}

/// A central store's address, with its password where that is found: in the URL, in `PGPASSWORD`, or in the
/// file that the URL's `passfile` names. Else what is wrong, and what to do.
pub(crate) fn store(text: &str, machine: &dyn Machine) -> Result<Address, (String, &'static str)> {
    let address = Address::parse(text).map_err(|what| {
        (format!("`{}`: {what}", redact(text)), "write postgres://USER@HOST[:PORT]/DATABASE")
    })?;
    if address.has_password() {
        return Ok(address);
    }
    if let Some(password) = machine.variable("PGPASSWORD").filter(|password| !password.is_empty()) {
        return Ok(address.with_password(&password));
    }
    let Some(file) = address.passwords() else { return Ok(address) };
    let found = passwords(file).and_then(|lines| {
        address
            .find_password(&lines)
            .ok_or_else(|| "no line of it is for this server, database and user".to_owned())
    });
    match found {
        Ok(password) => Ok(address.with_password(&password)),
        Err(why) => Err((
            format!("the file of passwords {} does not help: {why}", file.display()),
            "write HOST:PORT:DATABASE:USER:PASSWORD into it",
        )),
    }
}

fn passwords(file: &Path) -> Result<String, String> {
    let bytes = bounded(file, PASSWORDS_BYTES).map_err(|error| error.to_string())?;
    String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())
}

fn redact_if_url(text: &str) -> String {
    if text.contains("://") { redact(text) } else { text.escape_debug().to_string() }
}

#[cfg(test)]
#[path = "books_tests.rs"]
mod tests;
