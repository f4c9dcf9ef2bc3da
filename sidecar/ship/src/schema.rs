//! The store's schema: applied where it is missing, by one of the many that come at once, and refused where
//! it is newer than we know.

use postgres::error::SqlState;
use postgres::{Client, GenericClient};

use crate::error::ShipError;

/// The statements that make the schema, for those who would rather run them themselves.
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

/// The statements of each version's tables, in order; the first makes version 1.
pub(crate) const STEPS: [&str; 4] = [
    include_str!("schema/1.sql"),
    include_str!("schema/2.sql"),
    include_str!("schema/3.sql"),
    include_str!("schema/4.sql"),
];

/// The views, made or replaced after the last version's tables.
pub(crate) const VIEWS: &str = include_str!("schema/views.sql");

/// The comments on tables, views and columns, applied last.
pub(crate) const COMMENTS: &str = include_str!("schema/comments.sql");

/// Brings the store to the version we speak, if it is not there.
pub(crate) fn ensure(client: &mut Client) -> Result<(), ShipError> {
    let Some(found) = version(client)? else { return apply(client) };
    let known = STEPS.len() as i32;
    match found {
        found if found < known => apply(client),
        found if found > known => Err(ShipError::refused(format!(
            "the central store's schema is version {found}, and this tokenmeter knows up to {known}; \
             upgrade tokenmeter here"
        ))),
        _ => Ok(()),
    }
}

/// Whether there is a schema to read from.
pub(crate) fn check(client: &mut Client) -> Result<(), ShipError> {
    match version(client)? {
        None => Err(ShipError::refused(
            "the central store has no schema `tokenmeter` yet: no tokenmeter has shipped there, or the \
             URL names another database",
        )),
        Some(found) if found != STEPS.len() as i32 => Err(ShipError::refused(format!(
            "the central store's schema is version {found}, and this tokenmeter reads version {}; use one of \
             that age",
            STEPS.len()
        ))),
        Some(_) => Ok(()),
    }
}

/// One maker at a time; those who waited find it done.
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
                "the central store has no schema `tokenmeter` of this version, and this role may not make \
                 it; let an owner of the database make it as sidecar/ship/postgres.md says, or grant \
                 CREATE on the database",
            ),
            _ => error.into(),
        })?;
    }
    Ok(transaction.commit()?)
}

/// The version that is there; `None` if there is no schema.
fn version(client: &mut impl GenericClient) -> Result<Option<i32>, ShipError> {
    match client.query_typed("SELECT max(version) FROM tokenmeter.version", &[]) {
        Ok(rows) => Ok(rows.first().and_then(|row| row.get(0))),
        Err(error) => match error.code() {
            Some(&SqlState::UNDEFINED_TABLE | &SqlState::INVALID_SCHEMA_NAME) => Ok(None),
            _ => Err(error.into()),
        },
    }
}
