//! Export to another store: a file's rows in the order of entry, in batches, and the reader's cursor.
//!
//! Laws: a batch is read from one snapshot in one short transaction, so that the writer can checkpoint its log; a file
//! is open for no longer than that. A file is identified by an id among its facts and never by its name, which changes
//! when its month ends.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use meter::ExchangeId;
use price::Rate;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension};

use crate::audit_event::AuditEvent;
use crate::column::RowReader;
use crate::energy::Energy;
use crate::error::Error;
use crate::file::{self, File};
use crate::files;
use crate::source::{DeviceTotal, Gap, MadeCorrection, Month, Range};
use crate::table::{ACT, CORRECTION, DEVICE, ENERGY, EXCHANGE, GAP, LINE, RATE, Table};
use crate::values;
use crate::{Calendar, Class, DailyTotal, Row, month, time_zone};

/// The files of a ledger, for the shipper.
#[derive(Clone, Debug)]
pub struct ExportReader {
    path: PathBuf,
}

/// The identity of a file, independent of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Origin {
    /// The file's own id.
    pub instance: [u8; 16],
    /// The file's month.
    pub month: Month,
}

/// The position of a reader in one file: the highest `seq` that it has read of each table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    /// Of `exchange`.
    pub exchange: i64,
    /// Of `energy`.
    pub energy: i64,
    /// Of `correction`.
    pub correction: i64,
    /// Of `act`.
    pub act: i64,
    /// Of `gap`.
    pub gap: i64,
}

impl Cursor {
    /// Returns true if it is beyond the end of any table, so that the file lacks rows that the reader has.
    pub fn is_beyond(&self, end: Self) -> bool {
        self.exchange > end.exchange
            || self.energy > end.energy
            || self.correction > end.correction
            || self.act > end.act
            || self.gap > end.gap
    }
}

/// The rows of a file after a cursor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShipBatch {
    /// The ledger's file of the month before, if the reader knows it.
    pub previous: Option<Origin>,
    /// The ledger's calendar, as the file has it.
    pub calendar: Calendar,
    /// The cursor after which it begins.
    pub after: Cursor,
    /// Exchanges, without those of months that the reader has forgotten.
    pub rows: Vec<Row>,
    /// The `seq` of each.
    pub row_seqs: Vec<i64>,
    /// The rates to which the batch refers.
    pub rates: Vec<Arc<Rate>>,
    /// GPU use of exchanges that are in this or an earlier batch, or in another file.
    pub energy: Vec<Energy>,
    /// The `seq` of each.
    pub energy_seqs: Vec<i64>,
    /// Corrections.
    pub corrections: Vec<MadeCorrection>,
    /// The `seq` of each.
    pub correction_seqs: Vec<i64>,
    /// Events of the audit trail, each with its `seq`.
    pub acts: Vec<(i64, AuditEvent)>,
    /// Gaps, each with its `seq`. A gap for rows that retention deleted unread is not in the file; its `seq` is below
    /// zero.
    pub gaps: Vec<(i64, Gap)>,
    /// The number of exchanges that retention deleted before the reader had them.
    pub taken: u64,
    /// All daily totals of class `usage`, if rows were deleted before the reader had them: their sums are known from
    /// nothing else. Otherwise those of forgotten months, if the batch skips rows of them.
    pub usage: Vec<DailyTotal>,
    /// True if the batch has the file's last exchange, and so the other tables too.
    pub is_rest: bool,
    /// True if no process writes the file: its month is over, or its last writer ended in order.
    pub is_clean: bool,
    /// All daily totals of class `shed`, which have no rows, if the batch reaches the file's end.
    pub shed: Vec<DailyTotal>,
    /// All GPU use without an exchange, if the batch reaches the file's end.
    pub devices: Vec<DeviceTotal>,
    /// The cursor after this batch.
    pub next: Cursor,
    /// The number of exchanges after it.
    pub behind: u64,
}

/// The exchanges of a file after a number, for a reader that needs nothing else.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExchangeBatch {
    /// The exchanges.
    pub rows: Vec<Row>,
    /// The number of the last exchange of the batch.
    pub next: i64,
    /// The number of exchanges that retention deleted before the reader had them.
    pub taken: u64,
}

impl ShipBatch {
    /// Returns true if it has nothing but totals.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
            && self.energy.is_empty()
            && self.corrections.is_empty()
            && self.acts.is_empty()
            && self.gaps.is_empty()
            && self.usage.is_empty()
    }
}

