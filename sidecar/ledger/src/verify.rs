//! Verification: reads, sums and hashes all of a ledger again.
//!
//! Laws: no stored sum or digest is trusted. Daily totals are computed from rows, table digests from columns, and
//! every difference is reported with its place. Rows are read in many short transactions, so that the log of a file
//! that is written meanwhile can be checkpointed. Only the last transaction reads the newest rows together with the
//! daily totals, because the two can be compared in one snapshot only.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use price::Rate;
use rusqlite::Connection;
use rusqlite::types::ValueRef;
use text::{money, nano};

use crate::absent_months::AbsentMonths;
use crate::column::RowReader;
use crate::difference::Difference;
use crate::energy::Energy;
use crate::error::Error;
use crate::file::{self, File, TableDigest};
use crate::period;
use crate::progress::{OnProgress, Progress};
use crate::schema::SCHEMA;
use crate::seen_files::SeenFiles;
use crate::sign_off::SignOff;
use crate::source::{MadeCorrection, Month};
use crate::table::{self, ACT, CORRECTION, DEVICE, Digest, ENERGY, EXCHANGE, GAP, LINE, RATE, Table};
use crate::values;
use crate::{Class, DailyTotal, Row, Sums, TotalKey};
use crate::{check, digest, files, month};

/// The most rows of each table that one transaction reads, in a fraction of a second.
const STEP_ROWS: i64 = 20_000;

/// The most differences of one kind that are listed; the others are counted.
const MAX_LISTED: usize = 20;

/// The result for one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The month.
    pub month: Option<Month>,
    /// The file.
    pub path: PathBuf,
    /// The number of exchanges read.
    pub rows: u64,
    /// The digest, if the month is closed.
    pub digest: Option<String>,
    /// The differences; empty if there are none.
    pub differences: Vec<Difference>,
}

/// Verifies a ledger or one month of it, also while it is written.
///
/// # Errors
/// If there is no such ledger or month.
pub fn verify(path: &Path, only: Option<Month>) -> Result<Vec<Verdict>, Error> {
    verify_with(path, only, &|_| ())
}

/// Verifies as [`verify`], and reports the progress of each file.
///
/// # Errors
/// As [`verify`].
pub fn verify_with(
    path: &Path,
    only: Option<Month>,
    on_progress: &OnProgress<'_>,
) -> Result<Vec<Verdict>, Error> {
    let mut verdicts = Vec::new();
    let mut missing = AbsentMonths::new(path).map_err(|error| Error::from(error).of(path.display()))?;
    let mut previous: Option<(Month, Digest)> = None;
    let mut once = SeenFiles::default();
    files::is_whole(path).map_err(|error| Error::from(error).of(path.display()))?;
    for name in files::list(path).map_err(|error| Error::from(error).of(path.display()))? {
        let mut verdict =
            Verdict { month: None, path: name.clone(), rows: 0, digest: None, differences: Vec::new() };
        let closed = match File::open_read(&name) {
            Ok(file) => {
                verdict.month = Some(file.month);
                missing.read(&file);
                let twice = once.see(&file).err().map(|error| Difference::Duplicate(error.message));
                verdict.differences.extend(twice);
                let wanted = only.is_none_or(|month| month == file.month);
                if !wanted && file::number(&file.connection, "closed_us").is_ok_and(|closed| closed.is_none())
                {
                    continue;
                }
                let closed =
                    verify_file(path, &file, previous.as_ref(), &mut verdict, wanted.then_some(on_progress));
                closed.unwrap_or_else(|error| {
                    verdict.differences.push(Difference::Contents(error.message));
                    None
                })
            }
            Err(error) => {
                verdict.differences.push(Difference::Contents(error.message));
                None
            }
        };
        if let (Some(month), Some(digest)) = (verdict.month, closed) {
            verdict.digest = Some(digest::hex(&digest));
            previous = Some((month, digest));
        }
        if only.is_none() || verdict.month.is_none() || verdict.month == only {
            verdicts.push(verdict);
        }
    }
    verdicts.extend(gone(path, &missing).filter(|gone| only.is_none() || gone.month == only));
    if let Some(wanted) = only.filter(|wanted| !verdicts.iter().any(|verdict| verdict.month == Some(*wanted)))
    {
        return Err(Error::new(
            crate::Fault::Other,
            format!("{}: there is no file of {}", path.display(), month::name(wanted)),
        ));
    }
    if verdicts.is_empty() {
        return Err(Error::new(
            crate::Fault::Other,
            format!("{}: there is no ledger here: check the path", path.display()),
        ));
    }
    Ok(verdicts)
}

