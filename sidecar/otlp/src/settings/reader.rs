//! Reads single variables and collects their errors.

use std::fmt;
use std::time::Duration;

/// An error in the settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The variable.
    pub variable: String,
    /// The error, without the value.
    pub message: String,
    /// The remedy.
    pub remedy: String,
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.variable, self.message, self.remedy)
    }
}

/// The variables, with the errors and warnings so far.
pub(super) struct Reader<'a> {
    lookup: &'a dyn Fn(&str) -> Option<String>,
    pub(super) errors: Vec<Diagnostic>,
    /// True if the target or the credentials of a signal are invalid.
    pub(super) has_invalid_target: bool,
    pub(super) warnings: Vec<String>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(lookup: &'a dyn Fn(&str) -> Option<String>) -> Self {
        Self { lookup, errors: Vec::new(), has_invalid_target: false, warnings: Vec::new() }
    }

    /// Adds an error once, although three signals may read the variable.
    pub(super) fn error(&mut self, variable: &str, message: &str, remedy: &str) {
        let error = Diagnostic {
            variable: variable.to_owned(),
            message: message.to_owned(),
            remedy: remedy.to_owned(),
        };
        if !self.errors.contains(&error) {
            self.errors.push(error);
        }
    }

    /// Adds an error that prevents the export of the signal.
    pub(super) fn target_error(&mut self, variable: &str, message: &str, remedy: &str) {
        self.has_invalid_target = true;
        self.error(variable, message, remedy);
    }

    pub(super) fn warn(&mut self, sentence: &str) {
        if !self.warnings.iter().any(|known| known == sentence) {
            self.warnings.push(sentence.to_owned());
        }
    }

    /// Returns the trimmed value; `None` if it is empty.
    pub(super) fn text(&self, variable: &str) -> Option<String> {
        let value = (self.lookup)(variable)?;
        let value = value.trim();
        (!value.is_empty()).then(|| value.to_owned())
    }

    pub(super) fn has(&self, variable: &str) -> bool {
        self.text(variable).is_some()
    }

    /// Returns the words of a comma-separated list.
    pub(super) fn list(&self, variable: &str) -> Vec<String> {
        let text = self.text(variable).unwrap_or_default();
        text.split(',').map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned).collect()
    }

    pub(super) fn truth(&mut self, variable: &str, default: bool) -> bool {
        match self.text(variable).map(|text| text.to_ascii_lowercase()).as_deref() {
            None => default,
            Some("true") => true,
            Some("false") => false,
            Some(_) => {
                self.error(variable, "is not a boolean", "set it to true or false");
                default
            }
        }
    }

    /// Returns a time in milliseconds.
    pub(super) fn time(&mut self, variable: &str, default: Duration) -> Duration {
        match self.text(variable).map(|text| text.parse::<u64>()) {
            None => default,
            // At most a day, so that sums of times cannot overflow.
            Some(Ok(millis @ 1..=86_400_000)) => Duration::from_millis(millis),
            Some(_) => {
                self.error(variable, "is not a valid time", "set it to milliseconds, 1 to 86400000");
                default
            }
        }
    }

    pub(super) fn count(&mut self, variable: &str, default: usize, max: usize) -> usize {
        match self.text(variable).map(|text| text.parse::<usize>()) {
            None => default,
            Some(Ok(count)) if (1..=max).contains(&count) => count,
            Some(_) => {
                self.error(variable, "is not a valid number", &format!("set it to a number from 1 to {max}"));
                default
            }
        }
    }

    pub(super) fn choice<T: Copy>(&mut self, variable: &str, words: &[(&str, T)]) -> Option<T> {
        let text = self.text(variable)?.to_ascii_lowercase();
        let found = words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value);
        if found.is_none() {
            let words: Vec<_> = words.iter().map(|(word, _)| *word).collect();
            self.error(variable, "has an unknown value", &format!("set it to {}", words.join(" or ")));
        }
        found
    }
}
