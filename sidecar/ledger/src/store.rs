//! The store of a ledger's files, read together, also while a proxy writes them.
//!
//! Laws: nothing is written. Data that differs from what was written is an error with the file's name, never a wrong
//! sum. A file that cannot be read is an error only for ranges of which it may have something: the days of its month,
//! and late rows and corrections of earlier ones.

use std::cell::Cell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use meter::ExchangeId;
use price::Rate;
use rusqlite::Connection;

use crate::absent_months::AbsentMonths;
use crate::column::RowReader;
use crate::energy::Energy;
use crate::error::Error;
use crate::file::{self, File};
use crate::files;
use crate::seen_files::SeenFiles;
use crate::ships_to::SHIPS_TO;
use crate::source::{
    Closure, Correction, DeviceTotal, Gap, Gone, MadeCorrection, Month, Range, Source, SourceError, Used,
};
use crate::table::{CORRECTION, DEVICE, ENERGY, EXCHANGE, GAP, LINE, RATE};
use crate::values;
use crate::{Calendar, Class, DailyTotal, Row, check, digest, folder, lock, month};

/// All files of a ledger. A file that a proxy writes is read in the state that it had when it was opened.
#[derive(Debug)]
pub struct Store {
    /// The ledger's path; `None` for a single file.
    path: Option<PathBuf>,
    files: Vec<File>,
    unread: Vec<Unread>,
    calendar: Calendar,
}

/// A file of a month that cannot be read.
#[derive(Debug)]
struct Unread {
    month: Month,
    error: Error,
}

impl Store {
    /// Opens a ledger for reading: `X.db` and every `X-2026-10.db` beside it. A past month's file that cannot be read
    /// is an error only of a later query of which it may have something.
    ///
    /// # Errors
    /// If there is no such ledger, if its open file, which may be of any month, cannot be read or is damaged, or if
    /// one file is there under two names.
    pub fn open_read(path: &Path) -> Result<Self, Error> {
        let (mut files, mut unread, mut once) = (Vec::new(), Vec::new(), SeenFiles::default());
        let found = folder::open_each(path)?;
        let calendar = folder::zones(path, &found)?;
        for (name, opened) in found {
            if let Ok(file) = &opened {
                once.see(file)?;
            }
            let named = name.file_name().and_then(|name| files::month_in(path, name.to_str()?));
            // Rates are read without a range, so a file with damaged rates counts as unreadable.
            let opened = opened.and_then(|file| {
                rates(&file.connection).map_err(|error| error.of(name.display()))?;
                Ok(file)
            });
            match (opened, named) {
                (Ok(file), _) => files.push(file),
                (Err(error), Some(month)) => unread.push(Unread { month, error: left_out(error) }),
                (Err(error), None) => return Err(error),
            }
        }
        Ok(Self { path: Some(path.to_owned()), files, unread, calendar })
    }

    /// Opens each file of a ledger by itself, for a caller that uses the readable files without the others.
    ///
    /// # Errors
    /// If there is no such ledger.
    pub fn open_each(path: &Path) -> Result<Vec<Result<Self, Error>>, Error> {
        let found = folder::open_each(path)?;
        // The calendar of the whole ledger: its zones come from all files that can be read.
        let calendar = folder::zones(path, &found)?;
        let alone =
            |file| Self { path: None, files: vec![file], unread: Vec::new(), calendar: calendar.clone() };
        Ok(found.into_iter().map(|(_, opened)| opened.map(alone)).collect())
    }

    /// Checks that no unreadable file may have something of a range: a month's file has the days of its month, and
    /// late rows and corrections of earlier months.
    fn has_all(&self, range: &Range) -> Result<(), Error> {
        match self
            .unread
            .iter()
            .find(|unread| range.since_us < self.calendar.month_begin_us(unread.month + 1))
        {
            Some(unread) => Err(unread.error.clone()),
            None => Ok(()),
        }
    }

    /// Returns the readable months, each with its file.
    pub fn months(&self) -> impl Iterator<Item = (Month, &Path)> {
        self.files.iter().map(|file| (file.month, file.path.as_path()))
    }

    /// Calls `each` with every file. `handed_over` is set once a value of the file was handed over: a file that fails
    /// before that can be left out of a report on later months; afterwards the report would have a part of it.
    fn within_range(
        &self,
        range: &Range,
        handed_over: &Cell<bool>,
        mut each: impl FnMut(Month, &Connection) -> Result<(), SourceError>,
    ) -> Result<(), SourceError> {
        self.has_all(range)?;
        for file in &self.files {
            handed_over.set(false);
            match self.within_file(file, &mut each) {
                // It is of a month before the range, and none of its values is in the report.
                Err(error)
                    if error.is::<Error>()
                        && !handed_over.get()
                        && self.calendar.month_begin_us(file.month + 1) <= range.since_us =>
                {
                    tracing::warn!("a file of an earlier month is left out of a report: {error}");
                }
                other => other?,
            }
        }
        Ok(())
    }

