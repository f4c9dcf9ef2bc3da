//! The calendar of a ledger, kept among the facts of its files.
//!
//! Law: the zone of a month that has begun never changes. The open file also has the change that begins with the next
//! month. Of any other file only the zones up to its own month count, because later changes are not written to it.

use std::collections::BTreeMap;
use std::path::Path;

use rusqlite::Connection;
use rusqlite::types::ValueRef;

use crate::error::{Error, Fault};
use crate::file;
use crate::files;
use crate::source::Month;
use crate::store::{self, Found};
use crate::txn::Txn;
use crate::{Calendar, Zone};

/// The fact that holds the calendar; absent or NULL: UTC.
const TIME_ZONE: &str = "time_zone";

/// Returns the calendar of a ledger; UTC if the ledger does not exist yet.
///
/// # Errors
/// If it has files and none can be read, or a zone that this version does not know.
pub fn calendar(path: &Path) -> Result<Calendar, Error> {
    Ok(known(path)?.map_or_else(Calendar::default, |(calendar, _)| calendar))
}

/// Returns the calendar of a ledger whose setting is `zone`. A new ledger has the zone from now on; one that has
/// another zone now has it from the next month on. `None`: the ledger keeps its zones.
pub(crate) fn planned(path: &Path, zone: Option<&Zone>, now_us: i64) -> Result<Calendar, Error> {
    let known = known(path)?;
    let Some(zone) = zone else { return Ok(known.map(|(calendar, _)| calendar).unwrap_or_default()) };
    let Some((calendar, newest)) = known else { return Ok(Calendar::of(zone.clone())) };
    let current = calendar.month(now_us).max(newest);
    Ok(calendar.changed(zone.clone(), current))
}

/// Returns the calendar of a ledger, and the newest month that has a file; `None` without files.
fn known(path: &Path) -> Result<Option<(Calendar, Month)>, Error> {
    if files::list(path).is_ok_and(|names| names.is_empty()) || !files::directory(path).exists() {
        return Ok(None);
    }
    let found = store::open_each(path)?;
    let newest = found.iter().filter_map(|(_, opened)| Some(opened.as_ref().ok()?.month)).max();
    match (newest, of_files(path, &found)?, found.into_iter().find_map(|(_, opened)| opened.err())) {
        (Some(newest), calendar, _) => Ok(Some((calendar, newest))),
        (None, _, Some(error)) => Err(error),
        (None, _, None) => Ok(None),
    }
}

/// Returns the calendar of a ledger from those of its files that can be read.
pub(crate) fn of_files(path: &Path, found: &[Found]) -> Result<Calendar, Error> {
    let mut zones: BTreeMap<Option<Month>, Zone> = BTreeMap::new();
    for (name, opened) in found {
        let Ok(file) = opened else { continue };
        let Ok(text) = text(&file.connection) else { continue };
        let calendar = read(text).map_err(|error| error.of(name.display()))?;
        let begun = calendar
            .zones()
            .filter(|(first, _)| name == path || first.is_none_or(|first| first <= file.month));
        zones.extend(begun.map(|(first, zone)| (first, zone.clone())));
    }
    Ok(Calendar::with_zones(zones))
}

/// Returns the calendar that a file has.
pub(crate) fn of(connection: &Connection) -> Result<Calendar, Error> {
    read(text(connection)?)
}

fn text(connection: &Connection) -> Result<Option<String>, Error> {
    file::text(connection, TIME_ZONE)
}

fn read(text: Option<String>) -> Result<Calendar, Error> {
    match text {
        None => Ok(Calendar::default()),
        Some(text) => Calendar::read(&text).map_err(|error| {
            Error::new(
                Fault::Other,
                format!(
                    "its time zones cannot be read: {error}; if a newer tokenmeter wrote it, use that one"
                ),
            )
        }),
    }
}

/// Writes the calendar of a ledger into a file. Returns false if the file already has it. A file of UTC has no such
/// fact.
pub(crate) fn write(txn: &Txn<'_>, calendar: &Calendar) -> Result<bool, Error> {
    let is_new = *calendar != read(txn.text(TIME_ZONE)?)?;
    if is_new {
        txn.fact(TIME_ZONE, ValueRef::Text(calendar.to_string().as_bytes()))?;
    }
    Ok(is_new)
}

/// Writes the calendar of a ledger into its open file, with an event of the audit trail if it has changed.
pub(crate) fn record(txn: &mut Txn<'_>, calendar: &Calendar, who: &str, now_us: i64) -> Result<(), Error> {
    if !write(txn, calendar)? {
        return Ok(());
    }
    tracing::info!("the time zone of the ledger's days and months: {calendar}");
    txn.audit(
        now_us,
        "time_zone",
        who,
        &serde_json::json!({ "calendar": calendar.to_string() }).to_string(),
    )?;
    Ok(())
}

/// Reads the calendar of a ledger again before its first file is opened: another process may have written the ledger
/// meanwhile, or a file can be read now that could not be when this process began.
pub(crate) fn read_again(calendar: &mut Calendar, path: &Path, now_us: i64) -> Result<(), Error> {
    match planned(path, Some(calendar.last_zone()), now_us) {
        Ok(planned) => *calendar = planned,
        // A zone of a newer version.
        Err(error) if error.fault == Fault::Other => return Err(error),
        // The damaged file is quarantined when it is opened.
        Err(_) => {}
    }
    Ok(())
}

#[cfg(test)]
#[path = "time_zone_tests.rs"]
mod tests;
