//! The differences that a verification finds between the files of a ledger and what was written to them.
//!
//! Law: a decision depends on a difference's kind and never on its text, which is for the operator.

use std::fmt;
use std::path::PathBuf;

use crate::digest::{Digest, hex};
use crate::month;
use crate::source::Month;

/// A difference, by the part of the ledger that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// The file cannot be read, or its rows, totals or facts are not as they were written.
    Contents(String),
    /// The file is in the ledger's folder under two names.
    Duplicate(String),
    /// The month has no file; with the evidence that it had one.
    Absent(&'static str),
    /// The month closed before, with the digest that it had then, has another digest now, or (`None`) no file.
    Previous(Option<Month>),
    /// The digest is not that with which the month was closed.
    Digest {
        /// The digest of the contents.
        computed: Digest,
        /// The digest in the file.
        closed: Digest,
    },
    /// The sign-off cannot be read, or is not that of the month.
    SignOff {
        /// The file of the sign-off.
        path: PathBuf,
        /// The problem, after the path.
        problem: String,
    },
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Contents(text) | Self::Duplicate(text) => f.write_str(text),
            Self::Absent(why) => write!(f, "{why}, and its file is gone: put it back from a copy"),
            Self::Previous(Some(month)) => {
                write!(f, "it was closed after a different state of {}", month::name(*month))
            }
            Self::Previous(None) => f.write_str("the month closed before it is gone"),
            Self::Digest { computed, closed } => {
                write!(f, "its digest is {} and was {} when it was closed", hex(computed), hex(closed))
            }
            Self::SignOff { path, problem } => write!(f, "the sign-off {} {problem}", path.display()),
        }
    }
}