impl ExportReader {
    /// Returns the reader of the ledger whose open file has this path.
    pub fn of(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    /// Returns the paths of the existing files, the oldest month first and the open one last.
    ///
    /// # Errors
    /// If the folder cannot be listed.
    pub fn files(&self) -> Result<Vec<PathBuf>, Error> {
        files::list(&self.path).map_err(|error| Error::from(error).of(self.path.display()))
    }

    /// Opens one of the files to read.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn open(&self, path: &Path) -> Result<Opened, Error> {
        let named = |error: Error| error.of(path.display());
        let file = File::open_read(path).map_err(named)?;
        let id = file::bytes(&file.connection, "instance").map_err(named)?.and_then(|id| id.try_into().ok());
        let instance = id.ok_or_else(|| named(Error::corrupt("it has no id")))?;
        let origin = Origin { instance, month: file.month };
        Ok(Opened { file, origin })
    }
}

/// An open file. Dropping it closes the file.
#[derive(Debug)]
pub struct Opened {
    file: File,
    origin: Origin,
}

impl Opened {
    /// Returns the file's identity.
    pub fn origin(&self) -> Origin {
        self.origin
    }

    /// Returns the cursor of a reader that has everything. The table digests count also the rows that retention
    /// deleted.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn end(&self) -> Result<Cursor, Error> {
        let entered = |table| Ok::<_, Error>(file::table_digest(&self.file.connection, table)?.entered);
        Ok(Cursor {
            exchange: entered(&EXCHANGE)?,
            energy: entered(&ENERGY)?,
            correction: entered(&CORRECTION)?,
            act: entered(&ACT)?,
            gap: entered(&GAP)?,
        })
    }

    /// Returns the exchange with a number, if its row exists.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn at(&self, exchange: i64) -> Result<Option<ExchangeId>, Error> {
        let sql = "SELECT id FROM exchange WHERE seq = ?1";
        Ok(self.file.connection.query_row(sql, [exchange], |row| row.get(0)).optional()?.map(ExchangeId))
    }

    /// Returns the number of exchanges after a cursor, and the time at which the first of them ended.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn waiting(&self, after: Cursor) -> Result<(u64, Option<i64>), Error> {
        let connection = &self.file.connection;
        let first = connection.query_row(FIRST, [after.exchange], |row| row.get(0)).optional()?;
        Ok((behind(connection, after.exchange)?, first))
    }

    /// Returns the time of the audit event with a number, microseconds since 1970, if it exists.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn act_at(&self, act: i64) -> Result<Option<i64>, Error> {
        let sql = "SELECT at_us FROM act WHERE seq = ?1";
        Ok(self.file.connection.query_row(sql, [act], |row| row.get(0)).optional()?)
    }

    /// Returns the rows after a cursor, at most `limit` of each table. The other tables begin once all exchanges are
    /// read, so that an exchange always comes before its GPU use and its corrections. Exchanges and GPU use of
    /// `forgotten` months are skipped; the totals of their days are returned instead.
    ///
    /// # Errors
    /// If the file cannot be read, or was changed by other means.
    pub fn batch(
        &self,
        after: Cursor,
        limit: usize,
        forgotten: &BTreeSet<Month>,
    ) -> Result<ShipBatch, Error> {
        self.snapshot(after, limit, forgotten).map_err(|error| error.of(self.file.path.display()))
    }

    /// Returns the exchanges after a number, at most `limit`.
    ///
    /// # Errors
    /// If the file cannot be read, or was changed by other means.
    pub fn exchanges(&self, after: i64, limit: usize) -> Result<ExchangeBatch, Error> {
        let read = || {
            let snapshot = self.file.connection.unchecked_transaction()?;
            let gone = file::compacted(&snapshot, &EXCHANGE)?.entered;
            let mut next = after.max(gone);
            let forgotten = BTreeSet::new();
            let (kept, rates) = (String::new(), BTreeMap::new());
            let mut reader = Reader { snapshot: &snapshot, limit, forgotten: &forgotten, kept, rates };
            let rows = reader.rows(&mut next)?.into_iter().map(|(_, row)| row).collect();
            let taken = (gone - after).max(0).unsigned_abs();
            Ok(ExchangeBatch { rows, next, taken })
        };
        read().map_err(|error: Error| error.of(self.file.path.display()))
    }

    fn snapshot(&self, after: Cursor, limit: usize, forgotten: &BTreeSet<Month>) -> Result<ShipBatch, Error> {
        let snapshot = self.file.connection.unchecked_transaction()?;
        let calendar = time_zone::of(&snapshot)?;
        let kept = kept(forgotten, &calendar);
        let mut reader = Reader { snapshot: &snapshot, limit, forgotten, kept, rates: BTreeMap::new() };
        let mut batch = ShipBatch { calendar, after, next: after, ..ShipBatch::default() };
        self.skip_taken(&mut reader, &mut batch)?;
        let begin = batch.next;
        (batch.row_seqs, batch.rows) = reader.rows(&mut batch.next.exchange)?.into_iter().unzip();
        batch.is_rest = batch.rows.len() < limit;
        batch.is_clean = file::number(&snapshot, "clean")? == Some(1);
        if batch.is_rest {
            reader.rest(&mut batch)?;
        } else {
            batch.behind = behind(&snapshot, batch.next.exchange)?;
        }
        reader.totals_of_forgotten(begin, &mut batch)?;
        batch.rates = reader.rates.into_values().collect();
        Ok(batch)
    }

    /// Moves the cursor past the rows that retention has deleted or is deleting, and adds the daily totals instead.
    ///
    /// Retention waits for the reader, so this concerns a reader that was restored to an earlier day or that began
    /// later. Remaining rows of an unfinished deletion are in those totals too, and must not be sent after them.
    fn skip_taken(&self, reader: &mut Reader<'_>, batch: &mut ShipBatch) -> Result<(), Error> {
        let (snapshot, next) = (reader.snapshot, &mut batch.next);
        let exchange = file::compacted(snapshot, &EXCHANGE)?.entered;
        let energy = file::compacted(snapshot, &ENERGY)?.entered;
        if exchange <= next.exchange && energy <= next.energy {
            return Ok(());
        }
        // Rows entered since the deletion began would be counted twice: in the totals, and as rows of a later batch.
        let whole = file::table_digest(snapshot, &EXCHANGE)?.entered == exchange
            && file::table_digest(snapshot, &ENERGY)?.entered == energy;
        if whole {
            batch.usage = reader.daily_totals(Class::Usage, |_| true)?;
        }
        batch.taken = (exchange - next.exchange).max(0).unsigned_abs();
        if batch.taken > 0 {
            let Range { since_us, until_us } = Range::of_month(&batch.calendar, self.file.month);
            let gap = Gap {
                lost_rows: Some(batch.taken),
                totals_kept: whole,
                ..Gap::unknown(since_us, until_us - 1, "retention")
            };
            // The same gap gets the same number again, and none that a gap of the file has.
            batch.gaps.push((-1 - next.exchange, gap));
        }
        next.exchange = next.exchange.max(exchange);
        next.energy = next.energy.max(energy);
        Ok(())
    }
}

