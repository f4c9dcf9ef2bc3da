//! One purse under one budget: what was told of it. A threshold is told of once in a period, even
//! if the clock goes back, a correction takes the sum below it and it is passed again.
//!
//! The rolling period has no end, so there a threshold is told of again once the thirty days
//! before some day, that day itself not among them, held less. A rolling forecast is told of once
//! in thirty days.

use crate::budget::{Budget, Threshold};
use crate::forecast::forecast;
use crate::period::{DAY_US, Period, ROLLING_DAYS, Span};
use crate::spend::Spend;

/// What was told, and since when the forecast is above the limit.
#[derive(Clone, Debug, Default)]
pub(crate) struct Account {
    marks: Vec<Mark>,
    over: Option<Over>,
}

/// Thresholds told of, by the period's first day; of a rolling period by the day they were told on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) at: i32,
    pub(crate) bits: u8,
}

/// A forecast above the limit: of the period from this day, since this time.
#[derive(Clone, Copy, Debug)]
struct Over {
    start: i32,
    since_us: i64,
}

/// What is to be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Passed {
    pub(crate) threshold: Threshold,
    pub(crate) limit: i128,
    pub(crate) used: i128,
    pub(crate) forecast: Option<i128>,
    pub(crate) span: Span,
}

/// What an account is looked at with.
pub(crate) struct Look<'a> {
    pub(crate) budget: &'a Budget,
    pub(crate) spend: &'a Spend,
    pub(crate) now_us: i64,
    /// The day of `now_us`.
    pub(crate) today: i32,
    /// The period that is on.
    pub(crate) span: Span,
    /// The one before.
    pub(crate) before: Option<Span>,
}

impl Look<'_> {
    pub(crate) fn used(&self) -> i128 {
        self.spend.between(self.span.start, self.span.end)
    }

    pub(crate) fn forecast(&self) -> Option<i128> {
        forecast(self.spend, self.budget.period, self.span, self.now_us.div_euclid(1_000_000))
    }

    fn rolling(&self) -> bool {
        self.budget.period == Period::Rolling
    }
}

impl Account {
    /// What is to be told now and was not yet. What comes late for the period before is told too.
    pub(crate) fn tell(&mut self, look: &Look<'_>, mut tell: impl FnMut(Passed)) {
        for span in look.before.into_iter().chain([look.span]) {
            self.tell_of(look, span, &mut tell);
        }
        if self.foreseen(look) {
            let Some(limit) = look.budget.limit() else { return };
            let forecast = look.forecast();
            tell(Passed {
                threshold: Threshold::Forecast,
                limit,
                used: look.used(),
                forecast,
                span: look.span,
            });
            self.mark(Threshold::Forecast, self.key(look, look.span), look.rolling());
        }
    }

    fn tell_of(&mut self, look: &Look<'_>, span: Span, tell: &mut impl FnMut(Passed)) {
        let used = look.spend.between(span.start, span.end);
        for (threshold, limit) in look.budget.thresholds() {
            if threshold.passed(used, limit) && !self.told(look, span, threshold, limit) {
                let forecast = if span == look.span { look.forecast() } else { None };
                tell(Passed { threshold, limit, used, forecast, span });
                self.mark(threshold, self.key(look, span), look.rolling());
            }
        }
    }

    /// Takes all that is passed for told: it was, before this process began.
    pub(crate) fn take_for_told(&mut self, look: &Look<'_>) {
        for span in look.before.into_iter().chain([look.span]) {
            self.tell_of(look, span, &mut |_| {});
        }
        if look.budget.limit().zip(look.forecast()).is_some_and(|(limit, forecast)| forecast > limit) {
            self.mark(Threshold::Forecast, self.key(look, look.span), look.rolling());
        }
    }

    /// What was told, for the next process.
    pub(crate) fn marks(&self) -> &[Mark] {
        &self.marks
    }

    /// Notes what an earlier process told.
    pub(crate) fn remember(&mut self, mark: Mark) {
        for threshold in Threshold::ALL.into_iter().filter(|one| mark.bits & one.bit() != 0) {
            self.mark(threshold, mark.at, false);
        }
    }

    /// Whether the forecast has been above the limit for long enough, and nobody was told. One that
    /// comes and goes around the limit counts as above until it is clearly below.
    fn foreseen(&mut self, look: &Look<'_>) -> bool {
        let (Some(limit), Some(forecast)) = (look.budget.limit(), look.forecast()) else {
            self.over = None;
            return false;
        };
        let start = self.key(look, look.span);
        let before = self.over.filter(|over| over.start == start && over.since_us <= look.now_us);
        let above = forecast > limit
            || (before.is_some() && forecast.saturating_mul(100) >= limit.saturating_mul(RELEASE_PERCENT));
        if !above || look.used() >= limit {
            self.over = None;
            return false;
        }
        let over = before.unwrap_or(Over { start, since_us: look.now_us });
        self.over = Some(over);
        forecast > limit
            && look.now_us - over.since_us >= HOLD_US
            && !self.told(look, look.span, Threshold::Forecast, limit)
    }

    fn key(&self, look: &Look<'_>, span: Span) -> i32 {
        if look.rolling() { look.today } else { span.start }
    }

    fn told(&self, look: &Look<'_>, span: Span, threshold: Threshold, limit: i128) -> bool {
        let mut told = self.marks.iter().filter(|mark| mark.bits & threshold.bit() != 0).map(|mark| mark.at);
        if !look.rolling() {
            return told.any(|at| at == span.start);
        }
        let Some(at) = told.max() else { return false };
        let today = look.today;
        if threshold == Threshold::Forecast || at > today {
            return (today - at).abs() < ROLLING_DAYS;
        }
        let since = at.max(today - ROLLING_DAYS + 1);
        let held = |day| look.spend.between(day - ROLLING_DAYS + 1, day);
        (since + 1..=today).all(|day| threshold.passed(held(day), limit))
    }

    fn mark(&mut self, threshold: Threshold, at: i32, alone: bool) {
        if alone {
            // Of the rolling period the last time is what counts.
            self.marks.iter_mut().for_each(|mark| mark.bits &= !threshold.bit());
            self.marks.retain(|mark| mark.bits != 0);
        }
        match self.marks.iter_mut().find(|mark| mark.at == at) {
            Some(mark) => mark.bits |= threshold.bit(),
            None => self.marks.push(Mark { at, bits: threshold.bit() }),
        }
        if self.marks.len() > MARKS {
            let oldest = self.marks.iter().map(|mark| mark.at).min();
            self.marks.retain(|mark| Some(mark.at) != oldest);
        }
    }
}

/// For so long a forecast must stay above the limit before anyone is told.
pub(crate) const HOLD_US: i64 = DAY_US / 144;

/// A forecast below this part of the limit is no longer taken for above it.
pub(crate) const RELEASE_PERCENT: i128 = 95;

/// Periods of which it is known what was told: as many as there are days.
const MARKS: usize = 128;
