//! Parses values by key. An invalid value is recorded as an error and replaced by a valid one, so that
//! parsing continues and later errors are reported, too.

use std::time::Duration;

use origin::{Diagnostic, Origin, file};

use crate::settings::{Form, RawSettings, Value, one_of, setting};

/// Parses settings, and collects errors and warnings.
pub(super) struct Reader<'a> {
    pub(super) written: &'a RawSettings,
    pub(super) errors: Vec<Diagnostic>,
    pub(super) warnings: Vec<Diagnostic>,
}

impl Reader<'_> {
    pub(super) fn milliseconds(&mut self, key: &'static str) -> Duration {
        Duration::from_millis(self.number(key))
    }

    pub(super) fn count(&mut self, key: &'static str) -> usize {
        usize::try_from(self.number(key)).unwrap_or(usize::MAX)
    }

    pub(super) fn number(&mut self, key: &'static str) -> u64 {
        let Form::Number { unit, min, max } = setting(key).form else {
            unreachable!("{key} is a number in the table")
        };
        let value = self.value(key);
        match file::number(&value.text) {
            Some(number) if (min..=max).contains(&number) => number,
            _ => {
                let problem = format!("`{}` is not a number of {unit}", value.text.escape_debug());
                let remedy = format!("write a whole number from {min} to {max}");
                self.errors.push(Diagnostic::at(&value.origin, problem, remedy));
                min
            }
        }
    }

    pub(super) fn switch(&mut self, key: &'static str) -> bool {
        let value = self.value(key);
        self.truth(&value)
    }

    pub(super) fn truth(&mut self, value: &Value) -> bool {
        file::truth(&value.text).unwrap_or_else(|| {
            let problem = format!("`{}` is neither true nor false", value.text.escape_debug());
            self.errors.push(Diagnostic::at(&value.origin, problem, "write true or false"));
            false
        })
    }

    pub(super) fn one_of_setting(&mut self, key: &'static str, value: &Value) -> &'static str {
        let Form::Choice(known) = setting(key).form else { unreachable!("{key} is a choice in the table") };
        self.one_of(value, known)
    }

    pub(super) fn one_of(&mut self, value: &Value, known: &'static [&'static str]) -> &'static str {
        one_of(value, known).unwrap_or_else(|error| {
            self.errors.push(error);
            known[0]
        })
    }

    /// Checks a choice that only commands use, so that its error is reported at the start.
    pub(super) fn check_choice(&mut self, key: &'static str) {
        let value = self.value(key);
        self.one_of_setting(key, &value);
    }

    /// Returns the value of a key, or its default.
    pub(super) fn value(&self, key: &'static str) -> Value {
        self.written
            .values
            .get(key)
            .cloned()
            .unwrap_or_else(|| Value { text: setting(key).default.to_owned(), origin: Origin::Default })
    }
}

/// Returns a decimal number in pico-units (10⁻¹²), exactly, with or without an exponent. `_` may separate the digits
/// before it.
pub(super) fn pico(text: &str) -> Option<i128> {
    let (mantissa, exponent) = text.split_at(text.find(['e', 'E']).unwrap_or(text.len()));
    let first = mantissa.find(|char: char| char.is_ascii_digit()).unwrap_or(mantissa.len());
    let (before, digits) = mantissa.split_at(first);
    price::exact_pico(&format!("{before}{}{exponent}", digits.replace('_', "")))
}