    /// Reads the rows of this range by a clause whose values are the last row without details and the range.
    fn selected<E>(&self, range: &Range, clause: &str, each: &mut E) -> Result<(), SourceError>
    where
        E: FnMut(Month, &Row, Option<&Used>) -> Result<(), SourceError> + ?Sized,
    {
        let handed_over = Cell::new(false);
        self.within_days(range, &handed_over, |month, connection| {
            let rates = rates(connection)?;
            let mut reader = RowReader::with_rates(|id| Ok(rates.get(id).cloned()));
            let mut call = Call { each: &mut *each, handed_over: &handed_over, error: None };
            let gone = file::compacted(connection, &EXCHANGE)?.entered;
            let bounds = [gone, range.since_us, range.until_us];
            let result = EXCHANGE.each(connection, clause, &bounds, |values, _| {
                let row: Row = values::read(values, &mut reader)?;
                let used = used_of(connection, &row.id, &mut reader)?;
                call.of(|each| each(month, &row, used.as_ref()))
            });
            call.end(result)
        })
    }

    /// Calls `each` with every file that has daily totals of a range's days: the others have neither rows nor
    /// corrections of them.
    fn within_days(
        &self,
        range: &Range,
        handed_over: &Cell<bool>,
        mut each: impl FnMut(Month, &Connection) -> Result<(), SourceError>,
    ) -> Result<(), SourceError> {
        let wanted = range.days(&self.calendar);
        self.within_range(range, handed_over, |month, connection| match file::days(connection)? {
            Some(has) if has.end() < wanted.start() || wanted.end() < has.start() => Ok(()),
            _ => each(month, connection),
        })
    }

    /// Returns the row of the exchange of a first price, as [`Source::rows`] hands it over, if it is still stored.
    fn unpriced_row(
        &self,
        correction: &Correction,
        reader: &mut RowReader<'_>,
    ) -> Result<Option<(Month, Row, Option<Used>)>, Error> {
        let own = month::of_day(correction.line.key.day);
        // A row that came late is in the file of another month.
        let (of_it, others): (Vec<_>, Vec<_>) = self.files.iter().partition(|file| file.month == own);
        for file in of_it.into_iter().chain(others) {
            let find = format!("{} WHERE id = ?", EXCHANGE.select());
            let mut find = file.connection.prepare_cached(&find)?;
            let mut found = find.query([&correction.exchange.0[..]])?;
            let Some(found) = found.next()? else { continue };
            let (values, _) = EXCHANGE.read(found, &mut Vec::new())?;
            let row = values::read(&values, reader)?;
            return Ok(Some((file.month, row, used_of(&file.connection, &correction.exchange, reader)?)));
        }
        Ok(None)
    }

    /// Calls `each` with every file.
    fn within(
        &self,
        mut each: impl FnMut(Month, &Connection) -> Result<(), SourceError>,
    ) -> Result<(), SourceError> {
        self.files.iter().try_for_each(|file| self.within_file(file, &mut each))
    }

    fn within_file(
        &self,
        file: &File,
        each: &mut impl FnMut(Month, &Connection) -> Result<(), SourceError>,
    ) -> Result<(), SourceError> {
        let snapshot = file.connection.is_autocommit().then(|| file.connection.unchecked_transaction());
        let _snapshot = snapshot.transpose().map_err(|error| named(&file.path, error))?;
        each(file.month, &file.connection).map_err(|error| match error.downcast::<Error>() {
            Ok(error) => Box::new(error.of(file.path.display())),
            Err(other) => other,
        })
    }
}

fn named(path: &Path, error: impl Into<Error>) -> Error {
    error.into().of(path.display())
}

/// Returns the error with the remedy for a month that is needed and cannot be read.
fn left_out(error: Error) -> Error {
    let message = format!(
        "{}; restore it from a backup, ask for a time after its month, or move it out of the ledger's folder \
         for reports without it",
        error.message
    );
    Error { message, ..error }
}

/// A callback whose error passes through functions that return [`Error`] and comes out unchanged.
struct Call<'a, T: ?Sized> {
    each: &'a mut T,
    handed_over: &'a Cell<bool>,
    error: Option<SourceError>,
}

