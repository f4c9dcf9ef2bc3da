//! The interface between reports and the stores that they read: the ledger's files ([`crate::Store`]) and the central
//! PostgreSQL.
//!
//! A store has daily totals, rows, corrections, GPU use without an exchange, and the gaps of all that. It hands each
//! value to a callback and keeps none, so that the memory of a report depends on its result and not on the ledger.

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;

pub use calendar::{DAY_US, Month};
use meter::{Disagreement, ExchangeId};
use price::Rate;

pub use crate::device_total::{DeviceTotal, Share};
use crate::lost_cost::LostCost;
pub use crate::sums::Used;
use crate::{Calendar, DailyTotal, Row};

/// The error of a store that cannot be read, with the remedy; or the callback's own error.
pub type SourceError = Box<dyn Error + Send + Sync>;

/// A range of time: from an instant, inclusive, to another, exclusive. Microseconds since 1970 in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The first instant of the range.
    pub since_us: i64,
    /// The first instant after the range.
    pub until_us: i64,
}

impl Range {
    /// All of time.
    pub const ALL: Self = Self { since_us: i64::MIN, until_us: i64::MAX };

    /// Returns the range of a month. The first month, January 1970, has all earlier instants.
    pub fn of_month(calendar: &Calendar, month: Month) -> Self {
        let since_us = if month > 0 { calendar.month_begin_us(month) } else { i64::MIN };
        Self { since_us, until_us: calendar.month_begin_us(month + 1) }
    }

    /// Returns true if an instant lies within the range.
    pub fn holds(&self, us: i64) -> bool {
        self.since_us <= us && us < self.until_us
    }

    /// Returns the days that the range touches.
    pub fn days(&self, calendar: &Calendar) -> std::ops::RangeInclusive<i32> {
        calendar.day_from(self.since_us).0..=calendar.day(self.until_us.saturating_sub(1))
    }

    /// Returns the days that lie within the range as a whole, as `first..end` since 1970.
    pub fn whole_days(&self, calendar: &Calendar) -> std::ops::Range<i32> {
        let (first, begins) = calendar.day_from(self.since_us);
        first + i32::from(!begins)..calendar.day_from(self.until_us).0
    }

    /// Returns the range extended to whole days: it holds every day that it touches.
    #[must_use]
    pub fn to_whole_days(&self, calendar: &Calendar) -> Self {
        let up = |us: i64| match calendar.day_from(us) {
            (_, true) => us,
            (day, false) => calendar.begin_us(day + 1),
        };
        Self {
            since_us: if self.since_us == i64::MIN {
                i64::MIN
            } else {
                calendar.begin_us(calendar.day(self.since_us))
            },
            until_us: if self.until_us == i64::MAX { i64::MAX } else { up(self.until_us) },
        }
    }

    /// Returns true if each side is unbounded or the first instant of a day: then daily totals suffice, and no row has
    /// to be read.
    pub fn is_whole_days(&self, calendar: &Calendar) -> bool {
        [self.since_us, self.until_us]
            .iter()
            .all(|&us| us == i64::MIN || us == i64::MAX || calendar.day_from(us).1)
    }
}

/// A time of which the ledger may lack rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The first instant of the gap, microseconds since 1970.
    pub from_us: i64,
    /// The end of the gap, microseconds since 1970.
    pub until_us: i64,
    /// The reason, in a word: `crash`, `corrupt`, `shed`, ….
    pub why: Arc<str>,
    /// The number of lost rows; `None` if it is not known.
    pub lost_rows: Option<u64>,
    /// True if the sums of the lost rows are among the daily totals.
    pub totals_kept: bool,
    /// The cost of the lost rows, unless their sums are among the daily totals.
    pub cost: LostCost,
}

impl Gap {
    /// Returns a gap of an unknown number of rows.
    pub fn unknown(from_us: i64, until_us: i64, why: &str) -> Self {
        let (why, cost) = (why.into(), LostCost::UNKNOWN);
        Self { from_us, until_us, why, lost_rows: None, totals_kept: false, cost }
    }

    /// The reason of a gap in a file that was restored from a copy: rows entered after the copy was made are missing.
    pub const RESTORED: &str = "restored";

    /// The reason of a gap of a central store: a ledger file of a closed month did not arrive completely.
    pub const UNSHIPPED: &str = "unshipped";

    /// The reasons of gaps that stand for a lost file or a part of one.
    const OF_FILES: [&str; 5] = ["corrupt", "gone", "replaced", Self::RESTORED, Self::UNSHIPPED];

    /// Returns true if rows of a range may be missing because of this gap.
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

/// A month that other files of the ledger refer to, and whose own file is absent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gone {
    /// The month.
    pub month: Month,
    /// The evidence that there was a file.
    pub why: Arc<str>,
    /// The path at which its file belongs.
    pub file: PathBuf,
}

/// The state of a month: open, or closed by a sign-off.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Closure {
    /// The store does not know the state.
    #[default]
    Unknown,
    /// Exchanges and corrections are still entered.
    Open,
    /// It is signed off.
    Closed {
        /// The digest of the sign-off, in hexadecimal; `None` if the sign-off is not complete, or the store had nothing
        /// of the month.
        digest: Option<Arc<str>>,
        /// The digests of the months of the instances that the sign-off covers, sorted; the digest itself for a month
        /// that is one file.
        instances: Vec<Arc<str>>,
    },
}

impl Closure {
    /// Returns true if the month is closed; `None` if the store does not know.
    pub fn is_closed(&self) -> Option<bool> {
        match self {
            Self::Unknown => None,
            Self::Open => Some(false),
            Self::Closed { .. } => Some(true),
        }
    }

