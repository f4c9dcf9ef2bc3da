//! Reads one variable at a time and keeps what is wrong with them.

use std::fmt;
use std::time::Duration;

/// One thing that is wrong with the settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// The variable.
    pub variable: String,
    /// What is wrong with it; never its value.
    pub what: String,
    /// What to do.
    pub remedy: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.variable, self.what, self.remedy)
    }
}

/// The variables, and what was found wrong or odd so far.
pub(super) struct Reader<'a> {
    lookup: &'a dyn Fn(&str) -> Option<String>,
    pub(super) mistakes: Vec<Mistake>,
    /// It is not clear where to send to, or in whose name.
    pub(super) is_astray: bool,
    pub(super) warnings: Vec<String>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(lookup: &'a dyn Fn(&str) -> Option<String>) -> Self {
        Self { lookup, mistakes: Vec::new(), is_astray: false, warnings: Vec::new() }
    }

    /// Each mistake once, although three signals may read the variable.
    pub(super) fn mistake(&mut self, variable: &str, what: &str, remedy: &str) {
        let mistake =
            Mistake { variable: variable.to_owned(), what: what.to_owned(), remedy: remedy.to_owned() };
        if !self.mistakes.contains(&mistake) {
            self.mistakes.push(mistake);
        }
    }

    /// As [`Reader::mistake`], one without whose correction nobody knows where to send to.
    pub(super) fn astray(&mut self, variable: &str, what: &str, remedy: &str) {
        self.is_astray = true;
        self.mistake(variable, what, remedy);
    }

    pub(super) fn warn(&mut self, sentence: &str) {
        if !self.warnings.iter().any(|known| known == sentence) {
            self.warnings.push(sentence.to_owned());
        }
    }

    /// Its value without white space around it; `None` if that is empty.
    pub(super) fn text(&self, variable: &str) -> Option<String> {
        let value = (self.lookup)(variable)?;
        let value = value.trim();
        (!value.is_empty()).then(|| value.to_owned())
    }

    pub(super) fn has(&self, variable: &str) -> bool {
        self.text(variable).is_some()
    }

    /// The words between its commas.
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
                self.mistake(variable, "is no truth value", "set it to true or to false");
                default
            }
        }
    }

    /// Of milliseconds.
    pub(super) fn time(&mut self, variable: &str, default: Duration) -> Duration {
        match self.text(variable).map(|text| text.parse::<u64>()) {
            None => default,
            // A day: beyond it, sums of times need care that nobody wants.
            Some(Ok(millis @ 1..=86_400_000)) => Duration::from_millis(millis),
            Some(_) => {
                self.mistake(variable, "is no time", "set it to milliseconds, 1 to 86400000");
                default
            }
        }
    }

    pub(super) fn count(&mut self, variable: &str, default: usize, most: usize) -> usize {
        match self.text(variable).map(|text| text.parse::<usize>()) {
            None => default,
            Some(Ok(count)) if (1..=most).contains(&count) => count,
            Some(_) => {
                self.mistake(
                    variable,
                    "is no number that can be used",
                    &format!("set it to 1 or more, at most {most}"),
                );
                default
            }
        }
    }

    pub(super) fn choice<T: Copy>(&mut self, variable: &str, words: &[(&str, T)]) -> Option<T> {
        let text = self.text(variable)?.to_ascii_lowercase();
        let found = words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value);
        if found.is_none() {
            let words: Vec<_> = words.iter().map(|(word, _)| *word).collect();
            self.mistake(variable, "is none of its words", &format!("set it to {}", words.join(" or ")));
        }
        found
    }
}
