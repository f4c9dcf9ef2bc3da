//! The digest of a month: a hash that changes if anything of the month changes.
//!
//! Law: the digest of a closed month covers every row in the order of entry, every daily total, audit event and gap,
//! and the digest of the month closed before it. It can be computed again from the file alone, also after retention
//! deleted the rows, because their table digests stay.

use std::collections::BTreeMap;
use std::fmt;

use rusqlite::Connection;

use crate::column::Stored;
use crate::error::Error;
use crate::file::{self, TableDigest};
use crate::source::Month;
use crate::table::{self, Table};
use crate::values;

pub use crate::table::Digest;

/// Returns the digest of a month whose tables match their table digests.
pub(crate) fn month(
    connection: &Connection,
    month: Month,
    previous: Option<&Digest>,
) -> Result<Digest, Error> {
    let mut tables = Vec::new();
    for table in table::digested_tables() {
        let mut found = file::table_digest(connection, table)?;
        if !table.is_numbered() {
            let mut rows: Vec<Digest> = Vec::new();
            table.each(connection, "", &[], |_, digest| {
                rows.push(*digest);
                Ok(())
            })?;
            found.digest = keyed(rows);
        }
        tables.push(PartDigest { table: table.name, rows: found.entered, digest: found.digest });
    }
    Ok(of_parts(month, previous, &tables))
}

/// Returns the digest of a table whose rows have keys: of all row hashes, sorted.
fn keyed(mut rows: Vec<Digest>) -> Digest {
    rows.sort_unstable();
    blake3::hash(rows.as_flattened()).into()
}

/// The part of a month's digest that covers one table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartDigest {
    /// The table.
    pub table: &'static str,
    /// The number of rows.
    pub rows: i64,
    /// The digest of the rows.
    pub digest: Digest,
}

/// Computes the part of a table from rows that another store returns. A file with these rows has the same part.
pub struct PartHasher {
    table: &'static Table,
    chain: TableDigest,
    keyed: Vec<Digest>,
    scratch: Vec<u8>,
}

impl fmt::Debug for PartHasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PartHasher").field("table", &self.table.name).finish_non_exhaustive()
    }
}

impl PartHasher {
    /// Returns the hasher of the table of `T`; `None` if no digest covers it.
    pub fn of<T: Stored>() -> Option<Self> {
        let table = table::digested_tables().into_iter().find(|table| table.name == T::TABLE)?;
        Some(Self { table, chain: TableDigest::NEW, keyed: Vec::new(), scratch: Vec::new() })
    }

    /// Adds a row. If its table is numbered, rows come in the order of `seq`; else `seq` has no effect.
    ///
    /// # Errors
    /// If a number does not fit into a file.
    pub fn add<T: Stored>(&mut self, seq: i64, item: &T) -> Result<(), Error> {
        let values = if self.table.is_numbered() { values::numbered(seq, item)? } else { values::of(item)? };
        let digest = self.table.digest(&values, &mut self.scratch);
        if self.table.is_numbered() {
            self.chain.chain(&digest);
        } else {
            self.keyed.push(digest);
        }
        Ok(())
    }

    /// Returns the part, and begins the next one.
    pub fn take(&mut self) -> PartDigest {
        let chain = std::mem::replace(&mut self.chain, TableDigest::NEW);
        let (rows, digest) = match self.table.is_numbered() {
            true => (chain.entered, chain.digest),
            false => (self.keyed.len() as i64, keyed(std::mem::take(&mut self.keyed))),
        };
        PartDigest { table: self.table.name, rows, digest }
    }
}

/// Returns the digest of a month, from the parts of its tables; a table without a part is empty.
pub fn of_parts(month: Month, previous: Option<&Digest>, parts: &[PartDigest]) -> Digest {
    let mut hasher = blake3::Hasher::new();
    hasher.update(b"tokenmeter ledger month, version 1\n");
    hasher.update(&month.to_le_bytes());
    hasher.update(previous.unwrap_or(&[0; 32]));
    for table in table::digested_tables() {
        let part = parts.iter().find(|part| part.table == table.name);
        let empty = if table.is_numbered() { [0; 32] } else { keyed(Vec::new()) };
        hasher.update(&part.map_or(0, |part| part.rows).to_le_bytes());
        hasher.update(&part.map_or(empty, |part| part.digest));
    }
    hasher.finalize().into()
}

/// Returns the digest of a month in a store of several ledgers: of the digests of its files, by the files' ids.
pub fn of_files(month: Month, previous: Option<&Digest>, files: &BTreeMap<[u8; 16], Digest>) -> Digest {
    let mut hasher = blake3::Hasher::new();
    hasher.update(b"tokenmeter store month, version 1\n");
    hasher.update(&month.to_le_bytes());
    hasher.update(previous.unwrap_or(&[0; 32]));
    for (file, digest) in files {
        hasher.update(file).update(digest);
    }
    hasher.finalize().into()
}

/// Reads a digest in hexadecimal.
pub fn from_hex(text: &str) -> Option<Digest> {
    blake3::Hash::from_hex(text).ok().map(Digest::from)
}

/// Returns a digest in hexadecimal.
pub fn hex(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use crate::file::File;
    use crate::testing::{NOON_US, Place};

    #[test]
    fn hexadecimal_is_read_back() {
        let digest = std::array::from_fn(|at| at as u8 * 8 + 3);
        assert_eq!(super::from_hex(&super::hex(&digest)), Some(digest));
        for text in
            ["", "00", &"0".repeat(63), &"0".repeat(66), &"g".repeat(64), &"+1".repeat(32), &"é".repeat(32)]
        {
            assert_eq!(super::from_hex(text), None, "{text}");
        }
    }

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