/// Returns a verdict for each absent month.
fn gone(path: &Path, missing: &AbsentMonths) -> impl Iterator<Item = Verdict> {
    missing.named().map(move |(month, why)| Verdict {
        month: Some(month),
        path: files::of_month(path, month),
        rows: 0,
        digest: None,
        differences: vec![Difference::Absent(why)],
    })
}

/// Verifies one file, if its progress is wanted. Returns the digest with which it was closed, on which the next month's
/// depends.
fn verify_file(
    path: &Path,
    file: &File,
    previous: Option<&(Month, Digest)>,
    verdict: &mut Verdict,
    wanted: Option<&OnProgress<'_>>,
) -> Result<Option<Digest>, Error> {
    let connection = &file.connection;
    let closed = match file::bytes(connection, "digest")? {
        Some(digest) => {
            Some(Digest::try_from(digest).map_err(|_| Error::corrupt("the digest has the wrong length"))?)
        }
        None => None,
    };
    let Some(on_progress) = wanted else { return Ok(closed) };
    let found = contents(file, on_progress)?;
    verdict.rows = found.rows;
    verdict.differences.extend(found.differences.into_iter().map(Difference::Contents));
    if let Some(stored) = &closed {
        let before = file::bytes(connection, "previous")?;
        if before.as_deref() != previous.map(|(_, digest)| &digest[..]) {
            verdict.differences.push(Difference::Previous(previous.map(|(month, _)| *month)));
        }
        let before = before.and_then(|digest| Digest::try_from(digest).ok());
        match digest::month(connection, file.month, before.as_ref()) {
            Ok(made) if made == *stored => {}
            Ok(computed) => {
                verdict.differences.push(Difference::Digest { computed, closed: *stored });
            }
            Err(error) => verdict.differences.push(Difference::Contents(error.message)),
        }
        let signed = files::sign_off(path, file.month);
        match SignOff::of(connection, &file.path) {
            Ok(sign_off) => verdict.differences.extend(sign_off.differs_from(&signed)),
            Err(error) => verdict.differences.push(Difference::Contents(error.message)),
        }
    }
    Ok(closed)
}

/// The result of reading one file.
pub(crate) struct Contents {
    /// The number of exchanges read.
    pub(crate) rows: u64,
    /// The differences from what was written; empty if there are none.
    pub(crate) differences: Vec<String>,
}

/// Reads one file and checks it by itself, without the others.
pub(crate) fn contents(file: &File, on_progress: &OnProgress<'_>) -> Result<Contents, Error> {
    contents_by(file, STEP_ROWS, &mut |progress| on_progress(progress))
}

