//! A mistake in the settings: where it is, what is wrong, what to do. They are collected and told
//! together, so that nobody mends a file one run at a time.

use std::fmt;

use crate::origin::Origin;

/// One mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// The file and line, the flag or the variable.
    pub place: String,
    /// What is wrong there.
    pub what: String,
    /// What to do about it.
    pub remedy: String,
}

impl Mistake {
    /// A mistake in what was written at `origin`.
    pub fn at(origin: &Origin, what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { place: origin.to_string(), what: what.into(), remedy: remedy.into() }
    }

    /// A mistake in what was not written anywhere: `place` is where it belongs.
    pub fn missing(place: &str, what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { place: place.to_owned(), what: what.into(), remedy: remedy.into() }
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.place, self.what, self.remedy)
    }
}

/// All mistakes of one start, never none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistakes(pub Vec<Mistake>);

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_slice() {
            [only] => write!(f, "{only}"),
            all => {
                write!(f, "{} mistakes in the settings:", all.len())?;
                all.iter().try_for_each(|mistake| write!(f, "\n  {mistake}"))
            }
        }
    }
}

impl std::error::Error for Mistakes {}
