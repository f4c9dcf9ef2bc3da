//! The ledger: the file that rows go into, how long they stay there, and the central store they are
//! shipped to.

use std::path::{Path, PathBuf};

use ::ship::address::is_postgres;
use ::ship::redact;

use super::store::PASSWORD;
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
    /// Starts although another process of this host writes the ledger.
    pub wait: bool,
}

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
        let password = self.value(PASSWORD);
        let address = (!store.text.is_empty()).then(|| self.store(&store, &password, machine)).flatten();
        let pod = machine.variable("POD_NAME").filter(|name| !name.is_empty());
        let host = pod.unwrap_or_else(|| machine.host());
        Books {
            ship: address.map(|address| ::ship::Plan::new(&path, address, &host)),
            wait: self.switch("ledger_wait"),
            ledger: Some(::ledger::Plan { keep_days, ..::ledger::Plan::new(path) }),
        }
    }

    /// The open month's file. That its folder cannot be written to may change while we run; that it names
    /// no file will not, and a folder that is not there is most often one that was written wrong: rows
    /// would be shed for as long as nobody looks.
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
        } else if let Some(folder) = lacking(&path) {
            let what = format!("the ledger's folder {} is not there", folder.display());
            let remedy = "make it, or mount it, before tokenmeter starts, or name a file in another one";
            self.mistakes.push(Mistake::at(&written.origin, what, remedy));
        }
        path
    }
}

/// The folder that a file is to be in, if it is known that there is none.
fn lacking(file: &Path) -> Option<&Path> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty())?;
    let gone = |error: std::io::Error| {
        matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory)
    };
    match folder.metadata() {
        Ok(there) => !there.is_dir(),
        Err(error) => gone(error),
    }
    .then_some(folder)
}

fn redact_if_url(text: &str) -> String {
    if text.contains("://") { redact(text) } else { text.escape_debug().to_string() }
}

#[cfg(test)]
#[path = "books_tests.rs"]
mod tests;
