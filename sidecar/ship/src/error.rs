//! What went wrong between us and the central store: whose side it is on, as a label, and what to do about
//! it, as a sentence. Details that a server adds are left out: they quote rows.

use std::error::Error;
use std::fmt;
use std::path::Path;

use ledger::feed::{Cursor, Origin};
use postgres::error::SqlState;

use crate::address::Address;

/// Whose side it is on; the label of `tokenmeter_ship_failures_total`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reason {
    /// The store is not there, or went away: waiting helps.
    Unreachable,
    /// The store is there and will not have it: somebody has to change something.
    Refused,
    /// All else, our own files among it.
    Other,
}

impl Reason {
    /// Every reason.
    pub const ALL: [Self; 3] = [Self::Unreachable, Self::Refused, Self::Other];

    /// The label value.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unreachable => "unreachable",
            Self::Refused => "refused",
            Self::Other => "other",
        }
    }
}

/// The extent of what a failure stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// All that is sent or read.
    Store,
    /// One ledger file: the others go on.
    File,
    /// One batch: the store has gone back behind it, and is asked again where it is.
    Batch,
}

/// A failure, with what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShipError {
    /// Whose side it is on.
    pub reason: Reason,
    /// What happened and what to do.
    pub message: String,
    /// The extent of what it stops.
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
        Self { reason, message: message.into(), scope: Scope::Store }
    }

    /// The store has gone back behind the cursor of a batch.
    pub(crate) fn store_is_behind() -> Self {
        let message = "the central store has less of a file than it had";
        Self { scope: Scope::Batch, ..Self::other(message) }
    }

    /// A file of which the store has more than is in it, or other exchanges.
    pub(crate) fn diverged(path: &Path, origin: Origin, there: Cursor, here: Cursor) -> Self {
        Self::other(format!(
            "the central store has something of {path} that is not in it (it has exchanges up to {}, of {} here, and \
             acts up to {}, of {}): the file was put back from a backup, or it or its volume is a copy of one that is shipped from \
             elsewhere; nothing of it is sent and its rows are kept. If it was put back, let the store's owner run \
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

    /// A defect of ours. What it said is on stderr; it may quote what nobody should read here.
    pub(crate) fn panic() -> Self {
        Self::other(
            "the thread that ships broke off by a defect of tokenmeter (a panic, which is on stderr); it begins anew \
             by itself; please report this",
        )
    }

    /// Of the local ledger's side.
    pub(crate) fn ledger_unreadable(error: &dyn fmt::Display) -> Self {
        Self::other(format!("the ledger cannot be read to be shipped: {error}"))
    }
}

impl fmt::Display for ShipError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for ShipError {}

impl From<postgres::Error> for ShipError {
    fn from(error: postgres::Error) -> Self {
        Self::from_postgres(&error, None)
    }
}

impl ShipError {
    /// No connection came about.
    pub(crate) fn not_connected(error: &postgres::Error, address: &Address) -> Self {
        Self::from_postgres(error, Some(address))
    }

    fn from_postgres(error: &postgres::Error, address: Option<&Address>) -> Self {
        let Some(db_error) = error.as_db_error() else { return Self::without_response(error, address) };
        let (code, message) = (db_error.code(), db_error.message());
        // What the store's own functions raise; their hints quote no rows.
        if code.code().starts_with("TM") {
            let hint = db_error.hint().map(|hint| format!(". {hint}")).unwrap_or_default();
            let message = format!("the central store says: {message}{hint}");
            return Self { scope: Scope::File, ..Self::refused(message) };
        }
        let (reason, remedy) = classify(code);
        let message = match remedy {
            "" => format!("the central store says: {message} ({})", code.code()),
            remedy => format!("the central store says: {message}; {remedy}"),
        };
        let scope = if *code == SqlState::CHECK_VIOLATION { Scope::File } else { Scope::Store };
        Self { scope, ..Self::new(reason, message) }
    }

    /// The server said nothing itself.
    fn without_response(error: &postgres::Error, address: Option<&Address>) -> Self {
        let cause = causes(error);
        if error.is_closed() {
            let message = "the central store closed the connection; tried again by itself";
            return Self::new(Reason::Unreachable, message);
        }
        let tls = ["certificate", "TLS", "tls", "UnknownIssuer", "handshake"];
        if tls.iter().any(|word| cause.contains(word)) {
            let remedy = "name the authority that signed its certificate by sslrootcert=FILE in the URL, \
                          or say sslmode=disable if the way there is safe";
            return Self::refused(format!("no TLS with the central store: {cause}; {remedy}"));
        }
        if cause.contains("password missing") {
            return Self::refused(
                "the central store wants a password and none is given; write it to a file and name that by \
                 --ledger-ship-password-file, or set PGPASSWORD",
            );
        }
        let at = address.map(|address| format!(" at {}", address.hosts())).unwrap_or_default();
        Self::new(Reason::Unreachable, format!("the central store{at} cannot be reached: {cause}"))
    }
}

/// As PostgreSQL writes it.
fn uuid(id: &[u8; 16]) -> String {
    let mut text = String::with_capacity(36);
    for (at, byte) in id.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push_str(&format!("{byte:02x}"));
    }
    text
}

/// An error and what it comes from, in one line.
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
        (SqlState::INSUFFICIENT_PRIVILEGE, "grant it as sidecar/ship/postgres.md says, under `Roles`"),
        (
            SqlState::READ_ONLY_SQL_TRANSACTION,
            "name the primary in the URL; this server is a standby or set to be read only",
        ),
    ];
    if let Some((_, remedy)) = refused.iter().find(|(state, _)| state == code) {
        return (Reason::Refused, remedy);
    }
    match &code.code()[..2] {
        // Connections, an operator's hand, resources: they come back.
        "08" | "57" | "53" => (Reason::Unreachable, ""),
        "28" | "3D" | "42" | "3F" => (Reason::Refused, ""),
        _ => (Reason::Other, ""),
    }
}
