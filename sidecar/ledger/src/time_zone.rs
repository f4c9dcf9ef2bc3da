//! The calendar of a ledger, kept among the facts of its files.
//!
//! Law: the zone of a month that has begun never changes. The open file also has the change that begins with the next
//! month. Of any other file only the zones up to its own month count, because later changes are not written to it.

use std::collections::BTreeMap;
use std::path::Path;

use rusqlite::Connection;
use rusqlite::types::ValueRef;

use crate::error::{Error, Fault};
use crate::file::{self, File};
use crate::source::Month;
use crate::txn::Txn;
use crate::{Calendar, Zone};

/// The fact that holds the calendar; absent or NULL: UTC.
const TIME_ZONE: &str = "time_zone";

/// Returns the calendar of a ledger from those of its files that can be read. `open`: the path of the open file.
pub(crate) fn of_files<'f>(open: &Path, files: impl Iterator<Item = &'f File>) -> Result<Calendar, Error> {
    let mut zones: BTreeMap<Option<Month>, Zone> = BTreeMap::new();
    for file in files {
        let Ok(text) = text(&file.connection) else { continue };
        let calendar = read(text).map_err(|error| error.of(file.path.display()))?;
        let begun = calendar
            .zones()
            .filter(|(first, _)| file.path == open || first.is_none_or(|first| first <= file.month));
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

#[cfg(test)]
#[path = "time_zone_tests.rs"]
mod tests;
