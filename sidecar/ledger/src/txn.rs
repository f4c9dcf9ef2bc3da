//! One transaction of a file: rows, the daily totals to which they add, the table digests and the facts.
//!
//! Laws: a row adds to its daily total in the transaction that inserts it, and only if it is new. A row that exists
//! already changes nothing, so a batch may be entered again after an error.

use std::collections::{BTreeMap, HashMap};

use price::Rate;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Transaction, TransactionBehavior};

use crate::audit_event::AuditEvent;
use crate::column::{RowReader, Stored};
use crate::energy::EnergyRow;
use crate::error::{Error, Fault};
use crate::file::{self, File, TableDigest};
use crate::source::{Correction, DeviceTotal, Gap, MadeCorrection, Month};
use crate::table::{self, ACT, CORRECTION, DEVICE, ENERGY, EXCHANGE, GAP, LINE, RATE, Table};
use crate::values;
use crate::{Class, DailyTotal, Row, Sums, TotalKey, month};

/// A transaction that excludes other writers. Dropped without a commit, it changes nothing.
pub(crate) struct Txn<'f> {
    transaction: Transaction<'f>,
    month: Month,
    table_digests: BTreeMap<&'static str, (&'static Table, TableDigest)>,
    totals: HashMap<TotalKey, Sums>,
    scratch: Vec<u8>,
    reader: RowReader<'static>,
}

impl<'f> Txn<'f> {
    /// Begins a transaction. The table digests are read again in each, because another process may have entered rows.
    pub(crate) fn begin(file: &'f mut File) -> Result<Self, Error> {
        let month = file.month;
        let transaction = file.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        Ok(Self {
            transaction,
            month,
            table_digests: BTreeMap::new(),
            totals: HashMap::new(),
            scratch: Vec::new(),
            reader: RowReader::new(),
        })
    }

    /// Returns true if the month was closed, so that nothing may be entered.
    pub(crate) fn is_closed(&self) -> Result<bool, Error> {
        Ok(file::number(&self.transaction, "closed_us")?.is_some())
    }

    /// Returns the token of the last transaction that had one.
    pub(crate) fn token(&self) -> Result<Option<Vec<u8>>, Error> {
        file::bytes(&self.transaction, "batch")
    }

    /// Returns a fact that is a number.
    pub(crate) fn number(&self, name: &str) -> Result<Option<i64>, Error> {
        file::number(&self.transaction, name)
    }

    /// Returns a fact that is text.
    pub(crate) fn text(&self, name: &str) -> Result<Option<String>, Error> {
        file::text(&self.transaction, name)
    }

    fn table_digest(&mut self, table: &'static Table) -> Result<TableDigest, Error> {
        if let Some((_, table_digest)) = self.table_digests.get(table.name) {
            return Ok(*table_digest);
        }
        let table_digest = file::table_digest(&self.transaction, table)?;
        self.table_digests.insert(table.name, (table, table_digest));
        Ok(table_digest)
    }

    fn set_table_digest(&mut self, table: &'static Table, table_digest: TableDigest) {
        self.table_digests.insert(table.name, (table, table_digest));
    }

