//! A ledger's folder: its files, the calendar of all of them, and the central store to which the ledger is shipped.
//!
//! Law: a command looks at the folder once, so that all its steps have the same calendar. The look holds no file open,
//! because the writer renames only files that no other process has open.

use std::io;
use std::path::{Path, PathBuf};

use crate::error::{Error, Fault};
use crate::file::{self, File};
use crate::source::Month;
use crate::{Calendar, Zone, files, ships_to, time_zone};

/// The number of attempts to open files that are renamed meanwhile.
const OPEN_ATTEMPTS: usize = 5;

/// The files of a ledger at one instant.
#[derive(Clone, Debug)]
pub struct LedgerFolder {
    /// The path of the open file.
    pub(crate) path: PathBuf,
    /// The files, past months in order and the open one last.
    pub(crate) names: Vec<PathBuf>,
    /// The newest month that has a readable file.
    newest: Option<Month>,
    calendar: Result<Calendar, Error>,
    /// The central store to which the last proxy that wrote the ledger shipped its rows, without a password.
    ships_to: Result<Option<String>, Error>,
}

impl LedgerFolder {
    /// Opens each file of the ledger whose open file has this path, and reads its time zone and central store. A ledger
    /// that does not exist yet has the calendar of UTC and no central store.
    pub fn open(path: &Path) -> Self {
        let listed = files::list(path).map_err(Error::from);
        let is_new = listed.as_ref().map_or_else(|_| !files::directory(path).exists(), Vec::is_empty);
        let found = if is_new { Ok(Vec::new()) } else { open_each(path) };
        let all = found.as_deref().map_err(Clone::clone);
        let newest = all.iter().copied().flat_map(readable).map(|file| file.month).max();
        let calendar = all.clone().and_then(|all| calendar(path, all));
        let ships_to = listed.clone().and(all).and_then(|all| match all.last() {
            Some((name, opened)) => ships_to::of(opened.as_ref().map_err(Clone::clone)?, name),
            None => Ok(None),
        });
        Self { path: path.to_owned(), names: listed.unwrap_or_default(), newest, calendar, ships_to }
    }

    /// Returns the calendar of the ledger.
    ///
    /// # Errors
    /// If it has files and none can be read, or a zone that this version does not know.
    pub fn calendar(&self) -> Result<Calendar, Error> {
        self.calendar.clone()
    }

    /// Returns the calendar of the ledger if its setting is `zone`. A new ledger has the zone from now on; one that has
    /// another zone now has it from the next month on. `None`: the ledger keeps its zones.
    pub(crate) fn planned(&self, zone: Option<&Zone>, now_us: i64) -> Result<Calendar, Error> {
        let calendar = self.calendar()?;
        let Some(zone) = zone else { return Ok(calendar) };
        let Some(newest) = self.newest else { return Ok(Calendar::of(zone.clone())) };
        let current = calendar.month(now_us).max(newest);
        Ok(calendar.changed(zone.clone(), current))
    }

    /// Refuses an action on a ledger that is shipped. `command` is the command without its ledger.
    ///
    /// # Errors
    /// If the ledger is shipped, with the command to run; or if its newest file cannot be read.
    pub fn require_unshipped(&self, command: &str) -> Result<(), Error> {
        let ships_to = self.ships_to.clone()?;
        ships_to.map_or(Ok(()), |store| Err(ships_to::shipped(&self.path, &store, command)))
    }
}

/// A file's path, and the file or the error in opening it.
pub(crate) type Found = (PathBuf, Result<File, Error>);

fn readable(found: &[Found]) -> impl Iterator<Item = &File> {
    found.iter().filter_map(|(_, opened)| opened.as_ref().ok())
}

/// Returns the calendar of a ledger from those of its files that can be read.
///
/// # Errors
/// If it has files and none can be read, or a zone that this version does not know.
fn calendar(path: &Path, found: &[Found]) -> Result<Calendar, Error> {
    match found.iter().find_map(|(_, opened)| opened.as_ref().err()) {
        Some(error) if readable(found).next().is_none() => Err(error.clone()),
        _ => zones(path, found),
    }
}

/// Returns the calendar of a ledger from those of its files that can be read; UTC if none can.
pub(crate) fn zones(path: &Path, found: &[Found]) -> Result<Calendar, Error> {
    time_zone::of_files(path, readable(found))
}

/// Opens each file of a ledger.
///
/// # Errors
/// If there is no such ledger, or the path is that of one month.
pub(crate) fn open_each(path: &Path) -> Result<Vec<Found>, Error> {
    let mut tries = 0;
    loop {
        tries += 1;
        let names = list(path)?;
        let opened = names.iter().map(|name| open(name)).collect::<Vec<_>>();
        // The file of a month that ends is renamed.
        if tries < OPEN_ATTEMPTS && list(path)? != names {
            continue;
        }
        return Ok(names.into_iter().zip(opened).collect());
    }
}

fn list(path: &Path) -> Result<Vec<PathBuf>, Error> {
    let named = |error| Error::from(error).of(path.display());
    files::is_whole(path).map_err(named)?;
    let names = files::list(path).map_err(named)?;
    if names.is_empty() {
        let none = "there is no ledger here: check the path";
        return Err(named(io::Error::new(io::ErrorKind::NotFound, none)));
    }
    Ok(names)
}

/// Opens a file for reading in one state, whatever is entered meanwhile.
pub(crate) fn open(path: &Path) -> Result<File, Error> {
    let opened = File::open_read(path).and_then(|file| {
        let mode: String = file.connection.query_row("PRAGMA journal_mode", [], |row| row.get(0))?;
        if mode == "wal" {
            // Another process may write it. A report reads corrections, rows and daily totals one after the other and
            // compares them, so all have to be of one snapshot. In a file without a log the transaction would lock the
            // writer out, so there it is not begun.
            file.connection.execute_batch("BEGIN")?;
            file::number(&file.connection, "month")?;
        }
        Ok(file)
    });
    opened.map_err(|error| error.of(path.display()))
}

/// Reads the calendar of a ledger again before its first file is opened: another process may have written the ledger
/// meanwhile, or a file can be read now that could not be when this process began.
pub(crate) fn read_again(calendar: &mut Calendar, path: &Path, now_us: i64) -> Result<(), Error> {
    match LedgerFolder::open(path).planned(Some(calendar.last_zone()), now_us) {
        Ok(planned) => *calendar = planned,
        // A zone of a newer version.
        Err(error) if error.fault == Fault::Other => return Err(error),
        // The damaged file is quarantined when it is opened.
        Err(_) => {}
    }
    Ok(())
}
