//! The digests of ledger files, computed from the store's rows as a file computes its own when its month is closed.
//!
//! Rows are read in the order of their files and numbers, each once, and none is kept. The digest of a file equals that
//! of the file itself if the store has all its rows: not those that retention deleted before they were shipped.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;

use ledger::column::{RowReader, Sql, Stored};
use ledger::digest::{PartDigest, PartHasher};
use ledger::source::{DeviceTotal, Gap, MadeCorrection, SourceError};
use ledger::{AuditEvent, DailyTotal, Energy, Row};
use postgres::types::Type;
use price::Rate;

use super::Central;
use crate::columns;
use crate::values::Id;

/// The parts of the digests of files, by the file.
pub(super) type Parts = HashMap<[u8; 16], Vec<PartDigest>>;

impl Central {
    /// Computes the parts of the digests of files that are closed by an event, which the digests cover.
    pub(super) fn parts(&self, files: &[Id], closed: AuditEvent) -> Result<Parts, SourceError> {
        let mut parts = Parts::new();
        let rates = self.rates_by_id()?;
        let mut with_rates = RowReader::with_rates(|id| Ok(rates.get(id).cloned()));
        self.part::<Row>(files, &mut parts, &mut with_rates, None)?;
        let mut reader = RowReader::new();
        self.part::<Energy>(files, &mut parts, &mut reader, None)?;
        self.part::<MadeCorrection>(files, &mut parts, &mut reader, None)?;
        self.part::<Rate>(files, &mut parts, &mut reader, None)?;
        self.part::<DailyTotal>(files, &mut parts, &mut reader, None)?;
        self.part::<DeviceTotal>(files, &mut parts, &mut reader, None)?;
        self.part(files, &mut parts, &mut reader, Some(closed))?;
        self.part::<Gap>(files, &mut parts, &mut reader, None)?;
        Ok(parts)
    }

    /// Computes the parts of one table, each with a last row that the store does not have.
    fn part<T: Stored>(
        &self,
        files: &[Id],
        parts: &mut Parts,
        reader: &mut RowReader<'_>,
        last: Option<T>,
    ) -> Result<(), SourceError> {
        let Some(mut hasher) = PartHasher::of::<T>() else { return Ok(()) };
        let is_numbered = T::KEYS == 0;
        let mut of: Option<([u8; 16], i64)> = None;
        let mut end = |hasher: &mut PartHasher, (file, seq): ([u8; 16], i64)| -> Result<(), SourceError> {
            if let Some(last) = &last {
                hasher.add(seq + 1, last)?;
            }
            parts.entry(file).or_default().push(hasher.take());
            Ok(())
        };
        let mut unseen: HashSet<[u8; 16]> = files.iter().map(|file| file.0).collect();
        self.each(&select::<T>(), &[(&files.to_vec(), Type::UUID_ARRAY)], |row| {
            let file = row.try_get::<_, Id>("file")?.0;
            if of.is_none_or(|(of, _)| of != file) {
                unseen.remove(&file);
                of.map_or(Ok(()), |done| end(&mut hasher, done))?;
            }
            let seq = if is_numbered { row.try_get::<_, Option<i64>>("number")?.unwrap_or(0) } else { 0 };
            hasher.add(seq, &columns::read::<T>(row, reader)?)?;
            of = Some((file, seq));
            Ok(())
        })?;
        of.map_or(Ok(()), |done| end(&mut hasher, done))?;
        unseen.into_iter().try_for_each(|file| end(&mut hasher, (file, 0)))
    }
}

/// Returns the SQL of all rows of a table in some files, in their order.
fn select<T: Stored>() -> String {
    // Of two columns with one name the first is read.
    let mut first = String::new();
    for column in T::columns().iter().filter(|column| matches!(column.sql, Sql::Sum(_))) {
        let name = columns::name(column);
        // Writing to a string cannot fail.
        let _ = write!(first, "trunc(x.{name})::text AS {name}, ");
    }
    match T::TABLE {
        // A rate has the price book that its file has.
        "rate" => "SELECT f.instance AS file, f.version, f.book, x.* FROM tokenmeter.file_rate f \
                   JOIN tokenmeter.rate x USING (id) WHERE f.instance = ANY ($1) ORDER BY 1, id"
            .to_owned(),
        table if T::KEYS > 0 => format!(
            "SELECT x.instance AS file, {first} x.* FROM tokenmeter.{table} x \
             WHERE x.instance = ANY ($1) ORDER BY 1"
        ),
        table => {
            let unnumbered = if matches!(table, "exchange" | "energy") { ", x.ended_at, x.id" } else { "" };
            // Gaps below zero were found while the file was shipped, and are not in it.
            let condition = if table == "gap" { " AND x.seq > 0" } else { "" };
            format!(
                "SELECT x.instance AS file, x.seq AS number, {first} x.* FROM tokenmeter.{table} x \
                 WHERE x.instance = ANY ($1){condition} ORDER BY 1, 2 NULLS FIRST{unnumbered}"
            )
        }
    }
}
