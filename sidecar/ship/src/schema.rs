//! The store's schema: created or upgraded by one of several concurrent processes, and refused if it is newer
//! than this version.

use postgres::error::SqlState;
use postgres::{Client, GenericClient};

use crate::error::ShipError;

/// The statements that create the schema, for an operator who runs them by hand.
pub const DDL: &str = concat!(
    include_str!("schema/1.sql"),
    "\n",
    include_str!("schema/2.sql"),
    "\n",
    include_str!("schema/3.sql"),
    "\n",
    include_str!("schema/4.sql"),
    "\n",
    include_str!("schema/views.sql"),
    "\n",
    include_str!("schema/comments.sql")
);

/// The statements of each version's tables, in order; the first creates version 1.
pub(crate) const STEPS: [&str; 4] = [
    include_str!("schema/1.sql"),
    include_str!("schema/2.sql"),
    include_str!("schema/3.sql"),
    include_str!("schema/4.sql"),
];

/// The views, created or replaced after the last version's tables.
pub(crate) const VIEWS: &str = include_str!("schema/views.sql");

/// The comments on tables, views and columns, applied last.
pub(crate) const COMMENTS: &str = include_str!("schema/comments.sql");

/// Creates the schema or upgrades it to this version.
pub(crate) fn ensure(client: &mut Client) -> Result<(), ShipError> {
    let Some(found) = version(client)? else { return apply(client) };
    let known = STEPS.len() as i32;
    match found {
        found if found < known => apply(client),
        found if found > known => Err(ShipError::refused(format!(
            "the central store's schema is version {found}, and this tokenmeter supports up to {known}; \
             upgrade tokenmeter here"
        ))),
        _ => Ok(()),
    }
}

/// Checks that the store has a schema of this version, for reading.
pub(crate) fn check(client: &mut Client) -> Result<(), ShipError> {
    match version(client)? {
        None => Err(ShipError::refused(
            "the central store has no schema `tokenmeter` yet: no tokenmeter has shipped there, or the \
             URL names another database",
        )),
        Some(found) if found != STEPS.len() as i32 => Err(ShipError::refused(format!(
            "the central store's schema is version {found}, and this tokenmeter reads version {}; use the matching \
             tokenmeter",
            STEPS.len()
        ))),
        Some(_) => Ok(()),
    }
}

/// Applies the missing steps under a lock; a process that waited for it finds them done.
fn apply(client: &mut Client) -> Result<(), ShipError> {
    let mut transaction = client.transaction()?;
    transaction.batch_execute("SELECT pg_advisory_xact_lock(7954884599196870002)")?;
    let mut savepoint = transaction.transaction()?;
    let found = version(&mut savepoint)?;
    match found {
        Some(_) => savepoint.commit()?,
        None => savepoint.rollback()?,
    }
    let steps = &STEPS[STEPS.len().min(found.unwrap_or(0).unsigned_abs() as usize)..];
    let last: &[&str] = if steps.is_empty() { &[] } else { &[VIEWS, COMMENTS] };
    for step in steps.iter().chain(last) {
        transaction.batch_execute(step).map_err(|error| match error.code() {
            Some(&SqlState::INSUFFICIENT_PRIVILEGE) => ShipError::refused(
                "the central store has no schema `tokenmeter` of this version, and this role may not create \
                 it; let an owner of the database create it as described in sidecar/ship/postgres.md, or grant \
                 CREATE on the database",
            ),
            _ => error.into(),
        })?;
    }
    Ok(transaction.commit()?)
}

/// Returns the schema's version; `None` without a schema.
fn version(client: &mut impl GenericClient) -> Result<Option<i32>, ShipError> {
    match client.query_typed("SELECT max(version) FROM tokenmeter.version", &[]) {
        Ok(rows) => Ok(rows.first().and_then(|row| row.get(0))),
        Err(error) => match error.code() {
            Some(&SqlState::UNDEFINED_TABLE | &SqlState::INVALID_SCHEMA_NAME) => Ok(None),
            _ => Err(error.into()),
        },
    }
}
