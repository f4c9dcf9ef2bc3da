//! A store of which the rows that are read show as progress.

use std::path::PathBuf;
use std::sync::Arc;

use ledger::source::{Correction, DeviceTotal, Gap, Gone, Month, Used};
use ledger::{Calendar, Class, Closure, DailyTotal, Progress, Range, Row, Source, SourceError};
use price::Rate;

use super::progress;

/// Rows between two reports: below a millisecond of reading.
const REPORT_ROWS: u64 = 256;

/// A store whose reading shows as progress.
pub(super) struct Watched(pub(super) Box<dyn Source>);

impl Watched {
    /// Returns the number of rows of a range by its daily totals; `None` if they cannot be read, which reading the rows
    /// reports, too.
    fn rows_of(&self, range: &Range) -> Option<u64> {
        let mut rows = 0;
        let read = self.0.daily_totals(range, &mut |_, total| {
            rows += if total.key.class == Class::Usage { total.sums.exchanges } else { 0 };
            Ok(())
        });
        read.is_ok().then_some(rows)
    }
}

/// Counts a value that was read.
fn count(progress: &mut Progress) {
    progress.done_rows += 1;
    if progress.done_rows.is_multiple_of(REPORT_ROWS) {
        progress::report(*progress);
    }
}

impl Source for Watched {
    fn calendar(&self) -> Calendar {
        self.0.calendar()
    }

    fn ships_to(&self) -> Result<Option<String>, SourceError> {
        self.0.ships_to()
    }

    fn mixed_zones(&self) -> Vec<(Month, String)> {
        self.0.mixed_zones()
    }

    fn daily_totals(
        &self,
        range: &Range,
        each: &mut dyn FnMut(Month, &DailyTotal) -> Result<(), SourceError>,
    ) -> Result<(), SourceError> {
        self.0.daily_totals(range, each)
    }

    fn rates(&self) -> Result<Vec<Arc<Rate>>, SourceError> {
        self.0.rates()
    }

    fn rows(
        &self,
        range: &Range,
        each: &mut dyn FnMut(Month, &Row, Option<&Used>) -> Result<(), SourceError>,
    ) -> Result<(), SourceError> {
        if !progress::is_shown() {
            return self.0.rows(range, each);
        }
        let mut progress =
            Progress { step: "reading rows", month: None, done_rows: 0, total_rows: self.rows_of(range) };
        self.0.rows(range, &mut |month, row, used| {
            count(&mut progress);
            each(month, row, used)
        })
    }

    fn corrections(
        &self,
        range: &Range,
        each: &mut dyn FnMut(Month, &Correction) -> Result<(), SourceError>,
    ) -> Result<(), SourceError> {
        let mut progress =
            Progress { step: "reading corrections", month: None, done_rows: 0, total_rows: None };
        self.0.corrections(range, &mut |month, made| {
            count(&mut progress);
            each(month, made)
        })
    }

    fn has_repriced(&self, range: &Range) -> Result<bool, SourceError> {
        self.0.has_repriced(range)
    }

    fn first_price_totals(
        &self,
        range: &Range,
        each: &mut dyn FnMut(Month, &DailyTotal) -> Result<(), SourceError>,
    ) -> Result<(), SourceError> {
        self.0.first_price_totals(range, each)
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
        self.0.first_prices(range, each)
    }

    fn devices(&self, range: &Range) -> Result<Vec<DeviceTotal>, SourceError> {
        self.0.devices(range)
    }

    fn gaps(&self, range: &Range) -> Result<Vec<Gap>, SourceError> {
        self.0.gaps(range)
    }

    fn without_log(&self, range: &Range) -> Result<Vec<PathBuf>, SourceError> {
        self.0.without_log(range)
    }

    fn gone(&self) -> Result<Vec<Gone>, SourceError> {
        self.0.gone()
    }

    fn closure(&self, month: Month) -> Result<Closure, SourceError> {
        self.0.closure(month)
    }
}
