//! A parser of Prometheus' text format as servers write it: 0.0.4, and OpenMetrics' additions to its lines.
//!
//! Invariant: a page is untrusted. Each line is independent; an invalid line is skipped and counted. Samples borrow
//! from the page, nothing is copied.
//!
//! ```text
//! name{label="value",…} value [timestamp] [# {exemplar} value [timestamp]]
//! ```
//!
//! Of the crates for this format with a compatible licence, one rejects colons in names, which most inference servers
//! use, and the others need a regular expression engine or a parser generator.

use std::borrow::Cow;

use crate::limits::MAX_SAMPLES;

/// A parsed page.
#[derive(Debug, Default)]
pub struct Page<'a> {
    /// Its samples, in order; at most [`MAX_SAMPLES`].
    pub samples: Vec<Sample<'a>>,
    /// Number of invalid lines, and of samples beyond the limit.
    pub skipped: usize,
}

/// One sample line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample<'a> {
    /// The name, with `_total`, `_sum` and so on.
    pub name: &'a str,
    /// The text between the braces, validated, so that [`Sample::labels`] can parse all of it.
    labels: &'a str,
    /// The value. NaN and infinities are values.
    pub value: f64,
}

impl<'a> Page<'a> {
    /// Parses a page; invalid lines are skipped.
    pub fn read(text: &'a str) -> Self {
        let mut page = Self::default();
        for line in text.lines().map(|line| line.trim_matches([' ', '\t', '\r'])) {
            if line == "# EOF" {
                break;
            }
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            match sample(line) {
                Some(sample) if page.samples.len() < MAX_SAMPLES => page.samples.push(sample),
                _ => page.skipped += 1,
            }
        }
        page
    }
}

impl<'a> Sample<'a> {
    /// Returns its labels, unescaped, in order.
    pub fn labels(&self) -> impl Iterator<Item = (&'a str, Cow<'a, str>)> {
        let mut rest = self.labels;
        std::iter::from_fn(move || {
            let (name, value, after) = label(rest)?;
            rest = after;
            Some((name, unescaped(value)))
        })
    }

    /// Returns true if it has this label with this value.
    pub fn has(&self, name: &str, value: &str) -> bool {
        self.labels().any(|(its, text)| its == name && text == value)
    }
}

fn sample(line: &str) -> Option<Sample<'_>> {
    let (name, rest) = split_name(line, true)?;
    let rest = rest.trim_start_matches(BLANK);
    let (labels, rest) = match rest.strip_prefix('{') {
        Some(inside) => braces(inside)?,
        None => ("", rest),
    };
    let mut words = rest.split(BLANK).filter(|word| !word.is_empty());
    let value = number(words.next()?)?;
    match words.next() {
        None => {}
        // An exemplar, which is ignored.
        Some(word) if word.starts_with('#') => {}
        Some(timestamp) => {
            number(timestamp)?;
            if words.next().is_some_and(|word| !word.starts_with('#')) {
                return None;
            }
        }
    }
    Some(Sample { name, labels, value })
}

/// Returns the text between the braces and the rest.
fn braces(inside: &str) -> Option<(&str, &str)> {
    let mut rest = inside;
    while let Some((_, _, after)) = label(rest) {
        rest = after;
    }
    let end = rest.trim_start_matches(BLANK);
    let after = end.strip_prefix('}')?;
    Some((&inside[..inside.len() - rest.len()], after))
}

/// Returns the first label of a list, with its value escaped, and the text after it and its comma.
fn label(text: &str) -> Option<(&str, &str, &str)> {
    let (name, rest) = split_name(text.trim_start_matches(BLANK), false)?;
    let rest = rest.trim_start_matches(BLANK).strip_prefix('=')?;
    let rest = rest.trim_start_matches(BLANK).strip_prefix('"')?;
    let mut bytes = rest.bytes().enumerate();
    loop {
        match bytes.next()? {
            (_, b'\\') => {
                bytes.next()?;
            }
            (end, b'"') => {
                let after = rest[end + 1..].trim_start_matches(BLANK);
                // A comma after the last label is allowed.
                return Some((name, &rest[..end], after.strip_prefix(',').unwrap_or(after)));
            }
            _ => {}
        }
    }
}

/// Splits off a name at the start. Names of labels have no colon.
fn split_name(text: &str, colon: bool) -> Option<(&str, &str)> {
    let belongs = |c: char| c.is_ascii_alphanumeric() || c == '_' || (colon && c == ':');
    let end = text.find(|c| !belongs(c)).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    let starts = !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit());
    starts.then_some((name, rest))
}

fn unescaped(value: &str) -> Cow<'_, str> {
    if !value.contains('\\') {
        return Cow::Borrowed(value);
    }
    let mut text = String::with_capacity(value.len());
    let mut characters = value.chars();
    while let Some(character) = characters.next() {
        match (character, character == '\\') {
            (_, false) => text.push(character),
            (_, true) => match characters.next() {
                Some('n') => text.push('\n'),
                Some(escaped @ ('\\' | '"')) => text.push(escaped),
                // The format has no other escape; Prometheus keeps both characters.
                Some(other) => text.extend(['\\', other]),
                None => text.push('\\'),
            },
        }
    }
    Cow::Owned(text)
}

/// Parses a value or a timestamp. `NaN`, `+Inf` and `-Inf` are values.
fn number(word: &str) -> Option<f64> {
    word.parse().ok()
}

const BLANK: [char; 2] = [' ', '\t'];

#[cfg(test)]
#[path = "exposition_tests.rs"]
mod tests;
