//! The contents of any store of which reports are made: daily totals, rows, corrections, and what is missing of them. A store hands
//! values to a callback and keeps nothing, so that a report is as large as its result and not as the ledger.

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;

use meter::ExchangeId;
use price::Rate;

use crate::{DailyTotal, GpuSums, Row};

/// The reason why a store could not be read, with the remedy; or the callback's own error.
pub type SourceError = Box<dyn Error + Send + Sync>;

/// A month: how many since January 1970.
pub type Month = i32;

/// Microseconds of a day.
pub const DAY_US: i64 = 86_400_000_000;

/// A time from an instant, inclusive, to another, exclusive; microseconds since 1970 in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The first instant of it.
    pub since_us: i64,
    /// The first instant after it.
    pub until_us: i64,
}

impl Range {
    /// All there is.
    pub const ALL: Self = Self { since_us: i64::MIN, until_us: i64::MAX };

    /// Returns true if an instant lies in it.
    pub fn holds(&self, us: i64) -> bool {
        self.since_us <= us && us < self.until_us
    }

    /// The days it covers from midnight to midnight, as `first..end` since 1970.
    pub fn whole_days(&self) -> std::ops::Range<i32> {
        let first = self.since_us.div_euclid(DAY_US) + i64::from(self.since_us.rem_euclid(DAY_US) != 0);
        day(first)..day(self.until_us.div_euclid(DAY_US))
    }

    /// The same, begun and ended at midnight so that it holds all of every day it touches.
    #[must_use]
    pub fn to_whole_days(&self) -> Self {
        let up = |us: i64| us.saturating_add(DAY_US - 1).div_euclid(DAY_US).saturating_mul(DAY_US);
        Self {
            since_us: self.since_us.div_euclid(DAY_US).saturating_mul(DAY_US),
            until_us: if self.until_us == i64::MAX { i64::MAX } else { up(self.until_us) },
        }
    }

    /// Returns true if it begins and ends at midnight, or has no end: then daily totals say all that rows do.
    pub fn is_whole_days(&self) -> bool {
        [self.since_us, self.until_us]
            .iter()
            .all(|&us| us == i64::MIN || us == i64::MAX || us.rem_euclid(DAY_US) == 0)
    }
}

fn day(days: i64) -> i32 {
    i32::try_from(days).unwrap_or(if days < 0 { i32::MIN } else { i32::MAX })
}

/// The GPU use of an exchange, and its cost in US dollars.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// Nanojoules, if known.
    pub energy_nj: Option<u64>,
    /// Nanoseconds of GPU time, if known.
    pub gpu_ns: Option<u64>,
    /// The cost of the time, pico-dollars.
    pub gpu_hours_pico: i64,
    /// The cost of the energy, pico-dollars.
    pub gpu_energy_pico: i64,
}

/// The use of a GPU in a day that belongs to no exchange, or to none that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceTotal {
    /// Days since 1970-01-01, UTC.
    pub day: i32,
    /// `hw.id`.
    pub hw_id: Arc<str>,
    /// The reason.
    pub share: Share,
    /// Their sums.
    pub sums: GpuSums,
}

/// The reason why GPU time and energy belong to no exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Share {
    /// No exchange was in flight.
    Idle,
    /// The exchange is not known: its record was lost.
    Unattributed,
}

impl Share {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Idle, Self::Unattributed];

    /// The word in the store.
    pub fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Unattributed => "unattributed",
        }
    }

    /// The word in a report, where a tenant or a model would stand.
    pub fn mark(self) -> &'static str {
        match self {
            Self::Idle => "__idle__",
            Self::Unattributed => "__unattributed__",
        }
    }
}

/// A time of which rows may be missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// From, microseconds since 1970.
    pub from_us: i64,
    /// Until.
    pub until_us: i64,
    /// Why, in a word.
    pub why: Arc<str>,
    /// Rows that were lost; `None` if the number is not known.
    pub lost_rows: Option<u64>,
    /// True if their totals are among the daily totals, of class `shed`.
    pub totals_kept: bool,
}

impl Gap {
    /// The reason of a gap whose file was put back from a copy and lacks what was entered after it.
    pub const RESTORED: &str = "restored";

    /// The reasons of gaps that stand for a lost file or part of one.
    const OF_FILES: [&str; 4] = ["corrupt", "gone", "replaced", Self::RESTORED];

    /// Returns true if something of a range may be missing because of this gap.
    ///
    /// A month's file also has late exchanges and corrections of the months before it. So a lost file concerns every
    /// earlier time, and no later one.
    pub fn concerns(&self, range: &Range) -> bool {
        if !Self::OF_FILES.contains(&&*self.why) {
            return self.from_us < range.until_us && range.since_us <= self.until_us;
        }
        // `until_us` may be the first instant of the next month, whose rows the file never had.
        range.since_us < self.until_us.max(self.from_us.saturating_add(1))
    }
}