impl<T: ?Sized> Call<'_, T> {
    fn of(&mut self, call: impl FnOnce(&mut T) -> Result<(), SourceError>) -> Result<(), Error> {
        self.handed_over.set(true);
        call(self.each).map_err(|error| {
            let stop = Error::new(crate::error::Fault::Other, "the reader stopped");
            self.error = Some(error);
            stop
        })
    }

    fn end(self, result: Result<(), Error>) -> Result<(), SourceError> {
        match self.error {
            Some(error) => Err(error),
            None => Ok(result?),
        }
    }
}

/// Returns every rate of a file, by its id.
fn rates(connection: &Connection) -> Result<HashMap<[u8; 16], Arc<Rate>>, Error> {
    let (mut rates, mut reader) = (HashMap::new(), RowReader::new());
    file::whole(connection, &RATE, |values| {
        let rate: Rate = values::read(values, &mut reader)?;
        rates.insert(rate.id, Arc::new(rate));
        Ok(())
    })?;
    Ok(rates)
}

/// Returns the GPU use of an exchange of a file, if it is known.
fn used_of(
    connection: &Connection,
    id: &ExchangeId,
    reader: &mut RowReader<'_>,
) -> Result<Option<Used>, Error> {
    let mut find = connection.prepare_cached(&format!("{} WHERE id = ?", ENERGY.select()))?;
    let mut found = find.query([&id.0[..]])?;
    let Some(found) = found.next()? else { return Ok(None) };
    let (values, _) = ENERGY.read(found, &mut Vec::new())?;
    Ok(Some(values::read::<Energy>(&values, reader)?.used))
}

impl Source for Store {
    fn calendar(&self) -> Calendar {
        self.calendar.clone()
    }

    fn ships_to(&self) -> Result<Option<String>, SourceError> {
        let Some(newest) = self.files.last() else { return Ok(None) };
        Ok(file::text(&newest.connection, SHIPS_TO)?)
    }

    fn daily_totals(
        &self,
        range: &Range,
        each: &mut dyn FnMut(Month, &DailyTotal) -> Result<(), SourceError>,
    ) -> Result<(), SourceError> {
        let (days, mut reader, handed_over) =
            (range.days(&self.calendar), RowReader::new(), Cell::new(false));
        self.within_days(range, &handed_over, |month, connection| {
            let mut call = Call { each: &mut *each, handed_over: &handed_over, error: None };
            // The whole table is read even for one day: only its digest shows that a total is absent.
            let result = file::whole(connection, &LINE, |values| {
                let line: DailyTotal = values::read(values, &mut reader)?;
                if days.contains(&line.key.day) { call.of(|each| each(month, &line)) } else { Ok(()) }
            });
            call.end(result.map(|_| ()))
        })
    }

    fn rates(&self) -> Result<Vec<Arc<Rate>>, SourceError> {
        let mut all = HashMap::new();
        self.within(|_, connection| {
            for (id, rate) in rates(connection)? {
                // The rate as the oldest file has it: the files are in order.
                all.entry(id).or_insert(rate);
            }
            Ok(())
        })?;
        Ok(all.into_values().collect())
    }

    fn rows(
        &self,
        range: &Range,
        each: &mut dyn FnMut(Month, &Row, Option<&Used>) -> Result<(), SourceError>,
    ) -> Result<(), SourceError> {
        self.selected(range, "WHERE seq > ? AND ended_us >= ? AND ended_us < ? ORDER BY seq", each)
    }

    /// The index `exchange_disagreement` has these rows.
    fn contradicted(
        &self,
        range: &Range,
        each: &mut dyn FnMut(Month, &Row) -> Result<(), SourceError>,
    ) -> Result<(), SourceError> {
        let clause = "WHERE usage_disagreement IS NOT NULL AND usage_disagreement <> 'cached_excess' \
                      AND seq > ? AND ended_us >= ? AND ended_us < ?";
        self.selected(range, clause, &mut |month, row, _| each(month, row))
    }

    fn corrections(
        &self,
        range: &Range,
        each: &mut dyn FnMut(Month, &Correction) -> Result<(), SourceError>,
    ) -> Result<(), SourceError> {
        let (mut reader, handed_over) = (RowReader::new(), Cell::new(false));
        self.within_days(range, &handed_over, |month, connection| {
            let mut call = Call { each: &mut *each, handed_over: &handed_over, error: None };
            let result = file::whole(connection, &CORRECTION, |values| {
                let MadeCorrection { correction, .. } = values::read(values, &mut reader)?;
                if range.holds(correction.ended_us) {
                    call.of(|each| each(month, &correction))
                } else {
                    Ok(())
                }
            });
            call.end(result.map(|_| ()))
        })
    }

