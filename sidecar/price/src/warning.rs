//! Warnings about a price file, each with its line.

use std::fmt;

/// A warning about a price file that can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// The line, from 1.
    pub line: u64,
    /// The kind.
    pub kind: WarningKind,
    /// The text for the operator.
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
    /// A price was rounded to whole pico-units.
    Rounded,
    /// A price is so low that its unit is probably another.
    Tiny,
    /// A price is never charged.
    NeverCharged,
    /// A tier does not give a price that the entry has, and inherits it.
    Inherited,
    /// Two patterns match some name equally well.
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