/// Reads one file in steps, between which no transaction is open. `between` is called there.
fn contents_by(file: &File, step_rows: i64, between: &mut dyn FnMut(Progress)) -> Result<Contents, Error> {
    let progress =
        Progress { step: "checking pages", month: Some(file.month), done_rows: 0, total_rows: None };
    let mut differences = Vec::new();
    let mut note = |result: Result<(), Error>| differences.extend(result.err().map(|error| error.message));
    note(match check::lacks_log(file) {
        Ok(true) => Err(Error::corrupt(check::LACKS_LOG)),
        other => other.map(|_| ()),
    });
    note(SCHEMA.check(&file.connection));
    let is_long = check::is_long_and_written(file)?;
    if !is_long {
        between(progress);
        note(check::pages(file, "integrity_check"));
    }
    let mut sums = Recount { by_id: is_long, ..Recount::default() };
    let progress = Progress { step: "reading rows", total_rows: rows_of(file), ..progress };
    let mut read = Ok(true);
    while let Ok(true) = read {
        let snapshot = file.connection.unchecked_transaction()?;
        read = sums.step(&snapshot, step_rows);
        drop(snapshot);
        between(Progress { done_rows: sums.read_rows(), ..progress });
    }
    let snapshot = file.connection.unchecked_transaction()?;
    for table in [&*DEVICE, &*ACT, &*GAP] {
        note(file::whole(&snapshot, table, |_| Ok(())).map(|_| ()));
    }
    note(match file::days(&snapshot) {
        Ok(days) if file::days_of_lines(&snapshot)? != days => {
            Err(Error::corrupt("the days that it states are not those of its daily totals"))
        }
        other => other.map(|_| ()),
    });
    let compared = read.and_then(|_| sums.end(&snapshot));
    // Changed rows come first, then the differences that follow from them.
    differences.extend(sums.errors.messages());
    match compared {
        Err(error) => {
            differences.push(error.message);
            differences.push("so its daily totals were not compared with its rows".to_owned());
        }
        // The rows were deleted by retention. The daily totals still have their table digest.
        Ok(()) if sums.compacted => {}
        Ok(()) => differences.extend(sums.differences()),
    }
    Ok(Contents { rows: sums.rows, differences })
}

/// Returns the number of numbered rows ever entered into a file; `None` if it cannot be read, which is an error later.
fn rows_of(file: &File) -> Option<u64> {
    let tables = [&*EXCHANGE, &*ENERGY, &*CORRECTION];
    let entered = tables.map(|table| file::table_digest(&file.connection, table).map(|found| found.entered));
    entered.into_iter().sum::<Result<i64, Error>>().ok()?.try_into().ok()
}

/// Errors of rows: the first few, and the number of the others.
#[derive(Default)]
struct RowErrors {
    listed: Vec<String>,
    more: u64,
}

impl RowErrors {
    fn add(&mut self, error: Error) {
        match self.listed.len() < MAX_LISTED {
            true => self.listed.push(error.message),
            false => self.more += 1,
        }
    }

    fn messages(&self) -> impl Iterator<Item = String> {
        let more = (self.more > 0).then(|| format!("and {} more such rows", self.more));
        self.listed.iter().cloned().chain(more)
    }
}

/// The position in a table of numbered rows.
struct TablePosition {
    /// The number of the last row read.
    seq: i64,
    /// The table digest of the rows up to that.
    found: TableDigest,
    /// The number of rows whose checksum is wrong.
    changed: u64,
}

impl Default for TablePosition {
    fn default() -> Self {
        Self { seq: 0, found: TableDigest::NEW, changed: 0 }
    }
}