    /// Enters the rates of rows and corrections that are not in the file yet.
    pub(crate) fn rates<'r>(&mut self, rates: impl IntoIterator<Item = &'r Rate>) -> Result<(), Error> {
        let mut table_digest = self.table_digest(&RATE)?;
        let mut insert = self.transaction.prepare_cached(RATE.insert_new())?;
        for rate in rates {
            let values = values::of(rate)?;
            let digest = RATE.digest(&values, &mut self.scratch);
            if table::execute(&mut insert, &values, &digest)? {
                table_digest.add(&digest);
            }
        }
        drop(insert);
        self.set_table_digest(&RATE, table_digest);
        Ok(())
    }

    /// Enters exchanges, after their rates. Returns the number of new ones.
    pub(crate) fn exchanges<'r>(&mut self, rows: impl IntoIterator<Item = &'r Row>) -> Result<u64, Error> {
        let mut table_digest = self.table_digest(&EXCHANGE)?;
        let mut new = 0;
        let mut insert = self.transaction.prepare_cached(EXCHANGE.insert_new())?;
        for row in rows {
            let values = values::numbered(table_digest.entered + 1, row)?;
            let digest = EXCHANGE.digest(&values, &mut self.scratch);
            if !table::execute(&mut insert, &values, &digest)? {
                continue;
            }
            table_digest.chain(&digest);
            new += 1;
            self.totals.entry(TotalKey::of_row(row, Class::Usage)).or_default().add_row(row);
        }
        drop(insert);
        self.set_table_digest(&EXCHANGE, table_digest);
        Ok(new)
    }

    /// Enters the GPU use of exchanges. Returns the number of new ones. If an exchange is in another file, its rate is
    /// entered too, because the daily total here refers to it.
    pub(crate) fn energies<'r>(
        &mut self,
        rows: impl IntoIterator<Item = &'r EnergyRow>,
    ) -> Result<u64, Error> {
        let mut rates: BTreeMap<[u8; 16], &Rate> = BTreeMap::new();
        let mut table_digest = self.table_digest(&ENERGY)?;
        let mut new = 0;
        let mut insert = self.transaction.prepare_cached(ENERGY.insert_new())?;
        for row in rows {
            let here = file::has(&self.transaction, &EXCHANGE, &row.id.0)?;
            // An exchange of another month is in the file of that month, which was closed meanwhile. One of this month
            // that is not here is in the overflow totals.
            let kept = here || month::of_day(row.key.day) != self.month;
            let class = if kept { Class::Usage } else { Class::Shed };
            let entered = row.row(class, !here);
            let values = values::numbered(table_digest.entered + 1, &entered)?;
            let digest = ENERGY.digest(&values, &mut self.scratch);
            if !table::execute(&mut insert, &values, &digest)? {
                continue;
            }
            table_digest.chain(&digest);
            new += 1;
            if !here && let Some(rate) = &row.rate {
                rates.insert(rate.id, rate);
            }
            self.totals.entry(row.key(class)).or_default().add_used(&row.used, row.role);
        }
        drop(insert);
        self.set_table_digest(&ENERGY, table_digest);
        self.rates(rates.into_values())?;
        Ok(new)
    }

    /// Adds sums to a daily total. Unlike a row they have no id, so that only the batch's token prevents a repetition.
    pub(crate) fn total(&mut self, key: &TotalKey, sums: &Sums) {
        self.totals.entry(key.clone()).or_default().add(sums);
    }

    /// Adds GPU use without an exchange.
    pub(crate) fn devices<'r>(
        &mut self,
        added: impl IntoIterator<Item = &'r DeviceTotal>,
    ) -> Result<(), Error> {
        let mut sums: BTreeMap<(i32, &str, &str), DeviceTotal> = BTreeMap::new();
        for line in added {
            sums.entry((line.day, &line.hw_id, line.share.name()))
                .and_modify(|sum| sum.sums.add(&line.sums))
                .or_insert_with(|| line.clone());
        }
        let mut table_digest = self.table_digest(&DEVICE)?;
        let mut find = self.transaction.prepare_cached(DEVICE.select_one())?;
        let mut replace = self.transaction.prepare_cached(DEVICE.replace())?;
        for mut line in sums.into_values() {
            table::bind(&mut find, DEVICE.key(&values::of(&line)?))?;
            let mut found = find.raw_query();
            if let Some(row) = found.next()? {
                let (old, digest) = DEVICE.read(row, &mut self.scratch)?;
                line.sums.add(&values::read::<DeviceTotal>(&old, &mut self.reader)?.sums);
                table_digest.take(&digest);
            }
            drop(found);
            let values = values::of(&line)?;
            let digest = DEVICE.digest(&values, &mut self.scratch);
            table::execute(&mut replace, &values, &digest)?;
            table_digest.add(&digest);
        }
        drop((find, replace));
        self.set_table_digest(&DEVICE, table_digest);
        Ok(())
    }

    /// Enters the corrections of an audit event, after their rates. Returns the number of new ones.
    pub(crate) fn corrections<'r>(
        &mut self,
        act: i64,
        corrections: impl IntoIterator<Item = &'r Correction>,
    ) -> Result<u64, Error> {
        let mut table_digest = self.table_digest(&CORRECTION)?;
        let mut new = 0;
        let mut insert = self.transaction.prepare_cached(CORRECTION.insert_new())?;
        for correction in corrections {
            let made = MadeCorrection { act, correction: correction.clone() };
            let values = values::numbered(table_digest.entered + 1, &made)?;
            let digest = CORRECTION.digest(&values, &mut self.scratch);
            if !table::execute(&mut insert, &values, &digest)? {
                continue;
            }
            table_digest.chain(&digest);
            new += 1;
            // The total adds what a store reads back, so that verification finds the same sum.
            let read = values::read::<MadeCorrection>(&values, &mut self.reader)?.correction.line;
            self.totals.entry(read.key).or_default().add(&read.sums);
        }
        drop(insert);
        self.set_table_digest(&CORRECTION, table_digest);
        Ok(new)
    }

    /// Enters a gap.
    pub(crate) fn gap(&mut self, gap: &Gap) -> Result<(), Error> {
        self.append(&GAP, gap).map(|_| ())
    }

    /// Enters an event of the audit trail. Returns its number.
    pub(crate) fn audit(&mut self, at_us: i64, what: &str, who: &str, detail: &str) -> Result<i64, Error> {
        self.append(&ACT, &AuditEvent { at_us, what: what.into(), who: who.into(), detail: detail.into() })
    }

    fn append<T: Stored>(&mut self, table: &'static Table, item: &T) -> Result<i64, Error> {
        let mut table_digest = self.table_digest(table)?;
        let values = values::numbered(table_digest.entered + 1, item)?;
        let digest = table.digest(&values, &mut self.scratch);
        let mut insert = self.transaction.prepare_cached(table.insert())?;
        table::execute(&mut insert, &values, &digest)?;
        drop(insert);
        table_digest.chain(&digest);
        self.set_table_digest(table, table_digest);
        Ok(table_digest.entered)
    }

    /// Writes a fact about the file.
    pub(crate) fn fact(&self, name: &str, value: ValueRef<'_>) -> Result<(), Error> {
        file::set_fact(&self.transaction, name, value)
    }

    /// Writes the daily totals and table digests. Returns the connection, which reads the file as it will be committed.
    pub(crate) fn settled(&mut self) -> Result<&Connection, Error> {
        self.write_lines()?;
        for (table, table_digest) in self.table_digests.values() {
            file::set_table_digest(&self.transaction, table, table_digest)?;
        }
        Ok(&self.transaction)
    }

    /// Commits. When this returns, everything is on the disk.
    pub(crate) fn commit(mut self) -> Result<(), Error> {
        self.settled()?;
        Ok(self.transaction.commit()?)
    }

    fn write_lines(&mut self) -> Result<(), Error> {
        let mut lines: Vec<_> = std::mem::take(&mut self.totals).into_iter().collect();
        if lines.is_empty() {
            return Ok(());
        }
        lines.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        let days = lines.iter().map(|(key, _)| key.day);
        let days = days.clone().min().zip(days.max());
        let mut table_digest = self.table_digest(&LINE)?;
        let mut find = self.transaction.prepare_cached(LINE.select_one())?;
        let mut replace = self.transaction.prepare_cached(LINE.replace())?;
        for (key, sums) in lines {
            let mut line = DailyTotal { key, sums };
            table::bind(&mut find, LINE.key(&values::of(&line)?))?;
            let mut found = find.raw_query();
            if let Some(row) = found.next()? {
                let (old, digest) = LINE.read(row, &mut self.scratch)?;
                line.sums.add(&values::read::<DailyTotal>(&old, &mut self.reader)?.sums);
                table_digest.take(&digest);
            }
            drop(found);
            let values = values::of(&line)?;
            let digest = LINE.digest(&values, &mut self.scratch);
            table::execute(&mut replace, &values, &digest)?;
            table_digest.add(&digest);
        }
        drop((find, replace));
        self.set_table_digest(&LINE, table_digest);
        days.map_or(Ok(()), |(first, last)| file::extend_days(&self.transaction, first..=last))
    }
}

/// Records that the writer closed a file in order, so that the next writer enters no gap.
pub(crate) fn set_clean(file: &mut File, now_us: i64) -> Result<(), Error> {
    let txn = Txn::begin(file)?;
    if txn.is_closed()? {
        return Ok(());
    }
    txn.fact("clean", ValueRef::Integer(1))?;
    txn.fact("alive_us", ValueRef::Integer(now_us))?;
    txn.commit()
}

/// Returns the error for entering something into a closed month.
pub(crate) fn closed(month: Month) -> Error {
    Error::new(Fault::Other, format!("{} is closed", month::name(month)))
}

#[cfg(test)]
#[path = "txn_tests.rs"]
mod tests;
