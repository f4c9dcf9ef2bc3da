//! Prometheus' text format, as servers write it: 0.0.4 and what OpenMetrics adds to its lines.
//!
//! The law: a page is untrusted text. Each line stands for itself; one that is not a sample is
//! skipped and counted and costs nothing else. Nothing is copied: samples borrow from the page.
//!
//! ```text
//! name{label="value",…} value [timestamp] [# {exemplar} value [timestamp]]
//! ```
//!
//! There are crates that read this. Of those with a licence we may use, one takes no colon in a
//! name, which most of these servers have, and they bring a regular expression engine or a parser
//! generator.

use std::borrow::Cow;

use crate::limits::SAMPLES;

/// A page taken apart.
#[derive(Debug, Default)]
pub struct Page<'a> {
    /// Its samples, in its order; at most [`SAMPLES`].
    pub samples: Vec<Sample<'a>>,
    /// Lines that are neither a sample nor a comment nor empty, and samples beyond the limit.
    pub skipped: usize,
}

/// One line with a value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample<'a> {
    /// The name, with `_total`, `_sum` and so on.
    pub name: &'a str,
    /// What stood between the braces; checked, so that [`Sample::labels`] reads it to its end.
    labels: &'a str,
    /// The value. NaN and infinities are values.
    pub value: f64,
}

impl<'a> Page<'a> {
    /// Reads a page; a line that cannot be read is skipped.
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
                Some(sample) if page.samples.len() < SAMPLES => page.samples.push(sample),
                _ => page.skipped += 1,
            }
        }
        page
    }
}

impl<'a> Sample<'a> {
    /// Its labels, unescaped, in its order.
    pub fn labels(&self) -> impl Iterator<Item = (&'a str, Cow<'a, str>)> {
        let mut rest = self.labels;
        std::iter::from_fn(move || {
            let (name, value, after) = label(rest)?;
            rest = after;
            Some((name, unescaped(value)))
        })
    }

    /// Whether it has this label with this value.
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
        // An exemplar; what it says is no business of ours.
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

/// The text between the braces and what follows them.
fn braces(inside: &str) -> Option<(&str, &str)> {
    let mut rest = inside;
    while let Some((_, _, after)) = label(rest) {
        rest = after;
    }
    let end = rest.trim_start_matches(BLANK);
    let after = end.strip_prefix('}')?;
    Some((&inside[..inside.len() - rest.len()], after))
}

/// The first label of a list, its value still escaped, and what follows it and its comma.
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

/// A name at the beginning, and what follows it. A label's has no colon.
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
                // The format knows no other; Prometheus keeps both characters.
                Some(other) => text.extend(['\\', other]),
                None => text.push('\\'),
            },
        }
    }
    Cow::Owned(text)
}

/// A value or a timestamp. `NaN`, `+Inf` and `-Inf` are values.
fn number(word: &str) -> Option<f64> {
    word.parse().ok()
}

const BLANK: [char; 2] = [' ', '\t'];

#[cfg(test)]
#[path = "exposition_tests.rs"]
mod tests;
