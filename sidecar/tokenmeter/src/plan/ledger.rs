//! Plans the ledger: its file, its retention, the central store and the usage events.

use std::path::{Path, PathBuf};

use ::ledger::{PathProblem, UnknownZone, Zone, period};
use ::ship::address::is_postgres;
use ::ship::redact;
use accounting::LedgerPlan;
use events::Endpoint;
use origin::Diagnostic;

use super::store::PASSWORD;
use super::values::Reader;
use crate::plan::machine::Machine;
use crate::settings::Value;
use crate::token_file::TokenFile;

const TIME_ZONE: &str = "ledger_time_zone";
const EVENTS: &str = "usage_events";
const TOKEN_FILE: &str = "usage_events_token_file";
const SINCE: &str = "usage_events_since";

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
            let events = self.value(EVENTS);
            if !events.text.is_empty() {
                let problem = "usage events come from the ledger, which is not set";
                self.errors.push(Diagnostic::at(&events.origin, problem, "set `ledger` to a file"));
            }
            let zone = self.value(TIME_ZONE);
            if !zone.text.is_empty() {
                let problem = "has no effect without `ledger`";
                self.warnings.push(Diagnostic::at(&zone.origin, problem, "set `ledger`, or remove it"));
            }
            if !store.text.is_empty() {
                let problem = "there is no ledger to ship from";
                self.errors.push(Diagnostic::at(&store.origin, problem, "set `ledger` to a file"));
            }
            return LedgerPlan::default();
        }
        let time_zone = Some(self.time_zone());
        let path = self.ledger_path(&path);
        let password = self.value(PASSWORD);
        let address = (!store.text.is_empty()).then(|| self.store(&store, &password, machine)).flatten();
        let pod = machine.variable("POD_NAME").filter(|name| !name.is_empty());
        let host = pod.unwrap_or_else(|| machine.host());
        LedgerPlan {
            ship: address.map(|address| ::ship::Plan::new(&path, address, &host)),
            events: self.usage_events(&path),
            wait: self.switch("ledger_wait"),
            ledger: Some(::ledger::Plan { keep_days, time_zone, ..::ledger::Plan::new(path) }),
        }
    }

    /// Plans the time zone of the ledger.
    fn time_zone(&mut self) -> Zone {
        let written = self.value(TIME_ZONE);
        let name = if written.text.is_empty() { "UTC" } else { &written.text };
        Zone::named(name).unwrap_or_else(|error| {
            self.errors.push(Diagnostic::at(&written.origin, error.problem, UnknownZone::REMEDY));
            Zone::UTC
        })
    }

    /// Plans the usage events of the ledger at `path`.
    fn usage_events(&mut self, path: &Path) -> Option<events::Plan> {
        let (url, token, since) = (self.value(EVENTS), self.value(TOKEN_FILE), self.value(SINCE));
        if url.text.is_empty() {
            for written in [token, since].iter().filter(|written| !written.text.is_empty()) {
                let problem = format!("has no effect without `{EVENTS}`");
                self.warnings.push(Diagnostic::at(&written.origin, problem, "set a URL, or remove it"));
            }
            return None;
        }
        let since_us = match since.text.as_str() {
            "" => i64::MIN,
            text => period::instant(text).unwrap_or_else(|problem| {
                self.errors.push(Diagnostic::at(
                    &since.origin,
                    problem,
                    "as in `usage_events_since: 2026-10`",
                ));
                i64::MIN
            }),
        };
        let token = (!token.text.is_empty()).then(|| {
            let file = TokenFile::at(&token.text);
            if let Err(error) = file.read() {
                let problem = format!("no token can be read from `{}`: {error}", token.text.escape_debug());
                let remedy = "put the token there, on one line, or remove the setting";
                self.errors.push(Diagnostic::at(&token.origin, problem, remedy));
            }
            events::Token::new(move || file.read())
        });
        match Endpoint::parse(&url.text) {
            Ok(endpoint) => {
                if endpoint.is_unencrypted() {
                    let problem = "the receiver is http://, so anyone on the network path can read the usage of tenants \
                                   and the token";
                    let remedy = "use https:// unless the receiver is local";
                    self.warnings.push(Diagnostic::at(&url.origin, problem, remedy));
                }
                Some(events::Plan { token, since_us, ..events::Plan::new(path, endpoint) })
            }
            Err(error) => {
                let problem = format!("the URL of usage events is invalid: {}", error.problem);
                self.errors.push(Diagnostic::at(&url.origin, problem, error.remedy));
                None
            }
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
                let problem = format!("`{}` is not a ledger: {problem}", redact_if_url(&written.text));
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