impl TablePosition {
    /// Reads at most `rows` more rows. Returns true if there were any. `by_id`: each must be found by its id too.
    fn step(
        &mut self,
        connection: &Connection,
        table: &'static Table,
        rows: i64,
        by_id: bool,
        errors: &mut RowErrors,
        mut each: impl FnMut(&[ValueRef<'_>]) -> Result<(), Error>,
    ) -> Result<bool, Error> {
        // Retention may delete rows between two steps. The chain goes on from their stored digest.
        let deleted = file::compacted(connection, table)?;
        if deleted.entered > self.found.entered {
            (self.seq, self.found) = (deleted.entered, deleted);
        }
        let mut any = false;
        let next = [self.seq, rows];
        let mut find = connection.prepare(&format!("SELECT seq FROM {} WHERE id = ?", table.name))?;
        table.each_as_it_is(
            connection,
            "WHERE seq > ? ORDER BY seq LIMIT ?",
            &next,
            |values, digest, right| {
                any = true;
                self.seq = number(values[0])?;
                self.found.count(table, digest);
                if !right {
                    self.changed += 1;
                    errors.add(table.changed(values));
                }
                if by_id {
                    table::bind(&mut find, &values[1..2])?;
                    let found = find.raw_query().next()?.map(|row| row.get(0)).transpose()?;
                    if found != Some(self.seq) {
                        let message =
                            format!("row {} of the table {} is not found by its id", self.seq, table.name);
                        errors.add(Error::corrupt(message));
                    }
                }
                each(values).unwrap_or_else(|error| errors.add(error));
                Ok(())
            },
        )?;
        Ok(any)
    }

    /// Compares the table digest of all rows read with the stored one.
    fn end(&self, connection: &Connection, table: &Table, errors: &mut RowErrors) -> Result<(), Error> {
        let expected = file::table_digest(connection, table)?;
        // A changed row, reported by its checksum, also changes the digest: only the count still says something new.
        if self.found.entered != expected.entered || (self.found != expected && self.changed == 0) {
            errors.add(file::digest_difference(table, &self.found, &expected));
        }
        Ok(())
    }
}

/// The stored daily totals, and those computed from rows.
#[derive(Default)]
struct Recount {
    /// True if each row is looked up by its id, because SQLite's own check, which compares indexes, would take too
    /// long.
    by_id: bool,
    rows: u64,
    /// True if retention has deleted rows, so that the totals cannot be computed.
    compacted: bool,
    errors: RowErrors,
    exchanges: TablePosition,
    energies: TablePosition,
    corrections: TablePosition,
    rates: HashMap<[u8; 16], Arc<Rate>>,
    /// The totals computed from rows.
    made: BTreeMap<TotalKey, Sums>,
    stored: BTreeMap<TotalKey, Sums>,
    /// The rates to which stored totals refer.
    named: BTreeSet<[u8; 16]>,
}

impl Recount {
    /// Reads at most `rows` further rows of each table. Returns true if there were any.
    fn step(&mut self, connection: &Connection, rows: i64) -> Result<bool, Error> {
        self.read_rates(connection)?;
        self.compacted = file::compacted(connection, &EXCHANGE)?.entered > 0;
        let Self { errors, made, compacted, rates, by_id, .. } = self;
        let mut find = connection.prepare(&format!("{} WHERE id = ?", EXCHANGE.select()))?;
        let mut reader = RowReader::with_rates(|id| Ok(rates.get(id).cloned()));
        let mut any = self.exchanges.step(connection, &EXCHANGE, rows, *by_id, errors, |values| {
            self.rows += 1;
            let row: Row = values::read(values, &mut reader)?;
            made.entry(TotalKey::of_row(&row, Class::Usage)).or_default().add_row(&row);
            Ok(())
        })?;
        let mut scratch = Vec::new();
        any |= self.energies.step(connection, &ENERGY, rows, *by_id, errors, |values| {
            let energy: Energy = values::read(values, &mut reader)?;
            let key = match energy.key {
                Some(key) => key,
                None => {
                    table::bind(&mut find, &[values[1]])?;
                    let mut found = find.raw_query();
                    let Some(row) = found.next()? else {
                        if *compacted {
                            return Ok(());
                        }
                        return Err(Error::corrupt("the exchange of an energy row is missing"));
                    };
                    let (values, ..) = EXCHANGE.read_as_it_is(row, &mut scratch)?;
                    TotalKey::of_row(&values::read(&values, &mut reader)?, energy.class)
                }
            };
            made.entry(key).or_default().add_used(&energy.used, energy.role);
            Ok(())
        })?;
        any |= self.corrections.step(connection, &CORRECTION, rows, *by_id, errors, |values| {
            let line = values::read::<MadeCorrection>(values, &mut reader)?.correction.line;
            made.entry(line.key).or_default().add(&line.sums);
            Ok(())
        })?;
        Ok(any)
    }

    /// Returns the number of rows up to the positions; deleted ones count as read.
    fn read_rows(&self) -> u64 {
        [&self.exchanges, &self.energies, &self.corrections]
            .map(|table| u64::try_from(table.found.entered).unwrap_or(0))
            .iter()
            .sum()
    }

    /// Reads the rows entered meanwhile and the stored totals, all in one snapshot.
    fn end(&mut self, connection: &Connection) -> Result<(), Error> {
        while self.step(connection, STEP_ROWS)? {}
        let Self { errors, exchanges, energies, corrections, .. } = self;
        exchanges.end(connection, &EXCHANGE, errors)?;
        energies.end(connection, &ENERGY, errors)?;
        corrections.end(connection, &CORRECTION, errors)?;
        let mut reader = RowReader::new();
        file::whole(connection, &LINE, |values| {
            let line: DailyTotal = values::read(values, &mut reader)?;
            self.named.extend(line.key.rate);
            self.stored.insert(line.key, line.sums);
            Ok(())
        })?;
        Ok(())
    }

    /// Reads the rates again if some were entered since.
    fn read_rates(&mut self, connection: &Connection) -> Result<(), Error> {
        let entered = file::table_digest(connection, &RATE)?.entered;
        if i64::try_from(self.rates.len()).is_ok_and(|read| read == entered) {
            return Ok(());
        }
        let mut reader = RowReader::new();
        file::whole(connection, &RATE, |values| {
            let rate: Rate = values::read(values, &mut reader)?;
            self.rates.insert(rate.id, Arc::new(rate));
            Ok(())
        })?;
        Ok(())
    }

    fn differences(&self) -> Vec<String> {
        let mut differences = Vec::new();
        let keys: BTreeSet<&TotalKey> = self.made.keys().chain(self.stored.keys()).collect();
        // Overflow totals have no rows; only their table digest protects them.
        let keys = keys.into_iter().filter(|key| key.class != Class::Shed);
        for key in keys {
            let (made, stored) = (self.made.get(key), self.stored.get(key));
            if made != stored {
                let rate = key.rate.and_then(|rate| self.rates.get(&rate));
                let text = difference(key, rate.map(|rate| rate.currency.code()), made, stored);
                differences.push(match self.errors.listed.is_empty() {
                    true => text,
                    false => format!("so {text}"),
                });
            }
        }
        let missing = self.named.iter().filter(|rate| !self.rates.contains_key(*rate)).count();
        if missing > 0 {
            differences.push(match missing {
                1 => "the rate of 1 daily total is absent".to_owned(),
                _ => format!("the rates of {missing} daily totals are absent"),
            });
        }
        let more = differences.len().saturating_sub(MAX_LISTED);
        if more > 0 {
            differences.truncate(MAX_LISTED);
            differences.push(format!("and {more} more such daily totals"));
        }
        differences
    }
}

fn number(value: ValueRef<'_>) -> Result<i64, Error> {
    value.as_i64().map_err(|_| Error::corrupt("a row has no number"))
}

/// Describes the difference between a stored daily total and the sum of its rows, each `None` if absent.
pub fn line_difference(
    currency: Option<&str>,
    made: Option<&DailyTotal>,
    stored: Option<&DailyTotal>,
) -> Option<String> {
    let key = &stored.or(made)?.key;
    Some(difference(key, currency, made.map(|total| &total.sums), stored.map(|total| &total.sums)))
}

fn difference(key: &TotalKey, currency: Option<&str>, made: Option<&Sums>, stored: Option<&Sums>) -> String {
    let text = |sums: Option<&Sums>| match sums {
        None => "nothing".to_owned(),
        Some(sums) => format!(
            "{} exchanges, {} tokens, {}, {} s of GPU time",
            sums.exchanges,
            sums.tokens.iter().map(|count| u128::from(*count)).sum::<u128>(),
            match currency {
                Some(code) => format!("{} {code}", money(sums.cost_pico)),
                None => "no price".to_owned(),
            },
            nano(sums.gpu.gpu_ns)
        ),
    };
    format!(
        "the daily total of class {} of {}, tenant {:?}, model {:?} ({}) has {}; its rows sum to {}",
        key.class.name(),
        period::day(key.day),
        key.tenant,
        key.model,
        key.ending,
        text(stored),
        text(made)
    )
}

#[cfg(test)]
#[path = "verify_tests.rs"]
mod tests;