/// A month that the ledger's files name, and whose file is absent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gone {
    /// The month.
    pub month: Month,
    /// The evidence that there was a file.
    pub why: Arc<str>,
    /// The file that it would be in.
    pub file: PathBuf,
}

/// A later change of an exchange's charge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Correction {
    /// Its own name.
    pub id: ExchangeId,
    /// When it was made, microseconds since 1970.
    pub made_us: i64,
    /// The exchange whose charge it corrects.
    pub exchange: ExchangeId,
    /// The line it adds to: `exchanges` is 1 if it had no price before and else 0, `cost_pico` the
    /// difference, `rate` the one that holds from now on; tokens and GPU are zero.
    pub line: DailyTotal,
    /// When the exchange ended: the period of the charge.
    pub ended_us: i64,
}

/// A correction in a ledger's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MadeCorrection {
    /// The number of the event of the audit trail that it is part of.
    pub act: i64,
    /// The correction.
    pub correction: Correction,
}

/// A store that reports can be made from.
///
/// The month beside a value is the one it is **billed** in: its own, or, where that was closed before
/// the value came, the one that was open then.
#[expect(clippy::type_complexity, reason = "the callback's type is what there is to say of it")]
pub trait Source {
    /// Every line of the days that the range touches, in any order; of one key as often as it likes, to
    /// be summed. A line of class `correction` stands on the day of the exchange it corrects.
    fn lines(
        &self,
        range: &Range,
        each: &mut dyn FnMut(Month, &DailyTotal) -> Result<(), SourceError>,
    ) -> Result<(), SourceError>;

    /// Every rate that a line, row or correction of any time names.
    fn rates(&self) -> Result<Vec<Arc<Rate>>, SourceError>;

    /// Every row that ended within the range and whose detail is still kept, in any order, each once, with
    /// what it used of the GPUs if that is known.
    fn rows(
        &self,
        range: &Range,
        each: &mut dyn FnMut(Month, &Row, Option<&Used>) -> Result<(), SourceError>,
    ) -> Result<(), SourceError>;

    /// Every correction of an exchange that ended within the range, in any order, each once.
    fn corrections(
        &self,
        range: &Range,
        each: &mut dyn FnMut(Month, &Correction) -> Result<(), SourceError>,
    ) -> Result<(), SourceError>;

    /// Returns true if a priced exchange that ended within the range was repriced.
    fn has_repriced(&self, range: &Range) -> Result<bool, SourceError> {
        let mut has = false;
        self.corrections(range, &mut |_, made| {
            has |= made.line.sums.exchanges == 0;
            Ok(())
        })?;
        Ok(has)
    }

    /// Every line of class `correction` of the days that the range touches in which exchanges were priced first:
    /// those of [`Source::lines`] whose `exchanges` are not 0.
    fn first_price_lines(
        &self,
        range: &Range,
        each: &mut dyn FnMut(Month, &DailyTotal) -> Result<(), SourceError>,
    ) -> Result<(), SourceError>;

    /// Every correction by which an exchange that ended within the range was priced first, in any order, each once;
    /// with the exchange as [`Source::rows`] hands it, if its detail is still kept.
    fn first_prices(
        &self,
        range: &Range,
        each: &mut dyn FnMut(
            Month,
            &Correction,
            Option<(Month, &Row, Option<&Used>)>,
        ) -> Result<(), SourceError>,
    ) -> Result<(), SourceError>;

    /// Returns the GPU use without an exchange on the days that the range touches.
    fn devices(&self, range: &Range) -> Result<Vec<DeviceTotal>, SourceError>;

    /// Returns the gaps of the range.
    fn gaps(&self, range: &Range) -> Result<Vec<Gap>, SourceError>;

    /// The files that were copied without their log and from which something of the range may be missing.
    fn without_log(&self, _range: &Range) -> Result<Vec<PathBuf>, SourceError> {
        Ok(Vec::new())
    }

    /// Months of any time that are known to have been there and are not.
    fn gone(&self) -> Result<Vec<Gone>, SourceError> {
        Ok(Vec::new())
    }

    /// Returns whether a month is closed; `None` if the store does not know.
    fn is_closed(&self, month: Month) -> Result<Option<bool>, SourceError> {
        Ok(Some(self.digest(month)?.is_some()))
    }

    /// The digest under which a month was closed, if it is.
    fn digest(&self, _month: Month) -> Result<Option<Arc<str>>, SourceError> {
        Ok(None)
    }
}
