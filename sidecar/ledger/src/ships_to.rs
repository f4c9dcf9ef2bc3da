//! The central store to which a ledger's rows are shipped. Months are closed and charges corrected there.

use std::path::Path;

use crate::error::{Error, Fault};
use crate::file::{self, File};

/// The name of the fact that holds the central store; NULL: none.
pub(crate) const SHIPS_TO: &str = "ships_to";

/// Returns the central store to which the last proxy that wrote a file shipped its rows, without a password.
pub(crate) fn of(file: &File, path: &Path) -> Result<Option<String>, Error> {
    file::text(&file.connection, SHIPS_TO).map_err(|error| error.of(path.display()))
}

/// Returns the error of an action on a ledger that is shipped to a store. `command` is the command without its ledger.
pub(crate) fn shipped(ledger: &Path, store: &str, command: &str) -> Error {
    Error::new(
        Fault::Other,
        format!(
            "{} is shipped to {store}, where months are closed and charges corrected for all ledgers: run \
             `{command} --ledger {}`, where OWNER is the role that owns the store's schema. If it is no longer shipped, \
             start its proxy once without `ledger_ship`",
            ledger.display(),
            by_owner(store)
        ),
    )
}

/// Returns the URL of a store with the word OWNER in place of its role, which may only ship.
fn by_owner(store: &str) -> String {
    let Some((scheme, rest)) = store.split_once("://") else { return store.to_owned() };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    format!("{scheme}://OWNER@{host}{path}")
}
