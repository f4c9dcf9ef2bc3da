//! The state of a ledger, for `tokenmeter ledger status`: its writer, its files, and those in quarantine.
//!
//! Law: reading the state changes nothing.

use std::path::{Path, PathBuf};

use crate::check;
use crate::error::Error;
use crate::file::{self, File};
use crate::files;
use crate::source::Month;
use crate::table::{CORRECTION, EXCHANGE, GAP};
use crate::{Calendar, LedgerFolder, lock};

/// The state of a ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overview {
    /// The process that holds the writer's lock; `None` if no process does.
    pub writer: Option<String>,
    /// The calendar of the ledger; `None` if it cannot be read.
    pub calendar: Option<Calendar>,
    /// Its files, the open month last.
    pub files: Vec<Part>,
    /// Files in quarantine.
    pub quarantined: Vec<PathBuf>,
}

/// One file of a ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The file.
    pub path: PathBuf,
    /// The length of the file and its log, bytes.
    pub bytes: u64,
    /// The file's facts, or the error in reading them.
    pub facts: Result<Facts, Error>,
}

/// The facts of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The month.
    pub month: Month,
    /// The number of exchanges ever entered.
    pub rows: u64,
    /// The number of those that retention has deleted.
    pub compacted: u64,
    /// The number of corrections.
    pub corrections: u64,
    /// The number of gaps.
    pub gaps: u64,
    /// The time of the last write, microseconds since 1970.
    pub alive_us: i64,
    /// The time at which the month was closed, and the actor.
    pub closed: Option<(i64, String)>,
    /// True if it was copied while a proxy wrote it, without the log that held its newest rows.
    pub lacks_log: bool,
}

/// Returns the state of a ledger.
///
/// # Errors
/// If there is no ledger, or its directory cannot be read.
pub fn overview(path: &Path) -> Result<Overview, Error> {
    let named = |error: Error| error.of(path.display());
    files::is_whole(path).map_err(|error| named(error.into()))?;
    let names = files::list(path).map_err(|error| named(error.into()))?;
    let mut quarantined = Vec::new();
    for entry in files::directory(path).read_dir().map_err(|error| named(error.into()))?.flatten() {
        let name = entry.file_name();
        let is_quarantined = path.file_name().zip(name.to_str()).is_some_and(|(ledger, name)| {
            name.starts_with(&format!("{}.corrupt-", ledger.to_string_lossy()))
                && !["-wal", "-shm", "-journal"].iter().any(|suffix| name.ends_with(suffix))
        });
        if is_quarantined {
            quarantined.push(path.with_file_name(name));
        }
    }
    quarantined.sort();
    if names.is_empty() && quarantined.is_empty() {
        return Err(named(Error::new(crate::Fault::Other, "there is no ledger here: check the path")));
    }
    let files = names
        .into_iter()
        .map(|path| Part {
            bytes: files::length(&path) + files::length(&files::beside(&path, "-wal")),
            facts: facts(&path),
            path,
        })
        .collect();
    let calendar = LedgerFolder::open(path).calendar().ok();
    Ok(Overview { writer: lock::writer(path), calendar, files, quarantined })
}

fn facts(path: &Path) -> Result<Facts, Error> {
    let file = File::open_read(path)?;
    let connection = file.connection.unchecked_transaction()?;
    let count = |number: i64| u64::try_from(number).unwrap_or(0);
    let entered =
        |table| file::table_digest(&connection, table).map(|table_digest| count(table_digest.entered));
    let closed = match file::number(&connection, "closed_us")? {
        Some(at_us) => Some((at_us, file::text(&connection, "closed_by")?.unwrap_or_default())),
        None => None,
    };
    Ok(Facts {
        month: file.month,
        rows: entered(&EXCHANGE)?,
        compacted: count(file::compacted(&connection, &EXCHANGE)?.entered),
        corrections: entered(&CORRECTION)?,
        gaps: entered(&GAP)?,
        alive_us: file::number(&connection, "alive_us")?.unwrap_or(0),
        closed,
        lacks_log: check::lacks_log(&file)?,
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::overview;
    use crate::testing::{Place, row};
    use crate::{Plan, start};

    #[test]
    fn overview_names_files_writer_and_gaps() {
        let place = Place::new();
        assert!(overview(&place.ledger()).unwrap_err().message.contains("check the path"));
        std::fs::write(place.ledger(), "no ledger").unwrap();
        let ledger = start(Plan::new(place.ledger()));
        (0..3).for_each(|n| ledger.enter(row(n)));
        while ledger.status().rows_total < 3 {
            std::thread::sleep(Duration::from_millis(5));
        }
        let seen = overview(&place.ledger()).unwrap();
        assert_eq!(seen.writer, Some(std::process::id().to_string()));
        assert_eq!(seen.quarantined.len(), 1, "{seen:?}");
        // The rows are of October, and the open month is the current one: both have a file.
        let rows: u64 = seen.files.iter().map(|part| part.facts.as_ref().unwrap().rows).sum();
        assert_eq!(rows, 3);
        assert!(ledger.shutdown(Duration::from_secs(30)));
        assert_eq!(overview(&place.ledger()).unwrap().writer, None);
    }
}
