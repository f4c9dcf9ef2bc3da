//! Reads the price file into a price book. An error in it prevents the start; of each kind of warning
//! the first few are reported.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use ::price::{Book, Warning};
use origin::{Diagnostic, Origin, content};

use super::values::Reader;

impl Reader<'_> {
    /// Returns the book of the price file, if one is set and valid.
    pub(super) fn prices(&mut self) -> Option<Book> {
        let value = self.value("prices");
        if value.text.is_empty() {
            return None;
        }
        match read(&value.text, &value.origin) {
            Ok((book, warnings)) => {
                self.warnings.extend(warnings);
                Some(book)
            }
            Err(errors) => {
                self.errors.extend(errors);
                None
            }
        }
    }
}

/// Reads the price file at `path`; `origin` is that of the setting.
pub(crate) fn read(path: &str, origin: &Origin) -> Result<(Book, Vec<Diagnostic>), Vec<Diagnostic>> {
    let text = content::bounded(Path::new(path), FILE_BYTES).and_then(content::text).map_err(|error| {
        let remedy = "name a readable price file, such as `tokenmeter prices import-litellm` makes";
        vec![Diagnostic::at(origin, format!("the price file {path} cannot be read: {error}"), remedy)]
    })?;
    parse(path, &text)
}

/// Parses the text of the price file at `path`.
pub(crate) fn parse(path: &str, text: &str) -> Result<(Book, Vec<Diagnostic>), Vec<Diagnostic>> {
    let (book, warnings) = Book::read_file(path, text)?;
    Ok((book, few(path, &warnings)))
}

/// Reads the text of a price file for a command, once.
pub(crate) fn text(path: &str) -> io::Result<String> {
    content::bounded_once(Path::new(path), FILE_BYTES).and_then(content::text)
}

/// Returns the first warnings of each kind, and the number of others.
fn few(path: &str, warnings: &[Warning]) -> Vec<Diagnostic> {
    let mut kinds: BTreeMap<_, Vec<&Warning>> = BTreeMap::new();
    for warning in warnings {
        kinds.entry(warning.kind).or_default().push(warning);
    }
    let lint = format!("`tokenmeter prices lint {path}` lists all warnings");
    let mut shown = Vec::new();
    for all in kinds.values() {
        for warning in all.iter().take(SHOWN_PER_KIND) {
            let origin = Origin::File { path: path.into(), line: warning.line };
            shown.push(Diagnostic::at(&origin, &*warning.message, &*lint));
        }
        if let Some(more @ 1..) = all.len().checked_sub(SHOWN_PER_KIND) {
            shown.push(Diagnostic::missing(path, format!("and {more} more of this kind"), &*lint));
        }
    }
    shown
}

/// Warnings of a kind that are reported one by one.
const SHOWN_PER_KIND: usize = 2;

/// The maximum size of a price file in bytes: sixty times that of all models of LiteLLM.
pub(crate) const FILE_BYTES: u64 = 64 * 1024 * 1024;

#[cfg(test)]
#[path = "prices_tests.rs"]
mod tests;
