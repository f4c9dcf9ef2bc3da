//! The ledger's error: a fault of a closed vocabulary, and a sentence with the remedy.

use std::fmt;
use std::io;

use rusqlite::{Error as SqliteError, ErrorCode};

/// The kind of a fault; the label of `tokenmeter_ledger_faults_total`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fault {
    /// The disk or the quota is full.
    Full,
    /// The file or its directory cannot be written or reached by this process.
    ReadOnly,
    /// The disk reports an error.
    Io,
    /// The bytes that were read are not those that were written.
    Corrupt,
    /// Another process holds the ledger, or the file for longer than a moment.
    Locked,
    /// All else.
    Other,
}

impl Fault {
    /// Every fault.
    pub const ALL: [Self; 6] =
        [Self::Full, Self::ReadOnly, Self::Io, Self::Corrupt, Self::Locked, Self::Other];

    /// The label value.
    pub fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::ReadOnly => "read_only",
            Self::Io => "io",
            Self::Corrupt => "corrupt",
            Self::Locked => "locked",
            Self::Other => "other",
        }
    }
}

/// A fault, and what it was about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The kind.
    pub fault: Fault,
    /// The event and the remedy.
    pub message: String,
    /// True if the row is at fault, and not the file.
    pub(crate) of_row: bool,
    /// True if it is of another file than the open one, which is well.
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

    /// The same, of another file than the open one.
    pub(crate) fn elsewhere(self) -> Self {
        Self { elsewhere: true, ..self }
    }

    /// Puts the name of the file or the month before the sentence.
    pub(crate) fn of(self, what: impl fmt::Display) -> Self {
        Self { message: format!("{what}: {}", self.message), ..self }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

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
            // A table or a column that the schema's version promises is not there, or holds another type.
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
        Self { of_row, ..Self::new(fault, error.to_string()) }
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
