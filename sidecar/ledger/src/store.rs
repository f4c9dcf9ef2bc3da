//! A ledger read: all its files together, while it is being written or long after.
//!
//! Laws: nothing is written, not even where it could be; what is not as it was written is an error with
//! the file's name, never a sum.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use price::Rate;
use rusqlite::{Connection, Transaction};

use crate::failure::Failure;
use crate::file::{self, File};
use crate::files;
use crate::report::source::{Correction, DeviceLine, Gap, Month, Range, Source, Trouble, Used};
use crate::table::{self, CORRECTION, DEVICE, ENERGY, EXCHANGE, GAP, LINE, RATE};
use crate::values::{Columns, Names};
use crate::{Line, Row, digest, month};

/// How often files that move while they are looked for are looked for again.
const TRIES: usize = 5;

/// All files of a ledger.
#[derive(Debug)]
pub struct Store {
    files: Vec<File>,
}

impl Store {
    /// Opens a ledger to read it: `X.db` and every `X-2026-10.db` beside it.
    ///
    /// # Errors
    /// There is no such ledger, or a file of it cannot be read or is damaged.
    pub fn open_read(path: &Path) -> Result<Self, Failure> {
        let mut tries = 0;
        loop {
            tries += 1;
            let names = list(path)?;
            let files = names.iter().map(|name| open(name)).collect::<Result<Vec<_>, _>>();
            // A month that ends is given another name.
            if tries < TRIES && list(path)? != names {
                continue;
            }
            return Ok(Self { files: files? });
        }
    }

    /// The months whose files are there, each with its file.
    pub fn months(&self) -> impl Iterator<Item = (Month, &Path)> {
        self.files.iter().map(|file| (file.month, file.path.as_path()))
    }

    /// Reads in each file, in a state that does not change meanwhile.
    fn within(&self, mut each: impl FnMut(Month, &Connection) -> Result<(), Trouble>) -> Result<(), Trouble> {
        for file in &self.files {
            let transaction: Transaction<'_> =
                file.connection.unchecked_transaction().map_err(|error| named(&file.path, error))?;
            each(file.month, &transaction).map_err(|error| match error.downcast::<Failure>() {
                Ok(failure) => Box::new(failure.of(file.path.display())),
                Err(other) => other,
            })?;
        }
        Ok(())
    }
}

fn list(path: &Path) -> Result<Vec<PathBuf>, Failure> {
    let names = files::list(path).map_err(|error| named(path, error))?;
    if names.is_empty() {
        let none = io::Error::new(io::ErrorKind::NotFound, "there is no ledger here: is the path right?");
        return Err(named(path, none));
    }
    Ok(names)
}

fn named(path: &Path, error: impl Into<Failure>) -> Failure {
    error.into().of(path.display())
}

fn open(path: &Path) -> Result<File, Failure> {
    let file = File::open_read(path).map_err(|failure| failure.of(path.display()))?;
    Ok(file)
}

/// The days that a range touches.
fn days(range: &Range) -> std::ops::RangeInclusive<i32> {
    month::day(range.since_us)..=month::day(range.until_us.saturating_sub(1))
}

/// The callback's own trouble, carried past ours.
struct Call<'a, T: ?Sized> {
    each: &'a mut T,
    trouble: Option<Trouble>,
}

impl<T: ?Sized> Call<'_, T> {
    fn of(&mut self, call: impl FnOnce(&mut T) -> Result<(), Trouble>) -> Result<(), Failure> {
        call(self.each).map_err(|trouble| {
            let stop = Failure::new(crate::failure::Fault::Other, "the reader stopped");
            self.trouble = Some(trouble);
            stop
        })
    }

    fn end(self, result: Result<(), Failure>) -> Result<(), Trouble> {
        match self.trouble {
            Some(trouble) => Err(trouble),
            None => Ok(result?),
        }
    }
}

/// Every rate of a file, by its id.
fn rates(connection: &Connection) -> Result<HashMap<[u8; 16], Arc<Rate>>, Failure> {
    let (mut rates, mut names) = (HashMap::new(), Names::default());
    file::whole(connection, &RATE, |values| {
        let rate = Columns::new(values, &mut names).rate()?;
        rates.insert(rate.id, Arc::new(rate));
        Ok(())
    })?;
    Ok(rates)
}