/// Reads from a snapshot, and collects the rates to which the rows refer.
struct Reader<'a> {
    snapshot: &'a Connection,
    limit: usize,
    forgotten: &'a BTreeSet<Month>,
    /// The SQL condition that excludes forgotten months, to be appended to another one.
    kept: String,
    rates: BTreeMap<[u8; 16], Arc<Rate>>,
}

impl Reader<'_> {
    fn rows(&mut self, after: &mut i64) -> Result<Vec<(i64, Row)>, Error> {
        let (snapshot, mut rows) = (self.snapshot, Vec::new());
        let rates = &mut self.rates;
        let mut reader = RowReader::with_rates(|id| rate(snapshot, rates, id));
        each(snapshot, &EXCHANGE, &self.kept, after, self.limit, |values| {
            rows.push((seq(values)?, values::read(values, &mut reader)?));
            Ok(())
        })?;
        drop(reader);
        self.pass_over(&EXCHANGE, rows.len(), after)?;
        Ok(rows)
    }

    /// Moves a cursor to the end of a table if a read found fewer rows than the limit: the others are of forgotten
    /// months, and the cursor must not stay before them.
    fn pass_over(&self, table: &Table, rows: usize, after: &mut i64) -> Result<(), Error> {
        if rows < self.limit && !self.forgotten.is_empty() {
            *after = (*after).max(file::table_digest(self.snapshot, table)?.entered);
        }
        Ok(())
    }

    /// Adds the daily totals of forgotten months, if the batch skips rows of them.
    fn totals_of_forgotten(&mut self, begin: Cursor, batch: &mut ShipBatch) -> Result<(), Error> {
        let forgotten = self.forgotten;
        if forgotten.is_empty() || !batch.usage.is_empty() {
            return Ok(());
        }
        let mut passed = false;
        for (table, from, to) in
            [(&*EXCHANGE, begin.exchange, batch.next.exchange), (&*ENERGY, begin.energy, batch.next.energy)]
        {
            let sql = format!(
                "SELECT EXISTS (SELECT 1 FROM {} WHERE seq > ?1 AND seq <= ?2 AND NOT (TRUE {}))",
                table.name, self.kept
            );
            passed |= self.snapshot.query_row(&sql, [from, to], |row| row.get::<_, bool>(0))?;
        }
        if passed {
            batch.usage =
                self.daily_totals(Class::Usage, |line| forgotten.contains(&month::of_day(line.key.day)))?;
        }
        Ok(())
    }

    /// Reads the tables other than `exchange`.
    fn rest(&mut self, batch: &mut ShipBatch) -> Result<(), Error> {
        let (snapshot, limit) = (self.snapshot, self.limit);
        let (next, reader) = (&mut batch.next, &mut RowReader::new());
        each(snapshot, &ENERGY, &self.kept, &mut next.energy, limit, |values| {
            batch.energy_seqs.push(seq(values)?);
            batch.energy.push(values::read(values, reader)?);
            Ok(())
        })?;
        each(snapshot, &ACT, "", &mut next.act, limit, |values| {
            batch.acts.push((seq(values)?, values::read(values, reader)?));
            Ok(())
        })?;
        each(snapshot, &CORRECTION, "", &mut next.correction, limit, |values| {
            batch.correction_seqs.push(seq(values)?);
            batch.corrections.push(values::read(values, reader)?);
            Ok(())
        })?;
        each(snapshot, &GAP, "", &mut next.gap, limit, |values| {
            batch.gaps.push((seq(values)?, values::read(values, reader)?));
            Ok(())
        })?;
        file::whole(snapshot, &DEVICE, |values| {
            batch.devices.push(values::read(values, reader)?);
            Ok(())
        })?;
        self.pass_over(&ENERGY, batch.energy.len(), &mut batch.next.energy)?;
        batch.shed = self.daily_totals(Class::Shed, |_| true)?;
        let of_energy = batch.energy.iter().filter_map(|energy| energy.key.as_ref()?.rate);
        let of_corrections = batch.corrections.iter().filter_map(|made| made.correction.line.key.rate);
        for id in of_energy.chain(of_corrections) {
            rate(snapshot, &mut self.rates, &id)?;
        }
        Ok(())
    }

    /// Returns the daily totals of a class that meet a condition, and collects their rates.
    fn daily_totals(
        &mut self,
        class: Class,
        is_wanted: impl Fn(&DailyTotal) -> bool,
    ) -> Result<Vec<DailyTotal>, Error> {
        let (mut lines, mut reader) = (Vec::<DailyTotal>::new(), RowReader::new());
        LINE.each(self.snapshot, &format!("WHERE class = '{}'", class.name()), &[], |values, _| {
            let line = values::read(values, &mut reader)?;
            if is_wanted(&line) {
                lines.push(line);
            }
            Ok(())
        })?;
        for id in lines.iter().filter_map(|line| line.key.rate) {
            rate(self.snapshot, &mut self.rates, &id)?;
        }
        Ok(lines)
    }
}

