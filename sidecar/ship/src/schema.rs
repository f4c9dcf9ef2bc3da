//! The store's schema: created or upgraded by one of several concurrent processes, and refused if it is newer
//! than this version.

use ledger::Row;
use ledger::column::{Column, Stored};
use postgres::error::SqlState;
use postgres::types::Type;
use postgres::{Client, GenericClient};

use crate::columns;
use crate::error::ShipError;

/// The statements of each version, in order; the first creates version 1.
const STEPS: &[&str] = &[include_str!("schema/1.sql")];

/// The views, created or replaced after the last version.
pub(crate) const VIEWS: &str = include_str!("schema/views.sql");

/// The version of the ledger's schema whose columns [`STEPS`] create. Columns of `exchange` that later versions add may
/// be NULL, so the store gets them without a version of its own: an older tokenmeter neither reads nor writes them.
const COLUMNS_OF_STEPS: i64 = 1;

/// The statements that add such columns.
pub(crate) const COLUMNS: &str = include_str!("schema/columns.sql");

/// The comments on tables, views and columns, applied last.
pub(crate) const COMMENTS: &str = include_str!("schema/comments.sql");

/// The columns of `exchange` that [`STEPS`] do not create.
pub(crate) fn later_columns() -> impl Iterator<Item = &'static Column<Row>> {
    Row::columns().iter().filter(|column| column.version > COLUMNS_OF_STEPS)
}

/// Creates the schema or upgrades it to this version.
pub(crate) fn ensure(client: &mut Client) -> Result<(), ShipError> {
    ensure_steps(client, STEPS)
}

/// Creates the schema or upgrades it to the version of the last step.
pub(crate) fn ensure_steps(client: &mut Client, all: &[&str]) -> Result<(), ShipError> {
    let Some(found) = version(client)? else { return apply(client, all) };
    let known = all.len() as i32;
    match found {
        found if found < known => apply(client, all),
        found if found > known => Err(ShipError::refused(format!(
            "the central store's schema is version {found}, and this tokenmeter supports up to {known}; \
             upgrade tokenmeter here"
        ))),
        _ if !has_columns(client)? => apply(client, all),
        _ => Ok(()),
    }
}

/// Returns true if the store has the columns that came after the last step.
fn has_columns(client: &mut impl GenericClient) -> Result<bool, ShipError> {
    let later: Vec<String> = later_columns().map(|column| columns::name(column).into_owned()).collect();
    if later.is_empty() {
        return Ok(true);
    }
    let sql = "SELECT count(*) FROM pg_attribute WHERE attrelid = 'tokenmeter.exchange'::regclass \
               AND attname = ANY ($1) AND NOT attisdropped";
    let rows = client.query_typed(sql, &[(&later, Type::TEXT_ARRAY)])?;
    Ok(rows.first().map(|row| row.get::<_, i64>(0)) == i64::try_from(later.len()).ok())
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
fn apply(client: &mut Client, all: &[&str]) -> Result<(), ShipError> {
    let mut transaction = client.transaction()?;
    transaction.batch_execute("SELECT pg_advisory_xact_lock(7954884599196870002)")?;
    let mut savepoint = transaction.transaction()?;
    let found = version(&mut savepoint)?;
    match found {
        Some(_) => savepoint.commit()?,
        None => savepoint.rollback()?,
    }
    let steps = &all[all.len().min(found.unwrap_or(0).unsigned_abs() as usize)..];
    let has_all = found.is_some() && steps.is_empty() && has_columns(&mut transaction)?;
    let last: &[&str] = if has_all { &[] } else { &[COLUMNS, VIEWS, COMMENTS] };
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
