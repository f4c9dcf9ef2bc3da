//! What is wrong or doubtful in a price file, and on which line.

use std::fmt;

pub use yaml::LineError;

/// What somebody should know of a price file that can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// The line, from 1.
    pub line: u64,
    /// What kind of thing it is.
    pub kind: WarningKind,
    /// What there is to know.
    pub message: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

/// Kinds of warnings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WarningKind {
    /// A price is no whole number of pico-units and was rounded.
    Rounded,
    /// A price is so low that its unit is probably another.
    Tiny,
    /// A price is named that nothing is ever charged by.
    NeverCharged,
    /// A tier leaves a price to what the entry says without it.
    Inherited,
    /// Two patterns are equally good for some name.
    Ambiguous,
    /// An alias stays at an entry's prices after the entry's name has others.
    LeftBehind,
    /// A price is so high that its unit is probably another, unless the currency's unit is small.
    Large,
    /// An entry has no price for input or output tokens, so that exchanges with such tokens are unpriced.
    Unpriced,
    /// Tokens of long prompts cost less than those of short ones.
    Cheaper,
    /// The last prices of a name have ended.
    Ended,
    /// The file has no entry.
    Empty,
}
