//! Retention of the central store: deletes the rows of past months. Their daily totals and corrections stay.

use ledger::source::Month;

use crate::address::Address;
use crate::connect::connect;
use crate::error::ShipError;
use crate::schema;

/// Deletes the rows of every month that, by the store's clock, ended at least `keep_days` days ago in the time zones of
/// all its ledger files, each in its own transaction. Returns those months. The newest month of the store keeps its
/// rows. Months whose rows are already deleted are not among those returned. The connected role must own the schema, or
/// be a member of the role that does.
///
/// # Errors
/// If the store cannot be reached, its schema is missing or of another version, or the role may not delete. Months
/// before the failed one are deleted.
pub fn forget(address: &Address, keep_days: u32) -> Result<Vec<Month>, ShipError> {
    let mut client = connect(address)?;
    schema::check(&mut client)?;
    let mut months = Vec::new();
    for row in client.query(PAST, &[&f64::from(keep_days)])? {
        let (day, name): (i32, &str) = (row.try_get("day")?, row.try_get("name")?);
        client.execute("SELECT tokenmeter.forget($1)", &[&name])?;
        months.push(ledger::month::of_day(day));
    }
    Ok(months)
}

/// The months to delete, oldest first.
const PAST: &str = "WITH month AS ( \
                      SELECT to_date(right(inhrelid::regclass::text, 7), 'YYYY_MM') AS first FROM pg_inherits \
                      WHERE inhparent = 'tokenmeter.line'::regclass) \
                    SELECT first - date '1970-01-01' AS day, to_char(first, 'YYYY-MM') AS name FROM month \
                    WHERE first < (SELECT max(first) FROM month) \
                    AND first NOT IN (SELECT tokenmeter.forgotten()) \
                    AND tokenmeter.month_end(first) + $1 * interval '1 day' <= now() \
                    ORDER BY first";