    fn first_price_totals(
        &self,
        range: &Range,
        each: &mut dyn FnMut(Month, &DailyTotal) -> Result<(), SourceError>,
    ) -> Result<(), SourceError> {
        let (days, mut reader, handed_over) =
            (range.days(&self.calendar), RowReader::new(), Cell::new(false));
        self.within_days(range, &handed_over, |month, connection| {
            let mut call = Call { each: &mut *each, handed_over: &handed_over, error: None };
            let first = format!("WHERE class = '{}' AND exchanges > 0", Class::Correction.name());
            let result = LINE.each(connection, &first, &[], |values, _| {
                let line: DailyTotal = values::read(values, &mut reader)?;
                if days.contains(&line.key.day) { call.of(|each| each(month, &line)) } else { Ok(()) }
            });
            call.end(result)
        })
    }

    fn first_prices(
        &self,
        range: &Range,
        each: &mut dyn FnMut(
            Month,
            &Correction,
            Option<(Month, &Row, Option<&Used>)>,
        ) -> Result<(), SourceError>,
    ) -> Result<(), SourceError> {
        let (mut reader, handed_over) = (RowReader::new(), Cell::new(false));
        self.within_days(range, &handed_over, |month, connection| {
            let mut call = Call { each: &mut *each, handed_over: &handed_over, error: None };
            let bounds = [range.since_us, range.until_us];
            let first = "WHERE unpriced = 1 AND ended_us >= ? AND ended_us < ?";
            let result = CORRECTION.each(connection, first, &bounds, |values, _| {
                let MadeCorrection { correction, .. } = values::read(values, &mut reader)?;
                let found = self.unpriced_row(&correction, &mut reader)?;
                let row = found.as_ref().map(|(billed, row, used)| (*billed, row, used.as_ref()));
                call.of(|each| each(month, &correction, row))
            });
            call.end(result)
        })
    }

    fn devices(&self, range: &Range) -> Result<Vec<DeviceTotal>, SourceError> {
        let (days, mut reader, mut devices) = (range.days(&self.calendar), RowReader::new(), Vec::new());
        let handed_over = Cell::new(false);
        self.within_range(range, &handed_over, |_, connection| {
            file::whole(connection, &DEVICE, |values| {
                let device: DeviceTotal = values::read(values, &mut reader)?;
                if days.contains(&device.day) {
                    handed_over.set(true);
                    devices.push(device);
                }
                Ok(())
            })?;
            Ok(())
        })?;
        Ok(devices)
    }

    fn closure(&self, of: Month) -> Result<Closure, SourceError> {
        let mut closure = Closure::Open;
        if let Some(unread) = self.unread.iter().find(|unread| unread.month == of) {
            return Err(Box::new(unread.error.clone()));
        }
        for file in self.files.iter().filter(|file| file.month == of) {
            self.within_file(file, &mut |_, connection| {
                if let Some(digest) = file::bytes(connection, "digest")? {
                    let digest: Arc<str> = digest::hex(&digest).into();
                    closure = Closure::Closed { instances: vec![Arc::clone(&digest)], digest: Some(digest) };
                }
                Ok(())
            })?;
        }
        Ok(closure)
    }

    fn gone(&self) -> Result<Vec<Gone>, SourceError> {
        let Some(path) = &self.path else { return Ok(Vec::new()) };
        let mut missing = AbsentMonths::new(path).map_err(|error| named(path, error))?;
        self.unread.iter().for_each(|unread| missing.seen(unread.month));
        self.files.iter().for_each(|file| missing.read(file));
        Ok(missing.all(path))
    }

    fn without_log(&self, range: &Range) -> Result<Vec<PathBuf>, SourceError> {
        let Some(path) = &self.path else { return Ok(Vec::new()) };
        let mut found = Vec::new();
        for file in
            self.files.iter().filter(|file| range.since_us < self.calendar.month_begin_us(file.month + 1))
        {
            if check::lacks_log(file).map_err(|error| named(&file.path, error))? {
                found.push(file.path.clone());
            }
        }
        // With a running writer, a file whose month ends has no log for a moment.
        if !found.is_empty() && lock::writer(path).is_some() {
            found.clear();
        }
        Ok(found)
    }

    fn gaps(&self, range: &Range) -> Result<Vec<Gap>, SourceError> {
        let (mut reader, mut gaps, handed_over) = (RowReader::new(), Vec::new(), Cell::new(false));
        self.within_range(range, &handed_over, |_, connection| {
            file::whole(connection, &GAP, |values| {
                let gap: Gap = values::read(values, &mut reader)?;
                if gap.concerns(range) {
                    handed_over.set(true);
                    gaps.push(gap);
                }
                Ok(())
            })?;
            Ok(())
        })?;
        Ok(gaps)
    }
}
