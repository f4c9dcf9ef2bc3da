//! Errors of shipping: a reason for the metric's label, and a message with a remedy. Details that a server
//! adds are left out, because they quote rows.

use std::error::Error;
use std::fmt;
use std::path::Path;

use ledger::export::{Cursor, Origin};
use postgres::error::SqlState;

use crate::address::Address;

meter::listed_enum! {
    /// The reason of a failure; the label of `tokenmeter_ship_failures_total`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum Reason {
        /// The store cannot be reached, or closed the connection; a retry may succeed.
        Unreachable = "unreachable",
        /// The store refused; the operator has to change something.
        Refused = "refused",
        /// Anything else, such as the local ledger files.
        Other = "other",
    }
    /// Returns the label value.
    pub fn name(self);
}

/// The longest message that is kept: a store may send any length.
const MESSAGE_MAX_CHARS: usize = 2_000;

/// The extent of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Everything that is sent or read.
    Store,
    /// One ledger file; the others are still sent.
    File,
    /// One batch, because the store has less than it had; its cursor is fetched again.
    Batch,
}

/// An error of shipping, with a remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ShipError {
    /// The reason.
    pub reason: Reason,
    /// The error and the remedy.
    pub message: String,
    /// The extent.
    pub(crate) scope: Scope,
}

impl ShipError {
    pub(crate) fn refused(message: impl Into<String>) -> Self {
        Self::new(Reason::Refused, message)
    }

    pub(crate) fn other(message: impl Into<String>) -> Self {
        Self::new(Reason::Other, message)
    }

    fn new(reason: Reason, message: impl Into<String>) -> Self {
        let message = message.into().chars().take(MESSAGE_MAX_CHARS).collect();
        Self { reason, message, scope: Scope::Store }
    }

    /// Creates the error of a batch whose cursor is beyond the store's.
    pub(crate) fn store_is_behind() -> Self {
        let message = "the central store has less of a file than it had";
        Self { scope: Scope::Batch, ..Self::other(message) }
    }

    /// Creates the error of a file of which the store has more rows than the file, or other ones.
    pub(crate) fn diverged(path: &Path, origin: Origin, there: Cursor, here: Cursor) -> Self {
        Self::other(format!(
            "the central store has rows of {path} that are not in the file (exchanges up to {}, here {}; \
             acts up to {}, here {}): the file was restored from a backup, or it or its volume is a copy of one that is shipped from \
             elsewhere; nothing of it is sent and its rows are kept. If it was restored, let the store's owner run \
             `SELECT tokenmeter.send_again('{}')`: all of it is sent again, and nothing is counted twice; \
             if it is a copy, stop this process and move the copy out of the ledger's folder: the next start begins a new file",
            there.exchange,
            here.exchange,
            there.act,
            here.act,
            uuid(&origin.instance),
            path = path.display(),
        ))
    }

    /// Creates the error of a panic. Its text is only on stderr, because it may quote rows.
    pub(crate) fn panic() -> Self {
        Self::other(
            "the shipping thread stopped because of a bug in tokenmeter (a panic, printed to stderr); it restarts \
             by itself; please report the bug",
        )
    }

    /// Creates the error of a ledger file that cannot be read.
    pub(crate) fn ledger_unreadable(error: &dyn fmt::Display) -> Self {
        Self::other(format!("the ledger cannot be read for shipping: {error}"))
    }
}

impl From<postgres::Error> for ShipError {
    fn from(error: postgres::Error) -> Self {
        Self::from_postgres(&error, None)
    }
}

impl ShipError {
    /// Creates the error of a connection that could not be opened.
    pub(crate) fn not_connected(error: &postgres::Error, address: &Address) -> Self {
        Self::from_postgres(error, Some(address))
    }

    fn from_postgres(error: &postgres::Error, address: Option<&Address>) -> Self {
        let Some(db_error) = error.as_db_error() else { return Self::without_response(error, address) };
        let (code, message) = (db_error.code(), db_error.message());
        // Errors raised by the schema's own functions, whose hints quote no rows.
        if code.code().starts_with("TM") {
            let hint = db_error.hint().map(|hint| format!(". {hint}")).unwrap_or_default();
            let message = format!("the central store reports: {message}{hint}");
            return Self { scope: Scope::File, ..Self::refused(message) };
        }
        let (reason, remedy) = match classify(code) {
            // Raised by the schema's own functions, whose message names the owner.
            (reason, _) if *code == SqlState::INSUFFICIENT_PRIVILEGE && db_error.hint().is_some() => {
                (reason, "name that role in the URL, or one that is a member of it")
            }
            other => other,
        };
        let message = match remedy {
            "" => format!("the central store reports: {message} ({})", code.code()),
            remedy => format!("the central store reports: {message}; {remedy}"),
        };
        let scope = if *code == SqlState::CHECK_VIOLATION { Scope::File } else { Scope::Store };
        Self { scope, ..Self::new(reason, message) }
    }

    /// Creates the error of a failure without an error response from the server.
    fn without_response(error: &postgres::Error, address: Option<&Address>) -> Self {
        let cause = causes(error);
        if error.is_closed() {
            let message = "the central store closed the connection; it is retried automatically";
            return Self::new(Reason::Unreachable, message);
        }
        let tls = ["certificate", "TLS", "tls", "UnknownIssuer", "handshake"];
        if tls.iter().any(|word| cause.contains(word)) {
            let remedy = "give the certificate authority as sslrootcert=FILE in the URL, \
                          or set sslmode=disable if the network is trusted";
            return Self::refused(format!("TLS with the central store failed: {cause}; {remedy}"));
        }
        if cause.contains("password missing") {
            return Self::refused(
                "the central store requires a password and none is set; write it to a file and give that as \
                 --ledger-ship-password-file, or set PGPASSWORD",
            );
        }
        let at = address.map(|address| format!(" at {}", address.hosts())).unwrap_or_default();
        Self::new(Reason::Unreachable, format!("the central store{at} cannot be reached: {cause}"))
    }
}

/// Returns an id in PostgreSQL's notation.
pub(crate) fn uuid(id: &[u8; 16]) -> String {
    let mut text = String::with_capacity(36);
    for (at, byte) in id.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push_str(&format!("{byte:02x}"));
    }
    text
}

/// Returns an error and its sources, in one line.
fn causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let message = cause.to_string();
        if !text.contains(&message) {
            text = format!("{text}: {message}");
        }
        next = cause.source();
    }
    text
}

fn classify(code: &SqlState) -> (Reason, &'static str) {
    let refused = [
        (SqlState::INVALID_PASSWORD, "check the password"),
        (
            SqlState::INVALID_AUTHORIZATION_SPECIFICATION,
            "check the user in the URL and the server's pg_hba.conf",
        ),
        (SqlState::INVALID_CATALOG_NAME, "create the database or name another in the URL"),
        (SqlState::CHECK_VIOLATION, ""),
        (
            SqlState::INSUFFICIENT_PRIVILEGE,
            "grant it as described in sidecar/ship/postgres.md, under `Roles`",
        ),
        (
            SqlState::READ_ONLY_SQL_TRANSACTION,
            "name the primary in the URL; this server is a standby or read-only",
        ),
    ];
    if let Some((_, remedy)) = refused.iter().find(|(state, _)| state == code) {
        return (Reason::Refused, remedy);
    }
    match &code.code()[..2] {
        // Connection exceptions, operator intervention, insufficient resources: temporary.
        "08" | "57" | "53" => (Reason::Unreachable, ""),
        "28" | "3D" | "42" | "3F" => (Reason::Refused, ""),
        _ => (Reason::Other, ""),
    }
}
