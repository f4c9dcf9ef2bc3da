//! The price file: which it is, and the book it makes. What is wrong in it keeps us from starting; what
//! is doubtful is told, the first few of each kind.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};

use ::price::{Book, Problem, Warning};

use crate::mistake::Mistake;
use crate::origin::Origin;

use super::values::Reader;

impl Reader<'_> {
    /// The book of the price file, if one is named and right.
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
            Err(mistakes) => {
                self.mistakes.extend(mistakes);
                None
            }
        }
    }
}

/// Reads the price file at `path`, which was named at `origin`.
pub(crate) fn read(path: &str, origin: &Origin) -> Result<(Book, Vec<Mistake>), Vec<Mistake>> {
    let text = text(path).map_err(|error| {
        let remedy = "name a readable price file, such as `tokenmeter prices import-litellm` makes";
        vec![Mistake::at(origin, format!("the price file {path} cannot be read: {error}"), remedy)]
    })?;
    parse(path, &text)
}

/// Reads the text of the price file at `path`.
pub(crate) fn parse(path: &str, text: &str) -> Result<(Book, Vec<Mistake>), Vec<Mistake>> {
    match Book::read(text) {
        Ok((book, warnings)) => Ok((book, few(path, &warnings))),
        Err(problems) => Err(problems.iter().map(|problem| mistake(path, problem)).collect()),
    }
}

/// The text of a price file.
pub(crate) fn text(path: &str) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(FILE_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > FILE_BYTES {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it is larger than 64 MiB"));
    }
    Ok(text)
}

fn mistake(path: &str, problem: &Problem) -> Mistake {
    Mistake::at(&Origin::File { path: path.into(), line: problem.line }, &*problem.what, &*problem.remedy)
}

/// The first warnings of each kind, and how many more there are.
fn few(path: &str, warnings: &[Warning]) -> Vec<Mistake> {
    let mut kinds: BTreeMap<_, Vec<&Warning>> = BTreeMap::new();
    for warning in warnings {
        kinds.entry(warning.kind).or_default().push(warning);
    }
    let lint = format!("`tokenmeter prices lint {path}` lists all there is to know");
    let mut told = Vec::new();
    for all in kinds.values() {
        for warning in all.iter().take(FEW) {
            let origin = Origin::File { path: path.into(), line: warning.line };
            told.push(Mistake::at(&origin, &*warning.what, &*lint));
        }
        if let Some(more @ 1..) = all.len().checked_sub(FEW) {
            told.push(Mistake::missing(path, format!("and {more} more of this kind"), &*lint));
        }
    }
    told
}

/// Warnings of a kind that are told one by one.
const FEW: usize = 2;

/// Bytes of a price file: sixty times what all of LiteLLM's models take.
pub(crate) const FILE_BYTES: u64 = 64 * 1024 * 1024;

#[cfg(test)]
#[path = "prices_tests.rs"]
mod tests;