impl Source for Store {
    fn lines(
        &self,
        range: &Range,
        each: &mut dyn FnMut(Month, &Line) -> Result<(), Trouble>,
    ) -> Result<(), Trouble> {
        let (days, mut names) = (days(range), Names::default());
        self.within(|month, connection| {
            let mut call = Call { each: &mut *each, trouble: None };
            // The whole table is read even for a day of it: only so does a missing line show.
            let result = file::whole(connection, &LINE, |values| {
                let line = Columns::new(values, &mut names).line()?;
                if days.contains(&line.day) { call.of(|each| each(month, &line)) } else { Ok(()) }
            });
            call.end(result.map(|_| ()))
        })
    }

    fn rates(&self) -> Result<Vec<Arc<Rate>>, Trouble> {
        let mut all = HashMap::new();
        self.within(|_, connection| {
            all.extend(rates(connection)?);
            Ok(())
        })?;
        Ok(all.into_values().collect())
    }

    fn rows(
        &self,
        range: &Range,
        each: &mut dyn FnMut(Month, &Row, Option<&Used>) -> Result<(), Trouble>,
    ) -> Result<(), Trouble> {
        let mut names = Names::default();
        self.within(|month, connection| {
            let rates = rates(connection)?;
            let mut energy =
                connection.prepare(&format!("{} WHERE id = ?", ENERGY.select())).map_err(Failure::from)?;
            let mut scratch = Vec::new();
            let mut call = Call { each: &mut *each, trouble: None };
            let gone = file::compacted(connection, &EXCHANGE)?.entered;
            let bounds = [gone, range.since_us, range.until_us];
            let result = EXCHANGE.each(
                connection,
                "WHERE seq > ? AND ended_us >= ? AND ended_us < ? ORDER BY seq",
                &bounds,
                |values, _| {
                    let row = Columns::new(&values[1..], &mut names).row(|id| rates.get(id).cloned())?;
                    let mut found = energy.query([&row.id.0[..]])?;
                    let used = match found.next()? {
                        Some(found) => {
                            let (values, _) = ENERGY.read(found, &mut scratch)?;
                            Some(Columns::new(&values[3..], &mut names).used()?)
                        }
                        None => None,
                    };
                    call.of(|each| each(month, &row, used.as_ref()))
                },
            );
            call.end(result)
        })
    }

    fn corrections(
        &self,
        range: &Range,
        each: &mut dyn FnMut(Month, &Correction) -> Result<(), Trouble>,
    ) -> Result<(), Trouble> {
        let mut names = Names::default();
        self.within(|month, connection| {
            let mut call = Call { each: &mut *each, trouble: None };
            let result = file::whole(connection, &CORRECTION, |values| {
                let correction = Columns::new(&values[1..], &mut names).correction()?;
                if range.holds(correction.ended_us) {
                    call.of(|each| each(month, &correction))
                } else {
                    Ok(())
                }
            });
            call.end(result.map(|_| ()))
        })
    }

    fn devices(&self, range: &Range) -> Result<Vec<DeviceLine>, Trouble> {
        let (days, mut names, mut devices) = (days(range), Names::default(), Vec::new());
        self.within(|_, connection| {
            file::whole(connection, &DEVICE, |values| {
                let device = Columns::new(values, &mut names).device()?;
                if days.contains(&device.day) {
                    devices.push(device);
                }
                Ok(())
            })?;
            Ok(())
        })?;
        Ok(devices)
    }

    fn digest(&self, of: Month) -> Result<Option<Arc<str>>, Trouble> {
        let mut digest = None;
        self.within(|month, connection| {
            if month == of {
                digest = file::bytes(connection, "digest")?.map(|digest| digest::hex(&digest).into());
            }
            Ok(())
        })?;
        Ok(digest)
    }

    fn gaps(&self, range: &Range) -> Result<Vec<Gap>, Trouble> {
        let (mut names, mut gaps) = (Names::default(), Vec::new());
        self.within(|_, connection| {
            file::whole(connection, &GAP, |values| {
                let gap = Columns::new(&values[1..], &mut names).gap()?;
                if gap.from_us < range.until_us && gap.until_us >= range.since_us {
                    gaps.push(gap);
                }
                Ok(())
            })?;
            Ok(())
        })?;
        Ok(gaps)
    }
}

/// What is read of a table from a number on.
pub(crate) fn after(
    connection: &Connection,
    table: &table::Table,
    seq: i64,
    limit: i64,
    each: impl FnMut(&[rusqlite::types::ValueRef<'_>], &table::Digest) -> Result<(), Failure>,
) -> Result<(), Failure> {
    table.each(connection, "WHERE seq > ? ORDER BY seq LIMIT ?", &[seq, limit], each)
}
