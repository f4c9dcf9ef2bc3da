//! Plans the ledger: its file, its retention, and the central store.

use std::path::PathBuf;

use ::ledger::PathProblem;
use ::ship::address::is_postgres;
use ::ship::redact;
use accounting::LedgerPlan;
use origin::Diagnostic;

use super::store::PASSWORD;
use super::values::Reader;
use crate::plan::machine::Machine;
use crate::settings::Value;

impl Reader<'_> {
    pub(super) fn ledger(&mut self, machine: &dyn Machine) -> LedgerPlan {
        let (ledger, ship) = (self.value("ledger"), self.value("ledger_ship"));
        let keep_days = u32::try_from(self.number("ledger_keep_days")).unwrap_or(u32::MAX);
        let central = is_postgres(&ledger.text);
        if central && !ship.text.is_empty() {
            let problem = format!("a central ledger and {} are both set", ship.origin);
            self.errors.push(Diagnostic::at(
                &ledger.origin,
                problem,
                "set `ledger` to the file and `ledger_ship` to the store",
            ));
        }
        let path = match central {
            true => self.value("ledger_spool"),
            false => ledger.clone(),
        };
        let store = if central { ledger } else { ship };
        if path.text.is_empty() {
            if !store.text.is_empty() {
                let problem = "there is no ledger to ship from";
                self.errors.push(Diagnostic::at(&store.origin, problem, "set `ledger` to a file"));
            }
            return LedgerPlan::default();
        }
        let path = self.ledger_path(&path);
        let password = self.value(PASSWORD);
        let address = (!store.text.is_empty()).then(|| self.store(&store, &password, machine)).flatten();
        let pod = machine.variable("POD_NAME").filter(|name| !name.is_empty());
        let host = pod.unwrap_or_else(|| machine.host());
        LedgerPlan {
            ship: address.map(|address| ::ship::Plan::new(&path, address, &host)),
            wait: self.switch("ledger_wait"),
            ledger: Some(::ledger::Plan { keep_days, ..::ledger::Plan::new(path) }),
        }
    }

    /// Returns the path of the open month's file. A path that cannot be a file, or whose folder is missing, is an error.
    fn ledger_path(&mut self, written: &Value) -> PathBuf {
        let path = PathBuf::from(&written.text);
        match PathProblem::of(&path) {
            Some(PathProblem::FolderMissing(folder)) => {
                let problem = format!("the ledger's folder {} does not exist", folder.display());
                let remedy = "create or mount it before tokenmeter starts, or name a file in another folder";
                self.errors.push(Diagnostic::at(&written.origin, problem, remedy));
            }
            Some(problem) => {
                let problem = format!("`{}` is no ledger: {problem}", redact_if_url(&written.text));
                let remedy =
                    "write a file, as in /var/lib/tokenmeter/ledger.db, or postgres://USER@HOST/DATABASE";
                self.errors.push(Diagnostic::at(&written.origin, problem, remedy));
            }
            None => {}
        }
        path
    }
}

fn redact_if_url(text: &str) -> String {
    if text.contains("://") { redact(text) } else { text.escape_debug().to_string() }
}

#[cfg(test)]
#[path = "ledger_tests.rs"]
mod tests;
