//! The central store to which a ledger's rows are shipped. Months are closed and charges corrected there.

use std::path::Path;

use crate::error::{Error, Fault};
use crate::file::{self, File};
use crate::files;

/// The name of the fact that holds the central store; NULL: none.
pub(crate) const SHIPS_TO: &str = "ships_to";

/// Returns the central store to which the last proxy that wrote the ledger shipped its rows, without a password; `None`
/// if it shipped none.
///
/// # Errors
/// If the newest file of the ledger cannot be read.
pub fn ships_to(path: &Path) -> Result<Option<String>, Error> {
    let Some(newest) = files::list(path)?.pop() else { return Ok(None) };
    let named = |error: Error| error.of(newest.display());
    file::text(&File::open_read(&newest).map_err(named)?.connection, SHIPS_TO).map_err(named)
}

/// Refuses an action on a ledger that is shipped. `command` is the command without its ledger.
///
/// # Errors
/// If the ledger is shipped, with the command to run; or as [`ships_to`].
pub fn require_unshipped(path: &Path, command: &str) -> Result<(), Error> {
    let Some(store) = ships_to(path)? else { return Ok(()) };
    Err(Error::new(
        Fault::Other,
        format!(
            "{} is shipped to {store}, where months are closed and charges corrected for all ledgers: run \
             `{command} --ledger {}`, where OWNER is the role that owns the store's schema. If it is no longer shipped, \
             start its proxy once without `ledger_ship`",
            path.display(),
            by_owner(&store)
        ),
    ))
}

/// Returns the URL of a store with the word OWNER in place of its role, which may only ship.
fn by_owner(store: &str) -> String {
    let Some((scheme, rest)) = store.split_once("://") else { return store.to_owned() };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    format!("{scheme}://OWNER@{host}{path}")
}
