//! Where a setting came from. Every value carries its origin from the moment it is read, so that
//! every mistake names the place to change and `check-config --show-origin` needs no second look.

use std::fmt;
use std::sync::Arc;

/// Where a value was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// On the command line; the flag with its dashes.
    Flag(String),
    /// In the environment; the variable's name.
    Env(String),
    /// In the file, on this line (from 1).
    File {
        /// The file's path, as it was given.
        path: Arc<str>,
        /// The line; 0 if the file as a whole is meant.
        line: u64,
    },
    /// Nowhere: what the program does if it is told nothing.
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(flag) => f.write_str(flag),
            Self::Env(variable) => f.write_str(variable),
            Self::File { path, line: 0 } => f.write_str(path),
            Self::File { path, line } => write!(f, "{path}:{line}"),
            Self::Default => f.write_str("default"),
        }
    }
}
