//! The digest of a month: a hash that changes if anything of the month changes.
//!
//! Law: the digest of a closed month covers every row in the order of entry, every daily total, audit event and gap,
//! and the digest of the month closed before it. It can be computed again from the file alone, also after retention
//! deleted the rows, because their table digests stay.

use rusqlite::Connection;

use crate::error::Error;
use crate::file;
use crate::source::Month;
use crate::table::{self, Digest, Table};

/// Returns the digest of a month whose tables match their table digests.
pub(crate) fn month(
    connection: &Connection,
    month: Month,
    previous: Option<&Digest>,
) -> Result<Digest, Error> {
    let mut hasher = blake3::Hasher::new();
    hasher.update(b"tokenmeter ledger month, version 1\n");
    hasher.update(&month.to_le_bytes());
    hasher.update(previous.unwrap_or(&[0; 32]));
    for table in table::digested_tables() {
        let table_digest = file::table_digest(connection, table)?;
        hasher.update(&table_digest.entered.to_le_bytes());
        hasher.update(&if table.is_numbered() { table_digest.digest } else { keyed(connection, table)? });
    }
    Ok(hasher.finalize().into())
}

/// Returns the digest of a table whose rows have keys: of all row hashes, sorted.
fn keyed(connection: &Connection, table: &Table) -> Result<Digest, Error> {
    let mut rows: Vec<Digest> = Vec::new();
    table.each(connection, "", &[], |_, digest| {
        rows.push(*digest);
        Ok(())
    })?;
    rows.sort_unstable();
    Ok(blake3::hash(rows.as_flattened()).into())
}

/// Returns a digest in hexadecimal.
pub(crate) fn hex(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use crate::file::File;
    use crate::testing::{NOON_US, Place};

    /// A month is closed on the digest of the one before: exchanging that for another makes this one differ.
    #[test]
    fn digest_depends_on_the_month_before() {
        let place = Place::new();
        let month = crate::month::of(NOON_US);
        let file = File::create(&place.ledger(), month, NOON_US, |_| Ok(())).unwrap();
        let of = |previous| super::month(&file.connection, month, previous).unwrap();
        assert_eq!(of(Some(&[1; 32])), of(Some(&[1; 32])));
        assert_ne!(of(Some(&[1; 32])), of(Some(&[2; 32])));
        assert_ne!(of(Some(&[1; 32])), of(None));
    }
}
