//! An error or a warning about a written value: the place, the problem and the remedy. All errors of a
//! start are reported together.

use std::fmt;

use text::quoted;

use crate::Origin;

/// An error or a warning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The file and line, the flag or the variable.
    pub place: String,
    /// The line of the file; 0 for other places.
    pub line: u64,
    /// The problem.
    pub message: String,
    /// The action that solves it.
    pub remedy: String,
}

impl Diagnostic {
    /// Creates a diagnostic for a value written at `origin`.
    pub fn at(origin: &Origin, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { line: origin.line(), ..Self::missing(&origin.to_string(), message, remedy) }
    }

    /// Creates a diagnostic for a value that is missing, or not a setting, at `place`.
    pub fn missing(place: &str, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { place: place.to_owned(), line: 0, message: message.into(), remedy: remedy.into() }
    }

    /// Creates the diagnostic of a key that was written before, at `first`.
    pub fn repeated(key: &str, origin: &Origin, first: &Origin) -> Self {
        Self::at(origin, format!("`{}` is set twice, first at {first}", quoted(key)), "remove one of them")
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.place, self.message, self.remedy)
    }
}

/// All errors of one start; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostics(pub Vec<Diagnostic>);

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_slice() {
            [only] => write!(f, "{only}"),
            all => {
                write!(f, "{} errors in the settings:", all.len())?;
                all.iter().try_for_each(|error| write!(f, "\n  {error}"))
            }
        }
    }
}

impl std::error::Error for Diagnostics {}