    /// Returns the digest of the sign-off, if there is one.
    pub fn digest(&self) -> Option<&Arc<str>> {
        match self {
            Self::Closed { digest, .. } => digest.as_ref(),
            Self::Unknown | Self::Open => None,
        }
    }
}

/// A later change of the charge of one exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Correction {
    /// The correction's own id.
    pub id: ExchangeId,
    /// The time of the correction, microseconds since 1970.
    pub made_us: i64,
    /// The exchange whose charge it corrects.
    pub exchange: ExchangeId,
    /// The change as a daily total of class `correction`. `exchanges` is 1 if the exchange had no price before, else 0;
    /// `cost_pico` is the difference; `rate` is the new rate. Tokens and GPU use are zero.
    pub line: DailyTotal,
    /// The end of the exchange, microseconds since 1970: the period that the charge is of.
    pub ended_us: i64,
}

impl Correction {
    /// Returns true for an adjustment, which stands in the place of its exchange.
    pub fn is_adjustment(&self) -> bool {
        self.id == self.exchange
    }
}

/// A correction as a ledger file stores it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MadeCorrection {
    /// The number of its event in the audit trail (table `act`).
    pub act: i64,
    /// The correction.
    pub correction: Correction,
}

/// A store that reports are made from.
///
/// The month beside a value is the one in which it is **billed**: its own, or, if that was closed before the value
/// arrived, the month that was open then.
#[expect(clippy::type_complexity, reason = "an alias would hide the callback's arguments")]
pub trait Source {
    /// Returns the calendar that decides the days of totals and the months of exchanges.
    fn calendar(&self) -> Calendar;

    /// Returns the address, without a password, of the central store to which these ledger files are shipped: months
    /// are closed and charges corrected there. `None` if there is none, or if this is that store.
    ///
    /// # Errors
    /// If it cannot be read.
    fn ships_to(&self) -> Result<Option<String>, SourceError> {
        Ok(None)
    }

    /// Returns the months whose ledger files have several time zones, or one that this version does not know, with the
    /// names of the zones, separated by commas. Each row of such a month is on the day of its own file.
    fn mixed_zones(&self) -> Vec<(Month, String)> {
        Vec::new()
    }

    /// Reads every daily total of the days that the range touches, in any order. One key may come several times; the
    /// caller adds them up. A total of class `correction` is of the day of the corrected exchanges.
    fn daily_totals(
        &self,
        range: &Range,
        each: &mut dyn FnMut(Month, &DailyTotal) -> Result<(), SourceError>,
    ) -> Result<(), SourceError>;

    /// Returns every rate that a daily total, a row or a correction of any time refers to.
    fn rates(&self) -> Result<Vec<Arc<Rate>>, SourceError>;

    /// Reads every stored row whose exchange ended within the range, in any order, each once, with its GPU use if that
    /// is known. Rows that retention deleted are not there; their daily totals are.
    fn rows(
        &self,
        range: &Range,
        each: &mut dyn FnMut(Month, &Row, Option<&Used>) -> Result<(), SourceError>,
    ) -> Result<(), SourceError>;

    /// Reads the rows of [`Source::rows`] whose server's counts contradict one another, without their GPU use. An excess
    /// of cached tokens, which some servers always have, does not count.
    fn contradicted(
        &self,
        range: &Range,
        each: &mut dyn FnMut(Month, &Row) -> Result<(), SourceError>,
    ) -> Result<(), SourceError> {
        self.rows(range, &mut |billed, row, _| match row.usage_disagreement {
            None | Some(Disagreement::CachedExcess) => Ok(()),
            Some(_) => each(billed, row),
        })
    }

    /// Reads every correction of an exchange that ended within the range, in any order, each once.
    fn corrections(
        &self,
        range: &Range,
        each: &mut dyn FnMut(Month, &Correction) -> Result<(), SourceError>,
    ) -> Result<(), SourceError>;

    /// Returns true if a priced exchange that ended within the range got another price later.
    fn has_repriced(&self, range: &Range) -> Result<bool, SourceError> {
        let mut has = false;
        self.corrections(range, &mut |_, made| {
            has |= made.line.sums.exchanges == 0 && !made.is_adjustment();
            Ok(())
        })?;
        Ok(has)
    }

    /// Reads the daily totals of class `correction` in which exchanges got their first price: those of
    /// [`Source::daily_totals`] whose `exchanges` are not 0.
    fn first_price_totals(
        &self,
        range: &Range,
        each: &mut dyn FnMut(Month, &DailyTotal) -> Result<(), SourceError>,
    ) -> Result<(), SourceError>;

    /// Reads every correction that gave an exchange of the range its first price, in any order, each once; with the
    /// exchange as [`Source::rows`] hands it over, if its row is still stored.
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

    /// Returns the gaps that concern the range.
    fn gaps(&self, range: &Range) -> Result<Vec<Gap>, SourceError>;

    /// Returns the files that were copied without their write-ahead log and so may lack rows of the range.
    fn without_log(&self, _range: &Range) -> Result<Vec<PathBuf>, SourceError> {
        Ok(Vec::new())
    }

    /// Returns the absent months: those of any time that had a file and have none now.
    fn gone(&self) -> Result<Vec<Gone>, SourceError> {
        Ok(Vec::new())
    }

    /// Returns whether a month is closed, with the digests of its sign-off.
    fn closure(&self, month: Month) -> Result<Closure, SourceError>;
}