/// Reads the rows of a table after a number, and moves the number with them. `condition` begins with AND or is empty.
fn each(
    snapshot: &Connection,
    table: &Table,
    condition: &str,
    after: &mut i64,
    limit: usize,
    mut one: impl FnMut(&[ValueRef<'_>]) -> Result<(), Error>,
) -> Result<(), Error> {
    let rest = format!("WHERE seq > ? {condition} ORDER BY seq LIMIT ?");
    let bounds = [*after, i64::try_from(limit).unwrap_or(i64::MAX)];
    table.each(snapshot, &rest, &bounds, |values, _| {
        one(values)?;
        *after = seq(values)?;
        Ok(())
    })
}

/// Returns the SQL condition that excludes forgotten months, to be appended to another one.
fn kept(forgotten: &BTreeSet<Month>, calendar: &Calendar) -> String {
    let without = |month: &Month| {
        let Range { since_us, until_us } = Range::of_month(calendar, *month);
        format!("AND NOT (ended_us >= {since_us} AND ended_us < {until_us}) ")
    };
    forgotten.iter().map(without).collect()
}

/// Returns the number of a row.
fn seq(values: &[ValueRef<'_>]) -> Result<i64, Error> {
    values[0].as_i64().map_err(|_| Error::corrupt("a row has no number"))
}

fn rate(
    snapshot: &Connection,
    known: &mut BTreeMap<[u8; 16], Arc<Rate>>,
    id: &[u8; 16],
) -> Result<Option<Arc<Rate>>, Error> {
    if let Some(rate) = known.get(id) {
        return Ok(Some(Arc::clone(rate)));
    }
    let mut statement = snapshot.prepare(RATE.select_one())?;
    let mut rows = statement.query([&id[..]])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let (values, _) = RATE.read(row, &mut Vec::new())?;
    let rate = Arc::new(values::read::<Rate>(&values, &mut RowReader::new())?);
    known.insert(*id, Arc::clone(&rate));
    Ok(Some(rate))
}

fn behind(connection: &Connection, exchange: i64) -> Result<u64, Error> {
    Ok(connection.query_row(COUNT, [exchange], |row| row.get::<_, i64>(0))?.unsigned_abs())
}

const COUNT: &str = "SELECT count(*) FROM exchange WHERE seq > ?1";
const FIRST: &str = "SELECT ended_us FROM exchange WHERE seq > ?1 ORDER BY seq LIMIT 1";

#[cfg(test)]
#[path = "export_tests.rs"]
mod tests;
