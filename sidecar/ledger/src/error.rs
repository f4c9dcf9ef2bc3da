//! The ledger's error: one of six faults, and a message with the remedy.

use std::fmt;
use std::io;

use rusqlite::{Error as SqliteError, ErrorCode};

meter::listed_enum! {
    /// The kind of a fault; the label of `tokenmeter_ledger_faults_total`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum Fault {
        /// The disk or the quota is full.
        Full = "full",
        /// The file or its directory cannot be written or reached by this process.
        ReadOnly = "read_only",
        /// The disk reports an error.
        Io = "io",
        /// The bytes read differ from those written.
        Corrupt = "corrupt",
        /// Another process holds the ledger, or the file for longer than a moment.
        Locked = "locked",
        /// Any other fault.
        Other = "other",
    }
    /// Returns the label value.
    pub fn name(self);
}

/// A fault with its message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// The kind.
    pub fault: Fault,
    /// The fault and the remedy.
    pub message: String,
    /// True if no file could hold the row, so that a retry fails too.
    pub(crate) of_row: bool,
    /// True if the fault is in another file than the open one, which need not be opened anew.
    pub(crate) elsewhere: bool,
}

impl Error {
    pub(crate) fn new(fault: Fault, message: impl Into<String>) -> Self {
        Self { fault, message: message.into(), of_row: false, elsewhere: false }
    }

    pub(crate) fn corrupt(message: impl Into<String>) -> Self {
        Self::new(Fault::Corrupt, message)
    }

    /// Returns the error of a row that no file can hold.
    pub(crate) fn row(message: impl Into<String>) -> Self {
        Self { of_row: true, ..Self::new(Fault::Other, message) }
    }

    /// Returns the error as one of another file than the open one.
    pub(crate) fn elsewhere(self) -> Self {
        Self { elsewhere: true, ..self }
    }

    /// Returns the error with the name of the file or the month before its message.
    pub(crate) fn of(self, place: impl fmt::Display) -> Self {
        Self { message: format!("{place}: {}", self.message), ..self }
    }
}

impl From<SqliteError> for Error {
    fn from(error: SqliteError) -> Self {
        let fault = match &error {
            SqliteError::SqliteFailure(error, _) => match error.code {
                ErrorCode::DiskFull => Fault::Full,
                ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen => Fault::ReadOnly,
                ErrorCode::SystemIoFailure | ErrorCode::NoLargeFileSupport => Fault::Io,
                ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase | ErrorCode::SchemaChanged => {
                    Fault::Corrupt
                }
                ErrorCode::DatabaseBusy
                | ErrorCode::DatabaseLocked
                | ErrorCode::FileLockingProtocolFailed => Fault::Locked,
                _ => Fault::Other,
            },
            // A table or column of this version of the schema is absent or of another type.
            SqliteError::SqlInputError { .. }
            | SqliteError::QueryReturnedNoRows
            | SqliteError::InvalidColumnType(..)
            | SqliteError::FromSqlConversionFailure(..)
            | SqliteError::IntegralValueOutOfRange(..)
            | SqliteError::Utf8Error(..) => Fault::Corrupt,
            _ => Fault::Other,
        };
        let of_row = match &error {
            SqliteError::SqliteFailure(error, _) => matches!(
                error.code,
                ErrorCode::ConstraintViolation
                    | ErrorCode::TypeMismatch
                    | ErrorCode::TooBig
                    | ErrorCode::ParameterOutOfRange
            ),
            _ => false,
        };
        let message = match error {
            // Its own text quotes all of the SQL, which may be a whole migration.
            SqliteError::SqlInputError { msg, .. } => msg,
            error => error.to_string(),
        };
        Self { of_row, ..Self::new(fault, message) }
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        let fault = match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                Fault::Full
            }
            io::ErrorKind::PermissionDenied
            | io::ErrorKind::ReadOnlyFilesystem
            | io::ErrorKind::NotFound
            | io::ErrorKind::NotADirectory => Fault::ReadOnly,
            _ => Fault::Io,
        };
        Self::new(fault, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::{Error, Fault};

    #[test]
    fn message_of_invalid_sql_does_not_quote_it() {
        let connection = Connection::open_in_memory().unwrap();
        let error = Error::from(connection.execute_batch("SELECT 1; SELECT absent").unwrap_err());
        assert_eq!((error.fault, error.message.as_str()), (Fault::Corrupt, "no such column: absent"));
    }
}
