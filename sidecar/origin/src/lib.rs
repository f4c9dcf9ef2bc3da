//! The origin of a written value: a flag, a variable or a line of a file. Every value carries it from the moment it is
//! read, so that every error names the place to change.

pub mod content;
mod diagnostic;
pub mod fields;
pub mod file;

use std::fmt;
use std::sync::Arc;

pub use diagnostic::{Diagnostic, Diagnostics};

/// The place in which a value was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// On the command line; the flag with its dashes.
    Flag(String),
    /// In the environment; the variable's name.
    Env(String),
    /// In the file, on this line (from 1).
    File {
        /// The file's path, as it was given; empty for a text that has no file.
        path: Arc<str>,
        /// The line; 0 for the file as a whole.
        line: u64,
    },
    /// The default of the table.
    Default,
}

impl Origin {
    /// Returns the line in the file; 0 for the file as a whole and for other places.
    pub fn line(&self) -> u64 {
        match self {
            Self::File { line, .. } => *line,
            Self::Flag(_) | Self::Env(_) | Self::Default => 0,
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(flag) => f.write_str(flag),
            Self::Env(variable) => f.write_str(variable),
            Self::File { path, line } => match (&**path, line) {
                ("", 0) => f.write_str("the text"),
                ("", line) => write!(f, "line {line}"),
                (path, 0) => f.write_str(path),
                (path, line) => write!(f, "{path}:{line}"),
            },
            Self::Default => f.write_str("default"),
        }
    }
}
